//! Line of namespaces without Axon: hosts, with other forwarders in place of switches.

use super::namespace::{Namespace, write_setting};
use super::ovs::OpenVswitch;
use super::redirect::{self, Program};
use super::shape::Shape;
use anyhow::{Context, Result};
use axon_demo::process::Stop;
use axon_linux::iproute;
use axon_linux::sys::{self, Offload};
use axon_wire::MacAddr;
use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::path::Path;

/// Forwarder that takes the place of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Linux bridge with one port to each neighbour.
    Bridge,
    /// Redirect by tc to the other port.
    Redirect,
    /// Open vSwitch bridge with one port to each neighbour.
    OpenVswitch,
}

/// Line that is up. Dropping it removes everything, because devices disappear with their
/// namespaces.
pub struct Chain {
    // Fields are dropped in order, so programs and daemons end before their interfaces.
    _programs: Vec<Program>,
    switches_of_ovs: Vec<OpenVswitch>,
    hosts: Vec<Namespace>,
    _switches: Vec<Namespace>,
}

/// Names of the devices of a switch.
type Ports = Vec<String>;

impl Chain {
    /// Builds the line. The files of daemons go to `folder`.
    ///
    /// # Errors
    /// The kernel, iproute2 or Open vSwitch refuses something.
    pub fn up(kind: Kind, shape: &Shape, folder: &Path, stop: &Stop) -> Result<Chain> {
        let make = |_| Namespace::new();
        let hosts = (0..shape.hosts.len()).map(make).collect::<Result<Vec<_>>>()?;
        let switches = (0..shape.switches).map(make).collect::<Result<Vec<_>>>()?;
        let ports = cables(shape, &hosts, &switches)?;
        let mut chain = Chain {
            _programs: Vec::new(),
            switches_of_ovs: Vec::new(),
            hosts,
            _switches: switches,
        };
        for (index, ports) in ports.iter().enumerate() {
            stop.check()?;
            chain.forward(kind, index, ports, folder, stop)?;
        }
        for (host, namespace) in chain.hosts.iter().enumerate() {
            let device = host_device(host);
            namespace.within(|| {
                let address = format!("{}/24", host_address(host));
                iproute::run("ip", &["address", "add", &address, "dev", &device], "")?;
                if kind == Kind::OpenVswitch {
                    // The user-space datapath forwards frames with unfinished checksums.
                    sys::set_offload(&device, Offload::TxChecksum, false)?;
                }
                Ok(sys::set_device_up(&device, true)?)
            })?;
        }
        if let Some(rate) = shape.rate_mbps {
            let shaper = format!(
                "qdisc add dev {} root tbf rate {rate}mbit burst 128kb limit 4mb",
                towards(0, 1)
            );
            chain._switches[0].within(|| {
                iproute::run("tc", &shaper.split(' ').collect::<Vec<_>>(), "")
                    .context("cannot hold the rate of a link")
            })?;
        }
        Ok(chain)
    }

    /// Configures a switch and its ports.
    fn forward(
        &mut self,
        kind: Kind,
        index: usize,
        ports: &Ports,
        folder: &Path,
        stop: &Stop,
    ) -> Result<()> {
        self._switches[index].within(|| {
            ports.iter().try_for_each(|port| sys::set_device_up(port, true))?;
            match kind {
                Kind::Bridge => bridge(ports)?,
                Kind::Redirect => self._programs.extend(redirect::both_ways(ports)?),
                Kind::OpenVswitch => {
                    let folder = folder.join(format!("s{}", index + 1));
                    self.switches_of_ovs.push(OpenVswitch::start(&folder, ports, stop)?);
                }
            }
            Ok(())
        })
    }

    /// Returns the namespace of a host, given its number from 0.
    pub fn host(&self, host: usize) -> &Namespace {
        &self.hosts[host]
    }

    /// Returns the processes that carry frames, if there are any.
    pub(crate) fn processes(&self) -> Vec<u32> {
        self.switches_of_ovs.iter().map(OpenVswitch::process).collect()
    }
}

/// Returns the device of a host, given its number from 0.
pub(crate) fn host_device(host: usize) -> String {
    format!("h{}-p0", host + 1)
}

/// Returns the MAC address of a host, given its number from 0.
pub fn host_mac(host: usize) -> MacAddr {
    MacAddr([2, 0, 0, 0, 1, host as u8 + 1])
}

/// Returns the IPv4 address of a host, given its number from 0.
pub(crate) fn host_address(host: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, host as u8 + 1)
}

/// Returns the device of switch `from` on the link to switch `to`. Both are numbers from 0.
fn towards(from: usize, to: usize) -> String {
    format!("s{}-s{}", from + 1, to + 1)
}

/// Creates all links. Returns the devices of each switch.
fn cables(shape: &Shape, hosts: &[Namespace], switches: &[Namespace]) -> Result<Vec<Ports>> {
    let mut ports = vec![Ports::new(); switches.len()];
    let mut batch = String::new();
    for right in 1..switches.len() {
        let (a, b) = (towards(right - 1, right), towards(right, right - 1));
        let (left_path, path) = (switches[right - 1].path(), switches[right].path());
        writeln!(
            batch,
            "link add name {a} netns {left_path} type veth peer name {b} netns {path}"
        )?;
        ports[right - 1].push(a);
        ports[right].push(b);
    }
    for (host, &at) in shape.hosts.iter().enumerate() {
        let (device, mac, port) =
            (host_device(host), host_mac(host), format!("s{}-h{}", at + 1, host + 1));
        let (path, at_path) = (hosts[host].path(), switches[at].path());
        writeln!(
            batch,
            "link add name {device} address {mac} netns {path} type veth peer name {port} \
             netns {at_path}"
        )?;
        ports[at].push(port);
    }
    // This runs in a namespace of the benchmark, so that no device appears in the machine's own
    // namespace.
    hosts[0].within(|| iproute::run("ip", &["-batch", "-"], &batch))?;
    Ok(ports)
}

fn bridge(ports: &Ports) -> Result<()> {
    for name in ["bridge-nf-call-iptables", "bridge-nf-call-ip6tables", "bridge-nf-call-arptables"]
    {
        // Otherwise, every frame would pass the firewall rules, at nearly twice the cost.
        write_setting(&format!("bridge/{name}"), "0")?;
    }
    iproute::run("ip", &["link", "add", "br0", "type", "bridge"], "")?;
    for port in ports {
        iproute::run("ip", &["link", "set", port, "master", "br0"], "")?;
    }
    Ok(sys::set_device_up("br0", true)?)
}
