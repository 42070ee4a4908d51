//! Names of the nodes and hosts in a lab, and the links between ports.

use axon_fabric::assemble::switch_id;
use axon_fabric::model::Fabric;
use axon_linux::status::{NodeStatus, PortStatus, Status};
use axon_node::telemetry::{ControllerHost, NodeTelemetry, PortTelemetry, SwitchTelemetry};
use axon_node::{Drop, PortCounters, Subject};
use axon_wire::vlan::VlanId;
use axon_wire::{MacAddr, NodeId, PortNo};
use std::collections::BTreeMap;

/// Switch that has answered.
#[derive(Clone, Copy)]
pub struct Switch<'a> {
    status: &'a Status,
    /// Telemetry of the node.
    pub node: &'a SwitchTelemetry,
}

impl<'a> Switch<'a> {
    /// Returns the name of a port, such as `s1-p0`.
    pub fn port_name(&self, port: PortNo) -> String {
        format!("{}-{port}", self.status.name)
    }

    /// Returns the device status of a port.
    pub(crate) fn device(&self, port: PortNo) -> Option<&'a PortStatus> {
        self.status.ports.get(port.index())
    }

    /// Returns the data plane's telemetry of a port.
    pub(crate) fn port(&self, port: PortNo) -> Option<&'a PortTelemetry> {
        self.node.plane.ports.get(port.index())
    }

    /// Returns the port at the far end of a link to another node, according to the switch's own
    /// discovery.
    pub(crate) fn peer(&self, port: PortNo) -> Option<(NodeId, PortNo)> {
        let found = self.node.neighbours.iter().find(|neighbour| neighbour.port == port)?;
        Some((found.node, found.peer_port))
    }
}

/// Names and links of a lab, from one status report.
pub struct Directory<'a> {
    fabric: &'a Fabric,
    switches: BTreeMap<NodeId, Switch<'a>>,
    known: Vec<ControllerHost>,
    /// MAC of each host of the fabric file, in its order.
    macs: Vec<MacAddr>,
    hosts: BTreeMap<MacAddr, &'a str>,
}

impl<'a> Directory<'a> {
    /// Collects the names and links of `fabric`. `status` contains the answers from its daemons.
    pub fn new(fabric: &'a Fabric, status: &'a [NodeStatus]) -> Directory<'a> {
        let answered = status.iter().filter_map(NodeStatus::status);
        let switch = |status: &'a Status| {
            let node = status.node.switch()?;
            Some((node.id, Switch { status, node }))
        };
        let known = answered.clone().flat_map(|status| known_by(&status.node));
        let known: Vec<ControllerHost> = known.collect();
        let macs = macs(fabric, &known);
        let names = fabric.hosts.iter().map(|host| host.name.as_str());
        Directory {
            fabric,
            switches: answered.clone().filter_map(switch).collect(),
            hosts: macs.iter().copied().zip(names).collect(),
            known,
            macs,
        }
    }

    /// Returns the fabric.
    pub(crate) fn fabric(&self) -> &'a Fabric {
        self.fabric
    }

    /// Returns the MAC address of each host in the fabric file, in its order. A real gateway has
    /// its own MAC address, which is found by its IP address.
    pub(crate) fn macs(&self) -> &[MacAddr] {
        &self.macs
    }

    /// Returns the hosts that the controller knows, if it has answered. Without a controller,
    /// returns the hosts at the ports of the switches that have answered.
    pub(crate) fn known(&self) -> &[ControllerHost] {
        &self.known
    }

    /// Returns the names of the hosts at a port according to the controller, in one VLAN or in any.
    pub(crate) fn hosts_at(&self, at: (NodeId, PortNo), vlan: Option<VlanId>) -> Vec<String> {
        let here = self.known().iter();
        let here = here.filter(|host| {
            (host.switch, host.port) == at && vlan.is_none_or(|vlan| host.vlan == vlan)
        });
        here.map(|host| self.host_name(host.mac)).collect()
    }

    /// Returns the switches that have answered.
    pub(crate) fn switches(&self) -> impl Iterator<Item = &Switch<'a>> {
        self.switches.values()
    }

    /// Returns a switch, if it has answered.
    pub(crate) fn switch(&self, id: NodeId) -> Option<&Switch<'a>> {
        self.switches.get(&id)
    }

    /// Returns the name of a host, or its MAC address if the fabric file does not list it.
    pub(crate) fn host_name(&self, mac: MacAddr) -> String {
        self.hosts.get(&mac).map_or_else(|| mac.to_string(), ToString::to_string)
    }

    /// Returns the name of a switch port, such as `s1-p0`, whether the switch has answered or not.
    pub fn port_name(&self, (node, port): (NodeId, PortNo)) -> String {
        axon_fabric::isolation::subject_name(self.fabric, Subject::Port(node, port))
    }

    /// Follows hops from a switch. Returns the egress port at each switch, and its ingress port if
    /// that is on a link between switches. Also returns whether the last egress port has no further
    /// switch behind it. An invalid hop ends the path.
    pub(crate) fn follow(&self, from: NodeId, hops: &[PortNo]) -> (Vec<Hop<'a>>, bool) {
        let (mut way, mut at, mut ingress) = (Vec::new(), from, None);
        for (number, &egress) in hops.iter().enumerate() {
            let Some(&switch) = self.switch(at) else { return (way, false) };
            way.push(Hop { switch, ingress, egress });
            match switch.peer(egress) {
                Some((node, port)) => (at, ingress) = (node, Some(port)),
                None => return (way, number + 1 == hops.len() && switch.port(egress).is_some()),
            }
        }
        (way, false)
    }
}

