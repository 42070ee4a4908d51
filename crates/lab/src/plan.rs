//! Contents of a lab, derived from the fabric before anything is created.

use super::options::UpOptions;
use axon_fabric::Problem;
use axon_fabric::assemble::port_name;
use axon_fabric::model::{DataplaneKind, End, Fabric, Host, Link, Network, Shape};
use axon_linux::daemon::edge_name;
use axon_linux::dataplane_choice::DataplaneChoice;
use axon_linux::port::link_mtu;
use axon_wire::{MacAddr, PortNo, Rate};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Ifindex of the first device in a lab. Each device has its own, see [`Plan::ip_batch`].
const INDEX_FIRST: u32 = 1000;

/// Everything that is to be created for a lab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Switches. Each node (switch, controller or host) has its own namespace, but a host on a
    /// server shares that of the server's switch.
    pub switches: Vec<String>,
    /// Controller, if there is one. Programmable switches have none.
    pub controller: Option<String>,
    /// True if switches decide by themselves, based on the fabric file, and know all hosts.
    pub is_static: bool,
    /// Hosts, with their configuration.
    pub hosts: Vec<HostPlan>,
    /// Agents of the fabric file, each at a port of its switch. The agents that add DCB to hosts
    /// are in `Plan::host_agents`.
    pub attached: Vec<AttachedPlan>,
    /// Links.
    pub cables: Vec<Cable>,
    /// Devices of the machine that are ports of switches.
    pub uplinks: Vec<UplinkPlan>,
    /// True if the kernel carries the frames of any switch.
    pub has_kernel: bool,
    /// True if Linux bridges replace switches.
    pub has_bridges: bool,
}

/// Namespace of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPlan {
    /// Name: `h1`.
    pub name: String,
    /// Switch that shares its namespace with the host, if the host is on a server that forwards.
    pub server: Option<String>,
    /// Device name: `h1-p0`.
    pub device: String,
    /// MAC address of the device.
    pub mac: MacAddr,
    /// IPv4 address and prefix length, if one is assigned.
    pub address: Option<(Ipv4Addr, u8)>,
    /// True if the host has IPv6: a link-local address, and one from router advertisements.
    pub has_ipv6: bool,
    /// Fixed IPv6 address, if any.
    pub address6: Option<Ipv6Addr>,
    /// True if the host is the router that is advertised to IPv6 hosts.
    pub is_ipv6_router: bool,
    /// Rate of the NIC.
    pub rate: Rate,
    /// True if an agent is between `device`, which is then a TAP device, and the cable.
    pub has_host_agent: bool,
    /// Data plane of the host's switch.
    pub carrier: DataplaneKind,
    /// Offloads of the host's NIC.
    pub offloads: Offloads,
}

/// Device of the machine that becomes a port of a switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UplinkPlan {
    /// Name of the uplink: `up1`.
    pub name: String,
    /// Device in the network namespace of `axon up`: `eth1`.
    pub device: String,
    /// Switch into whose namespace the device is moved.
    pub switch: String,
    /// Port name in that namespace: `s3-p5`.
    pub port: String,
    /// Gateway behind the uplink.
    pub gateway: Ipv4Addr,
    /// MTU of the port, in bytes.
    pub mtu: usize,
    /// Offloads of the device on receive.
    pub offloads: Offloads,
}

/// Agent that is attached to a port of a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachedPlan {
    /// Name: `a1`.
    pub name: String,
    /// Kind as in the fabric file: `cache`, `congestion`, `forwarder` or `run`.
    pub kind: &'static str,
    /// Switch in whose namespace the agent runs.
    pub switch: String,
    /// Port of the switch: `s1-p3`.
    pub port: String,
}

/// Offloads that the hosts of a fabric may use. One switch without support disables an offload at
/// all hosts, because their frames may cross any switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Offloads {
    /// All offloads of Linux: every switch is on tc.
    Kept,
    /// No super-packets and no partial checksums: some process carries frames.
    Finished,
    /// No tags beside frames either: some switch is on XDP.
    Bare,
}

impl Offloads {
    fn of(dataplanes: &[DataplaneChoice]) -> Offloads {
        let any =
            |is: fn(DataplaneKind) -> bool| dataplanes.iter().any(|choice| is(choice.carrier));
        let is_xdp = any(|carrier| carrier == DataplaneKind::Xdp);
        match (is_xdp, any(|carrier| !carrier.is_in_kernel())) {
            (true, _) => Offloads::Bare,
            (false, true) => Offloads::Finished,
            (false, false) => Offloads::Kept,
        }
    }
}

