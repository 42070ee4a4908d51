//! A fabric as plain data, generators expanded and every name resolved.
//!
//! This is what the simulator and the lab build from; [`crate::load`] makes it from a file.

pub use crate::agents::kind::AgentKind;
use crate::cam::Cam;
pub use crate::dcb::{Buffers, Dcb, FlowControl};
pub use crate::device::{Device, Side, Stage};
pub use crate::end::End;
pub use crate::fault::{Cable, Fault, FaultKind};
pub use crate::file::{AxonPorts, DataplaneName, Mode};
pub use crate::traffic::{App, Traffic};
pub use crate::unfit::Unfit;
use axon_agents::AgentPortConfig;
pub use axon_control::config::BySource;
use axon_control::config::GroupConfig;
pub use axon_control::config::{Ipv6Config, Timers};
pub use axon_control::controller::policy::Policy;
pub use axon_control::controller::router::RouterKind;
use axon_node::Keys;
use axon_pipeline::Sizes;
pub use axon_plane::OnFull;
use axon_programs::ProgramKind;
pub use axon_programs::Shape;
use axon_programs::agents::Selection;
use axon_wire::link::ETHERNET_BYTES;
use axon_wire::priority::{PRIORITIES, PrioritySet};
use axon_wire::vlan::{TAG_BYTES, VlanId};
use axon_wire::{Bytes, HopWidth, Layer, MacAddr, PortNo, Priority, Rate, Span};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

/// A whole fabric, checked: every index is in range and every port is used once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fabric {
    /// Its name; the lab's too.
    pub name: String,
    /// Seed of everything random.
    pub seed: u64,
    /// Bits of a hop.
    pub hop_width: HopWidth,
    /// What the control plane seals its messages with.
    pub keys: Keys,
    /// The file that the keys were read from, where they are not in the fabric file itself.
    pub key_file: Option<PathBuf>,
    /// What the switches are.
    pub network: Network,
    /// Which of the topologies it is that programs know.
    pub shape: Shape,
    /// With [`Network::Program`], what controls the switches.
    pub program: Option<ProgramSetup>,
    /// What a frame goes through inside each switch, in the simulator.
    pub device: Device,
    /// What carries the frames of switches with real ports.
    pub dataplanes: Dataplanes,
    /// The first key of the file that sets the rate of a link, if one does.
    pub rate_key: Option<String>,
    /// The switches, in order: `s1`, `s2`, ...
    pub switches: Vec<Switch>,
    /// The hosts, in order: `h1`, `h2`, ...
    pub hosts: Vec<Host>,
    /// Links between switches.
    pub links: Vec<Link>,
    /// The controller and its link.
    pub controller: Controller,
    /// The paths that the file states, for a fabric without a controller.
    pub paths: Vec<StatedPath>,
    /// Intervals of the control plane.
    pub timers: Timers,
    /// Addresses for hosts.
    pub dhcp: Dhcp,
    /// The tables of host ports.
    pub cam: Cam,
    /// What edges advertise to hosts with IPv6.
    pub ipv6: Option<Ipv6Config>,
    /// Ports to real networks. Each is one of the hosts: its gateway, or all that is outside.
    pub uplinks: Vec<Uplink>,
    /// MTU of hosts, in bytes of IP packet.
    pub mtu: u16,
    /// Whether switches tell a host to pause for the bytes that its routes add.
    pub self_congestion_pause: bool,
    /// What becomes of a packet that finds its buffer full.
    pub on_full: OnFull,
    /// With [`OnFull::Nack`], what each input port keeps of refused packets.
    pub nack_queue: Bytes,
    /// What the ports of switches are trusted with.
    pub port_policies: PortPolicies,
    /// Which hosts may reach which.
    pub policy: Policy,
    /// Where hosts behind one port get routes of their own.
    pub by_source: BySource,
    /// VLANs, in the order of the file.
    pub vlans: Vec<Vlan>,
    /// What becomes of frames to groups and to all.
    pub groups: GroupConfig,
    /// Traffic classes, lossless priorities, flow control, where there are any.
    pub dcb: Option<Box<Dcb>>,
    /// What breaks when, in order of time.
    pub faults: Vec<Fault>,
    /// The same, but counted from when the network is ready and traffic begins.
    pub faults_after_start: Vec<Fault>,
    /// What the hosts send, in the order of the file.
    pub traffic: Vec<Traffic>,
    /// Agents beside switches, in the order of the file.
    pub agents: Vec<AgentSetup>,
    /// Bonds of ports, in the order of the file.
    pub bonds: Vec<Bond>,
}