/// Computes [`Directory::macs`].
fn macs(fabric: &Fabric, known: &[ControllerHost]) -> Vec<MacAddr> {
    let mut macs: Vec<MacAddr> = fabric.hosts.iter().map(|host| host.mac).collect();
    for uplink in fabric.uplinks.iter().filter(|uplink| uplink.device.is_some()) {
        let host = &fabric.hosts[uplink.host];
        let at = (switch_id(host.switch), host.port);
        let is_gateway = |known: &&ControllerHost| {
            (known.switch, known.port) == at && known.ips.contains(&uplink.gateway.into())
        };
        if let Some(gateway) = known.iter().find(is_gateway) {
            macs[uplink.host] = gateway.mac;
        }
    }
    macs
}

/// Returns the hosts whose positions a node decides. A host that has not been seen yet is at its
/// port in the file.
fn known_by(node: &NodeTelemetry) -> Vec<ControllerHost> {
    let hosts = node.known_hosts().unwrap_or_default().iter();
    let own = |host: &&ControllerHost| node.switch().is_none_or(|own| own.id == host.switch);
    hosts.filter(own).cloned().collect()
}

/// Appends the VLAN to a name, if there is one.
pub(super) fn in_vlan(name: String, vlan: VlanId) -> String {
    if vlan.is_none() { name } else { format!("{name} (VLAN {vlan})") }
}

/// Switch on the path of a route.
#[derive(Clone, Copy)]
pub struct Hop<'a> {
    /// Switch.
    pub switch: Switch<'a>,
    /// Ingress port; `None` at the first switch.
    pub ingress: Option<PortNo>,
    /// Egress port.
    pub egress: PortNo,
}