/// Veth pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cable {
    /// Ends of the cable.
    pub ends: [CableEnd; 2],
    /// MTU of both devices, in bytes.
    pub mtu: usize,
    /// Rate of either end.
    pub rate: Rate,
}

/// One end of a veth pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CableEnd {
    /// Node in whose namespace this end is.
    pub node: String,
    /// Device name: `s1-p0`.
    pub device: String,
    /// MAC address. If `None`, the kernel chooses one.
    pub mac: Option<MacAddr>,
    /// True if the device needs GRO, because XDP at the other end cannot redirect to it otherwise.
    pub gro: bool,
}

/// Returns the initial address of each host, or `None` for a host that obtains its own.
fn addresses(fabric: &Fabric, options: &UpOptions) -> Vec<Option<Ipv4Addr>> {
    match options.bare && fabric.network != Network::Program {
        true => fabric.hosts.iter().map(|host| host.ip).collect(),
        false => axon_fabric::addresses::of_hosts(fabric),
    }
}

/// Returns whether a host is the router that is advertised.
fn is_router(fabric: &Fabric, host: MacAddr) -> bool {
    fabric.ipv6.as_ref().is_some_and(|ipv6| ipv6.router_host == Some(host))
}

/// Returns whether a switch is a server that forwards and has several NICs. This is so in BCube and
/// DCell, and for a programmable switch with one host, which is then the server itself.
fn is_server(fabric: &Fabric, switch: usize) -> bool {
    let shape = matches!(fabric.shape, Shape::Bcube { .. } | Shape::Dcell { .. });
    let hosts = fabric.hosts.iter().filter(|host| host.switch == switch);
    fabric.network == Network::Program && shape && hosts.count() == 1
}

/// Returns the agents of the file.
fn attached(fabric: &Fabric) -> Vec<AttachedPlan> {
    let agents = fabric.agents.iter();
    let plan = agents.map(|agent| {
        let switch = fabric.switches[agent.at.switch].name.clone();
        let (name, kind) = (agent.name.clone(), agent.kind.name());
        AttachedPlan { name, kind, port: port_name(&switch, agent.at.port), switch }
    });
    plan.collect()
}

/// Returns the uplinks of a fabric that name a device.
///
/// # Errors
/// Bridges are to replace the switches, which excludes such uplinks.
fn uplinks(fabric: &Fabric, offloads: Offloads, bridges: bool) -> Result<Vec<UplinkPlan>, Problem> {
    let mut plans = Vec::new();
    for (number, uplink) in fabric.uplinks.iter().enumerate() {
        let Some(device) = uplink.device.clone() else { continue };
        if bridges {
            let what =
                format!("a spanning tree of bridges would reach into what is behind {device}");
            let key = format!("uplinks[{number}].device");
            let expected = "switches of Axon, or an uplink without a device".to_owned();
            return Err(Problem { key, what, expected });
        }
        let host = &fabric.hosts[uplink.host];
        let switch = fabric.switches[host.switch].name.clone();
        plans.push(UplinkPlan {
            name: host.name.clone(),
            device,
            port: port_name(&switch, host.port),
            switch,
            gateway: uplink.gateway,
            mtu: usize::from(fabric.mtu),
            offloads,
        });
    }
    Ok(plans)
}