/// The data planes of a fabric's switches, where they have real ports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dataplanes {
    /// Of a switch without an override.
    pub common: DataplaneName,
    /// By the index of the switch: another one, and the key that says so.
    pub overrides: BTreeMap<usize, (DataplaneName, String)>,
}

impl Fabric {
    /// How many layers of routes its switches know: one, where no priority has further ones.
    pub fn layers(&self) -> u8 {
        self.dcb.as_ref().map_or(1, |dcb| dcb.layer_count())
    }

    /// The priority between switches of what hosts send in their first lossless priority, by the
    /// layer of its route; 0 where no priority has layers, for all have the same routes then.
    pub fn priority_on(&self, layer: Layer) -> Priority {
        let group = self.dcb.as_ref().and_then(|dcb| dcb.layers.first());
        group.and_then(|group| group.get(layer.index())).copied().unwrap_or_default()
    }

    /// Whether routes have backups: where the file wants them, and no priority is lossless or the
    /// router has an order that backups follow too. Any other router could close a cycle of buffers
    /// by one, which nobody would have proved absent.
    pub fn has_backups(&self) -> bool {
        let router = self.controller.router;
        self.controller.backups && (router.is_ordered() || !self.is_lossless())
    }

    /// Whether any priority is lossless.
    pub fn is_lossless(&self) -> bool {
        self.dcb.as_ref().is_some_and(|dcb| !dcb.lossless.is_empty())
    }

    /// The longest frame that a host may send, in bytes without FCS: where priorities count, its
    /// VLAN tag comes on top.
    pub(crate) fn frame_bytes_max(&self) -> usize {
        let tag = if self.dcb.is_some() { TAG_BYTES } else { 0 };
        usize::from(self.mtu) + ETHERNET_BYTES + tag
    }

    /// Lets the controller choose paths in this way.
    ///
    /// # Errors
    /// The router does not fit; nothing has changed then.
    pub fn set_router(&mut self, router: RouterKind) -> Result<(), Unfit> {
        if router == RouterKind::Layered && self.layers() == 1 {
            return Err(Unfit::NoLayers);
        }
        if self.is_static() && !router.is_fixed() {
            return Err(Unfit::NeedsController(router));
        }
        if router.is_ordered() && !self.paths.is_empty() {
            return Err(Unfit::StatedPaths(router));
        }
        self.controller.router = router;
        Ok(())
    }
}

/// What the switches of a fabric are. All but [`Network::Axon`] and [`Network::Program`] are
/// baselines, for the simulator only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Network {
    /// `axon`: source routing, a controller.
    #[default]
    Axon,
    /// `ethernet`: learning bridges with the rapid spanning tree protocol; no controller.
    Ethernet,
    /// `portland`: PortLand's switches, its fabric manager in the controller's place.
    PortLand,
    /// `ecmp`: static tables with all shortest paths, one by the hash of the flow; no
    /// controller.
    Ecmp,
    /// Programmable switches with a control program; no controller.
    Program,
}

/// Bytes that a program in Python may put before frames between switches.
const PYTHON_OVERHEAD_BYTES: usize = 64;

/// What controls the switches of a fabric, and how large their tables are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramSetup {
    /// The program.
    pub source: ProgramSource,
    /// Sizes of the tables, in entries.
    pub sizes: Sizes,
}