/// Returns the number of lost frames according to the counters of a port.
pub(super) fn lost(counters: &PortCounters) -> u64 {
    let all = Drop::ALL.iter().filter(|reason| !reason.is_ordinary());
    all.map(|&reason| counters.dropped(reason)).sum()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::testing;
    use axon_node::telemetry::{EdgeRoute, Neighbour};
    use axon_wire::Hops;
    use std::path::Path;

    /// Returns a line of two switches with a host each: h1 at s1-p0, and h2 at s2-p0. Ports p1 of
    /// both switches are joined.
    pub(crate) fn fabric() -> Fabric {
        let text = "{name: two, topology: {listed: {switches: [s1, s2], \
                    hosts: {h1: s1-p0, h2: s2-p0}, links: [[s1-p1, s2-p1]]}}}";
        axon_fabric::parse(Path::new("two.yaml"), text).unwrap()
    }

    /// Returns the status of a lab of [`fabric`] in which h1 has a route to h2, and s2 has a route
    /// to h1 that is not in its table.
    pub(crate) fn lab(fabric: &Fabric) -> Vec<NodeStatus> {
        let neighbour = |node| Neighbour {
            port: PortNo(1),
            node: NodeId(node),
            peer_port: PortNo(1),
            restarting: false,
        };
        let route = |destination: usize, placed| EdgeRoute {
            port: PortNo(0),
            vlan: VlanId::NONE,
            destination: fabric.hosts[destination].mac,
            source: None,
            hops: [PortNo(1), PortNo(0)].into_iter().collect::<Hops>(),
            placed,
        };
        let mut s1 = testing::switch(2);
        s1.neighbours = vec![neighbour(2)];
        s1.routes = vec![route(1, true)];
        let mut s2 = testing::switch(2);
        s2.id = NodeId(2);
        s2.neighbours = vec![neighbour(1)];
        s2.routes = vec![route(0, false)];
        let mut controller = testing::controller();
        let host = |index: usize, ips: &[&str]| ControllerHost {
            mac: fabric.hosts[index].mac,
            vlan: VlanId::NONE,
            switch: NodeId(index as u64 + 1),
            port: PortNo(0),
            ips: ips.iter().map(|ip| ip.parse().unwrap()).collect(),
        };
        controller.hosts = vec![host(0, &["10.0.0.2", "fe80::2"]), host(1, &["10.0.0.3"])];
        vec![
            testing::node("c1", 0, NodeTelemetry::Controller(Box::new(controller))),
            testing::status("s1", s1),
            testing::status("s2", s2),
        ]
    }

    #[test]
    fn a_real_gateway_has_the_name_of_its_uplink_by_its_address() {
        let text = "{name: two, topology: {listed: {switches: [s1, s2], \
                    hosts: {h1: s1-p0, h2: s2-p0}, links: [[s1-p1, s2-p1]]}}, \
                    uplinks: [{name: up1, at: s2-p2, gateway: 10.0.0.254, device: eth1}]}";
        let fabric = axon_fabric::parse(Path::new("two.yaml"), text).unwrap();
        let mut status = lab(&fabric);
        let planned = fabric.hosts[2].mac;
        assert_eq!(Directory::new(&fabric, &status).macs()[2], planned);
        let real = MacAddr([2, 0, 0, 0, 0x77, 1]);
        let gateway = ControllerHost {
            mac: real,
            vlan: VlanId::NONE,
            switch: NodeId(2),
            port: PortNo(2),
            ips: vec!["10.0.0.254".parse().unwrap()],
        };
        let mut controller = testing::controller();
        controller.hosts = vec![gateway];
        status[0] = testing::node("c1", 0, NodeTelemetry::Controller(Box::new(controller)));
        let directory = Directory::new(&fabric, &status);
        assert_eq!((directory.macs()[2], directory.host_name(real)), (real, "up1".to_owned()));
        assert_eq!(directory.host_name(planned), planned.to_string());
        let hosts = super::super::hosts::hosts(&directory);
        let up1 = hosts.iter().find(|host| host.host.as_deref() == Some("up1")).unwrap();
        assert_eq!((up1.mac, up1.at.as_deref()), (real, Some("s2-p2")));
    }

    #[test]
    fn hops_are_followed_from_port_to_port_and_end_where_they_lead_nowhere() {
        let fabric = fabric();
        let status = lab(&fabric);
        let directory = Directory::new(&fabric, &status);
        let follow = |hops: &[u16]| {
            let hops: Vec<PortNo> = hops.iter().copied().map(PortNo).collect();
            let (way, arrives) = directory.follow(NodeId(1), &hops);
            let names = way.iter().map(|hop| hop.switch.port_name(hop.egress));
            (names.collect::<Vec<_>>().join(" "), arrives)
        };
        assert_eq!(follow(&[1, 0]), ("s1-p1 s2-p0".to_owned(), true));
        assert_eq!(follow(&[1]), ("s1-p1".to_owned(), false), "it ends at another switch");
        assert_eq!(follow(&[0, 1]), ("s1-p0".to_owned(), false), "a host is no switch");
        let controllers = directory.port_name((axon_fabric::assemble::CONTROLLER_ID, PortNo(0)));
        assert_eq!(controllers, "c1-p0");
        assert_eq!(follow(&[1, 7]), ("s1-p1 s2-p7".to_owned(), false), "there is no such port");
    }
}