impl Plan {
    /// Returns the plan for a checked fabric. With `bare`, only hosts with a fixed address in the
    /// file get an address. Otherwise, all hosts do; see [`axon_fabric::addresses::of_hosts`].
    ///
    /// # Errors
    /// The file names a data plane that this machine or these options do not allow.
    pub(crate) fn of(fabric: &Fabric, options: &UpOptions) -> Result<Plan, Problem> {
        let dataplanes = options.dataplanes(fabric)?;
        let offloads = Offloads::of(&dataplanes);
        let uplinks = uplinks(fabric, offloads, options.bridges)?;
        let carrier = |switch: usize| dataplanes[switch].carrier;
        let switch_end = |end: End| {
            let node = fabric.switches[end.switch].name.clone();
            CableEnd { device: port_name(&node, end.port), node, mac: None, gro: false }
        };
        let far_end =
            |end: CableEnd, switch| CableEnd { gro: carrier(switch) == DataplaneKind::Xdp, ..end };
        let link = |link: &Link| {
            let (a, b) = (switch_end(link.a), switch_end(link.b));
            let ends = [far_end(a, link.b.switch), far_end(b, link.a.switch)];
            Cable { ends, mtu: link_mtu(fabric), rate: link.wire.rate }
        };
        let mut cables: Vec<Cable> = fabric.links.iter().map(link).collect();
        let controller = fabric.has_controller().then(|| fabric.controller.name.clone());
        for node in controller.iter().cloned() {
            let device = port_name(&node, PortNo(0));
            let controller_end = CableEnd { node, device, mac: None, gro: false };
            let at = fabric.controller.at;
            let ends = [far_end(controller_end, at.switch), switch_end(at)];
            let rate = fabric.controller.wire.rate;
            cables.push(Cable { ends, mtu: link_mtu(fabric), rate });
        }
        let mut hosts = Vec::new();
        let has_host_agent = fabric.dcb.as_ref().is_some_and(|dcb| !dcb.applications.is_empty());
        // Hosts behind a real device are not part of the lab.
        let is_own = |host: &Host| uplinks.iter().all(|uplink| uplink.name != host.name);
        let own = fabric.hosts.iter().zip(addresses(fabric, options));
        for (host, address) in own.filter(|(host, _)| is_own(host)) {
            let device = port_name(&host.name, PortNo(0));
            let (end, mac) = match has_host_agent {
                true => (edge_name(&host.name), None),
                false => (device.clone(), Some(host.mac)),
            };
            let host_end = CableEnd { node: host.name.clone(), device: end, mac, gro: false };
            let host_end = far_end(host_end, host.switch);
            let edge = switch_end(End { switch: host.switch, port: host.port });
            let (ends, rate) = ([host_end, edge], host.wire.rate);
            cables.push(Cable { ends, mtu: usize::from(fabric.mtu), rate });
            hosts.push(HostPlan {
                name: host.name.clone(),
                server: is_server(fabric, host.switch)
                    .then(|| fabric.switches[host.switch].name.clone()),
                device,
                mac: host.mac,
                address: address.map(|ip| (ip, axon_fabric::vlans::prefix_len_of(fabric, host))),
                has_ipv6: axon_fabric::ipv6::is_dual_stack(fabric) && !options.bridges,
                address6: host.ip6,
                is_ipv6_router: is_router(fabric, host.mac),
                rate,
                has_host_agent,
                carrier: carrier(host.switch),
                offloads,
            });
        }
        Ok(Plan {
            switches: fabric.switches.iter().map(|switch| switch.name.clone()).collect(),
            controller,
            is_static: fabric.is_static(),
            hosts,
            attached: if options.bridges { Vec::new() } else { attached(fabric) },
            cables,
            uplinks,
            has_kernel: dataplanes.iter().any(|choice| choice.carrier.is_in_kernel()),
            has_bridges: options.bridges,
        })
    }

    /// Returns the nodes that together know all hosts: the controller or, without one, every switch
    /// that decides by itself.
    pub(crate) fn knowing(&self) -> impl Iterator<Item = &str> {
        let switches = self.switches.iter().filter(|_| self.is_static);
        self.controller.iter().chain(switches).map(String::as_str)
    }

    /// Returns the switch whose namespace a node shares, if any.
    pub(crate) fn server_of(&self, node: &str) -> Option<&str> {
        let host = self.hosts.iter().find(|host| host.name == node)?;
        host.server.as_deref()
    }