/// Where a control program comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProgramSource {
    /// It ships.
    Ships(ProgramKind),
    /// A file in Python.
    Python(PathBuf),
}

impl ProgramSetup {
    /// Bytes that entries put before frames between switches, at most.
    pub fn overhead_bytes(&self) -> usize {
        match &self.source {
            ProgramSource::Ships(kind) => kind.overhead_bytes(),
            ProgramSource::Python(_) => PYTHON_OVERHEAD_BYTES,
        }
    }
}

/// A switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    /// `s1`.
    pub name: String,
    /// Ports 0 to `ports - 1`; port 0 of `s1` is `s1-p0`. Ports that the file names are what
    /// it says; the others are numbered from the lowest free one: hosts first, in order, then
    /// links, in order, then the controller.
    pub ports: u16,
}

/// A host and its link to the edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// `h1`; its one port is `h1-p0`.
    pub name: String,
    /// Its address.
    pub mac: MacAddr,
    /// A fixed address, or DHCP.
    pub ip: Option<Ipv4Addr>,
    /// A fixed IPv6 address of global scope, whose first 64 bits are those of its link.
    pub ip6: Option<Ipv6Addr>,
    /// The switch it is plugged into, by index; for a host with a bond that of the first port.
    pub switch: usize,
    /// The port there.
    pub port: PortNo,
    /// Its link.
    pub wire: Wire,
}

/// A port to a real network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uplink {
    /// The host that stands for what is outside, by index; its address is the gateway's.
    pub host: usize,
    /// The gateway's address.
    pub gateway: Ipv4Addr,
    /// The network device that a lab takes as the port, if a real one is to be it.
    pub device: Option<String>,
}

/// Ports of one or more switches that lead to one host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bond {
    /// The name of its host, or of its first port.
    pub name: String,
    /// The host, by index; `None` for whatever is plugged in.
    pub host: Option<usize>,
    /// Its ports; the first is that of the host, if there is one.
    pub members: Vec<End>,
    /// Whether the switches send LACPDUs before the host does.
    pub active: bool,
}

/// An agent of a fabric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentSetup {
    /// `a1`.
    pub name: String,
    /// The switch port that it is attached to.
    pub at: End,
    /// The way between switch and agent, in the simulator.
    pub wire: Wire,
    /// What it is.
    pub kind: AgentKind,
    /// Payload buffers, and what it gets of a frame. The seed is the runtime's to set.
    pub port: AgentPortConfig,
    /// Which frames go to it, besides those for its own address.
    pub selections: Vec<Selection>,
}

/// A link between two switches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// One end.
    pub a: End,
    /// The other end.
    pub b: End,
    /// What is between.
    pub wire: Wire,
}

/// What the file says of ports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortPolicies {
    /// At which ports other switches and the controller may be.
    pub axon: AxonPorts,
    /// The priorities of hosts; those that are no better than best effort without.
    pub priorities: Option<HostPriorities>,
    /// Settings of single ports, in place of those above.
    pub overrides: BTreeMap<End, PortTrust>,
}

/// A port that differs. What is `None` is as for the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortTrust {
    /// Whether another switch or the controller may be there.
    pub axon: Option<bool>,
    /// The priorities of hosts there.
    pub priorities: Option<HostPriorities>,
}

/// The priorities that hosts may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostPriorities {
    /// The priorities that keep their value.
    pub allowed: PrioritySet,
    /// What others become; one of them.
    pub otherwise: Priority,
}

impl HostPriorities {
    /// The priority that a frame has from its port on, by that of its tag.
    pub fn table(&self) -> [Priority; PRIORITIES] {
        let of = |priority| if self.allowed.contains(priority) { priority } else { self.otherwise };
        Priority::ALL.map(of)
    }
}

/// What a link is like, the same in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wire {
    /// Bits per second.
    pub rate: Rate,
    /// Propagation delay.
    pub latency: Span,
    /// Frames lost per million, independently.
    pub loss_ppm: u32,
    /// Bits that arrive flipped, per 10^15, independently: 1000 is an error rate of 1e-12.
    pub bit_errors_per_1e15: u64,
    /// Buffer at each output for each ingress.
    pub queue: Bytes,
}