    /// Returns all nodes. Each has a namespace, but a host on a server shares that of its switch.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = &str> {
        let hosts = self.hosts.iter().filter(|host| !host.has_host_agent);
        self.daemons().chain(hosts.map(|host| host.name.as_str()))
    }

    /// Returns the nodes with a daemon or a bridge: the controller, the switches, and the hosts
    /// with their own agent.
    pub(crate) fn daemons(&self) -> impl Iterator<Item = &str> {
        let switches = self.switches.iter().map(String::as_str);
        self.controller.as_deref().into_iter().chain(switches).chain(self.host_agents())
    }

    /// Returns the hosts that have their own agent, for DCB.
    pub(crate) fn host_agents(&self) -> impl Iterator<Item = &str> {
        let agents = self.hosts.iter().filter(|host| host.has_host_agent);
        agents.map(|host| host.name.as_str())
    }

    /// Returns the /etc/hosts of each node, which lists all hosts that have an address.
    pub(crate) fn hosts_file(&self) -> String {
        let mut text = "127.0.0.1 localhost\n".to_owned();
        for host in &self.hosts {
            let address = host.address.map(|(address, _)| IpAddr::V4(address));
            for address in address.into_iter().chain(host.address6.map(IpAddr::V6)) {
                // Writing to a String cannot fail.
                let _ = writeln!(text, "{address} {}", host.name);
            }
        }
        for UplinkPlan { name, gateway, .. } in &self.uplinks {
            let _ = writeln!(text, "{gateway} {name}");
        }
        text
    }

    /// Returns the devices of each node.
    pub(crate) fn devices(&self) -> BTreeMap<&str, Vec<&CableEnd>> {
        let mut devices: BTreeMap<&str, Vec<&CableEnd>> = BTreeMap::new();
        for end in self.cables.iter().flat_map(|cable| &cable.ends) {
            devices.entry(&end.node).or_default().push(end);
        }
        devices
    }

    /// Returns commands for `ip -batch` that create all cables, each end directly in its namespace.
    ///
    /// Every device gets an ifindex that is unique in the lab. If the peer of a veth, in another
    /// namespace, has the same ifindex, the kernel delays the notification of carrier loss by up to
    /// a second (`linkwatch_urgent_event`).
    pub(crate) fn ip_batch(&self) -> String {
        let mut text = String::new();
        let mut index = INDEX_FIRST;
        for Cable { ends: [a, b], mtu, .. } in &self.cables {
            let mut text_of = |end: &CableEnd| {
                let mac = end.mac.map_or(String::new(), |mac| format!(" address {mac}"));
                index += 1;
                format!("{} index {index} mtu {mtu}{mac} netns {}", end.device, end.node)
            };
            let (a, b) = (text_of(a), text_of(b));
            // Writing to a String cannot fail.
            let _ = writeln!(text, "link add name {a} type veth peer name {b}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_linux::machine::Machine;

    #[test]
    fn a_switch_with_agents_is_planned_as_its_daemon_chooses_and_hosts_send_what_it_can_carry() {
        let text = "name: a\ntopology: {ring: {switches: 3}}\n\
            agents: [{name: lb, at: s2-p7, run: [lb]}]\n";
        let fabric = axon_fabric::parse("a.yaml".as_ref(), text).unwrap();
        let options = UpOptions { machine: Some(Machine::ABLE), ..UpOptions::default() };
        let chosen = options.dataplanes(&fabric).unwrap();
        let carriers: Vec<DataplaneKind> = chosen.iter().map(|choice| choice.carrier).collect();
        assert_eq!(carriers, [DataplaneKind::Tc, DataplaneKind::Software, DataplaneKind::Tc]);
        assert!(chosen[1].why.contains("agent ports"), "{}", chosen[1].why);
        let plan = Plan::of(&fabric, &options).unwrap();
        let (name, switch, port) = ("lb".into(), "s2".into(), "s2-p7".into());
        assert_eq!(plan.attached, [AttachedPlan { name, kind: "run", switch, port }]);
        assert!(plan.hosts.iter().all(|host| host.offloads == Offloads::Finished));
        let up = "uplinks: [{name: up1, at: s1-p7, gateway: 10.0.0.254, device: eth1}]";
        let text = text.replace("agents", &format!("{up}\nagents"));
        let real = axon_fabric::parse("a.yaml".as_ref(), &text).unwrap();
        let plan_of_real = Plan::of(&real, &options).unwrap();
        let [uplink] = &plan_of_real.uplinks[..] else { panic!("{plan_of_real:?}") };
        assert_eq!((uplink.port.as_str(), uplink.offloads), ("s1-p7", Offloads::Finished));
        assert_eq!((plan_of_real.hosts, plan_of_real.cables), (plan.hosts, plan.cables));
        let bridges = UpOptions { bridges: true, ..options.clone() };
        let error = Plan::of(&real, &bridges).unwrap_err().to_string();
        assert!(error.contains("uplinks[0].device: a spanning tree of bridges"), "{error}");
        // Bridges have no agent ports.
        let plan = Plan::of(&fabric, &UpOptions { bridges: true, ..options }).unwrap();
        assert_eq!(plan.attached, []);
    }
}