/// A path between two hosts that the file states, there and back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatedPath {
    /// One host, by index.
    pub from: usize,
    /// The other, by index.
    pub to: usize,
    /// The links from the first to the second, in their order, each from its near to its far end.
    pub links: Vec<[End; 2]>,
    /// Those of the backup; empty if the file states none.
    pub backup: Vec<[End; 2]>,
}

/// The controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Controller {
    /// Whether there is one. The fields below that are about a node of its own mean nothing
    /// without.
    pub mode: Mode,
    /// `c1`; its one port is `c1-p0`.
    pub name: String,
    /// The switch port it is plugged into.
    pub at: End,
    /// Its link.
    pub wire: Wire,
    /// How it chooses paths.
    pub router: RouterKind,
    /// Whether the file wants backup routes; see [`Fabric::has_backups`].
    pub backups: bool,
}

/// Addresses for hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dhcp {
    /// The server's address, in the subnet.
    pub server: Ipv4Addr,
    /// Prefix length of the subnet.
    pub prefix_len: u8,
    /// First address of the pool.
    pub pool_first: Ipv4Addr,
    /// Last address of the pool.
    pub pool_last: Ipv4Addr,
    /// How long a lease lasts.
    pub lease: Span,
    /// The most addresses of the pool that hosts behind one port may hold.
    pub leases_per_port: u32,
    /// Hosts that always get the same address.
    pub reservations: BTreeMap<MacAddr, Ipv4Addr>,
    /// Clients that do, by their identifier.
    pub clients: BTreeMap<Vec<u8>, Ipv4Addr>,
    /// The default router of hosts.
    pub router: Option<Ipv4Addr>,
    /// Name servers of hosts, best first.
    pub dns: Vec<Ipv4Addr>,
    /// The domain of hosts.
    pub domain: Option<String>,
    /// The MTU that hosts are to set.
    pub mtu: Option<u16>,
    /// The index of the host that is the DHCP server, if requests are relayed to one.
    pub relay: Option<usize>,
}

/// A VLAN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vlan {
    /// Its number.
    pub id: VlanId,
    /// Its name, if it has one.
    pub name: Option<String>,
    /// The ports whose frames without a tag are in it.
    pub access: BTreeSet<End>,
    /// The ports whose frames are in it with its tag.
    pub trunk: BTreeSet<End>,
    /// Addresses for its hosts, if they are leased some.
    pub dhcp: Option<Dhcp>,
    /// What edges advertise to its hosts.
    pub ipv6: Option<Ipv6Config>,
}

impl Fabric {
    /// The wire of a cable, as it is at the start.
    ///
    /// # Panics
    /// If there is no such cable.
    pub fn wire(&self, cable: Cable) -> &Wire {
        match cable {
            Cable::Link(link) => &self.links[link].wire,
            Cable::Host(host) => &self.hosts[host].wire,
            Cable::Controller => &self.controller.wire,
        }
    }

    pub(crate) fn wire_mut(&mut self, cable: Cable) -> &mut Wire {
        match cable {
            Cable::Link(link) => &mut self.links[link].wire,
            Cable::Host(host) => &mut self.hosts[host].wire,
            Cable::Controller => &mut self.controller.wire,
        }
    }

    /// The slowest and the fastest that a cable ever is: at the start, or after a fault.
    ///
    /// # Panics
    /// If there is no such cable.
    pub fn rates(&self, cable: Cable) -> [Rate; 2] {
        let later = |fault: &Fault| match fault.what {
            FaultKind::Rate(of, rate) if of == cable => Some(rate),
            _ => None,
        };
        let start = self.wire(cable).rate;
        let all = self.faults.iter().chain(&self.faults_after_start).filter_map(later);
        all.fold([start; 2], |[least, most], rate| [least.min(rate), most.max(rate)])
    }
}
