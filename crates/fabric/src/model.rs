//! A fabric as plain data, with generators expanded and every name resolved.
//!
//! The simulator and the lab are built from this; [`crate::load`] makes it from a file.

pub use crate::agents::kind::AgentKind;
use crate::cam::Cam;
pub use crate::dcb::{Buffers, Dcb, FlowControl};
pub use crate::device::{Device, Side, Stage};
pub use crate::end::End;
pub use crate::fault::{Cable, Fault, FaultKind};
pub use crate::file::{AxonPorts, DataplaneKind, Mode};
pub use crate::router_unfit::Unfit;
pub use crate::traffic::{App, Traffic};
use axon_agents::AgentPortConfig;
pub use axon_controller::config::BySource;
pub use axon_controller::policy::Policy;
pub use axon_controller::router::RouterKind;
use axon_edge::config::GroupConfig;
pub use axon_edge::config::Ipv6Config;
pub use axon_link::config::Timers;
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
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

/// A checked fabric: every index is in range and every port is used once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fabric {
    /// Name of the fabric and of its lab.
    pub name: String,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Width of a hop, in bits.
    pub hop_width: HopWidth,
    /// Keys that seal the messages of the control plane.
    pub keys: Keys,
    /// File that the keys were read from; `None` if they are in the fabric file itself.
    pub key_file: Option<PathBuf>,
    /// Kind of the switches.
    pub network: Network,
    /// Topology, as control programs see it.
    pub shape: Shape,
    /// Control program of the switches, with [`Network::Program`].
    pub program: Option<ProgramSetup>,
    /// Stages that a frame passes inside each switch, in the simulator.
    pub device: Device,
    /// Data planes of switches with real ports.
    pub dataplanes: Dataplanes,
    /// First key of the file that sets the rate of a link, if any.
    pub rate_key: Option<String>,
    /// The switches, in order: `s1`, `s2`, ...
    pub switches: Vec<Switch>,
    /// The hosts, in order: `h1`, `h2`, ...
    pub hosts: Vec<Host>,
    /// Links between switches.
    pub links: Vec<Link>,
    /// The controller and its link.
    pub controller: Controller,
    /// Paths stated in the file, for a fabric without a controller.
    pub paths: Vec<StatedPath>,
    /// Intervals of the control plane.
    pub timers: Timers,
    /// DHCP: addresses for hosts.
    pub dhcp: Dhcp,
    /// Tables of host ports.
    pub cam: Cam,
    /// Router advertisements of IPv6 that edges send to hosts.
    pub ipv6: Option<Ipv6Config>,
    /// Ports to real networks. Each is one of the hosts: its gateway, or the whole outside network.
    pub uplinks: Vec<Uplink>,
    /// MTU of hosts, in bytes of IP packet.
    pub mtu: u16,
    /// True if switches send a host PAUSE for the bytes that its routes add.
    pub self_congestion_pause: bool,
    /// Action on a packet whose buffer is full.
    pub on_full: OnFull,
    /// Buffer for refused packets at each input port, with [`OnFull::Nack`].
    pub nack_queue: Bytes,
    /// Trust settings of switch ports.
    pub port_policies: PortPolicies,
    /// Isolation policy: the hosts that each host may reach.
    pub policy: Policy,
    /// Ports where several hosts behind one port get routes of their own.
    pub by_source: BySource,
    /// VLANs, in the order of the file.
    pub vlans: Vec<Vlan>,
    /// Handling of multicast and broadcast frames.
    pub groups: GroupConfig,
    /// Traffic classes, lossless priorities and flow control, if configured.
    pub dcb: Option<Box<Dcb>>,
    /// Faults counted from power on, in order of time.
    pub faults: Vec<Fault>,
    /// Faults counted from the moment the network is ready and traffic begins.
    pub faults_after_start: Vec<Fault>,
    /// Traffic of the hosts, in the order of the file.
    pub traffic: Vec<Traffic>,
    /// Agents at switches, in the order of the file.
    pub agents: Vec<AgentSetup>,
    /// Bonds of ports, in the order of the file.
    pub bonds: Vec<Bond>,
}

/// Data planes of a fabric's switches, where they have real ports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dataplanes {
    /// Data plane of a switch without an override.
    pub common: DataplaneKind,
    /// Override by the index of the switch: the data plane, and the key that sets it.
    pub overrides: BTreeMap<usize, (DataplaneKind, String)>,
}

impl Fabric {
    /// Returns the number of layers of routes on the switches: 1 if no priority has further layers.
    pub fn layers(&self) -> u8 {
        self.dcb.as_ref().map_or(1, |dcb| dcb.layer_count())
    }

    /// Returns the priority between switches of frames that hosts send in their first lossless
    /// priority, by the layer of the route; 0 where no priority has layers, since all share the
    /// same routes.
    pub fn priority_on(&self, layer: Layer) -> Priority {
        let group = self.dcb.as_ref().and_then(|dcb| dcb.layers.first());
        group.and_then(|group| group.get(layer.index())).copied().unwrap_or_default()
    }

    /// Returns whether any priority is lossless.
    pub fn is_lossless(&self) -> bool {
        self.dcb.as_ref().is_some_and(|dcb| !dcb.lossless.is_empty())
    }

    /// Sets the router of the controller.
    ///
    /// # Errors
    /// The router does not fit; the fabric is unchanged.
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

/// Returns the longest frame that a host may send, in bytes without FCS; includes a VLAN tag if
/// `dcb` is configured.
pub(crate) fn frame_bytes_max(fabric: &Fabric) -> usize {
    let tag = if fabric.dcb.is_some() { TAG_BYTES } else { 0 };
    usize::from(fabric.mtu) + ETHERNET_BYTES + tag
}

/// Kind of the switches of a fabric. All but [`Network::Axon`] and [`Network::Program`] are
/// baselines, for the simulator only.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[schemars(description = "Kind of the switches of a fabric.")]
pub enum Network {
    /// Source routing and a controller: Axon.
    #[default]
    Axon,
    /// Learning bridges with the rapid spanning tree protocol; simulator only.
    Ethernet,
    /// PortLand's switches and its fabric manager; simulator only.
    PortLand,
    /// Static tables of all shortest paths, one chosen by the hash of the flow; simulator only.
    Ecmp,
    /// Programmable switches with a control program, in place of a network in the file; no
    /// controller.
    #[serde(skip)]
    Program,
}

/// Maximum bytes that a program in Python may put before frames between switches.
const PYTHON_OVERHEAD_BYTES: usize = 64;

/// Control program of a fabric's switches, and the sizes of their tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramSetup {
    /// The program.
    pub source: ProgramSource,
    /// Sizes of the tables, in entries.
    pub sizes: Sizes,
}

/// Source of a control program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProgramSource {
    /// A program that ships with Axon.
    Ships(ProgramKind),
    /// A Python file.
    Python(PathBuf),
}

impl ProgramSetup {
    /// Returns the maximum number of bytes that table entries put before frames between switches.
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
    /// Name, such as `s1`.
    pub name: String,
    /// Number of ports: 0 to `ports - 1`; port 0 of `s1` is `s1-p0`. Ports named in the file keep
    /// their number; the others are numbered from the lowest free one: hosts first, in order, then
    /// links, in order, then the controller.
    pub ports: u16,
}

/// A host and its link to the edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Name, such as `h1`; its one port is `h1-p0`.
    pub name: String,
    /// MAC address.
    pub mac: MacAddr,
    /// Fixed IPv4 address; `None` for DHCP.
    pub ip: Option<Ipv4Addr>,
    /// Fixed IPv6 address of global scope; its first 64 bits are the prefix of the link.
    pub ip6: Option<Ipv6Addr>,
    /// Index of the switch it is plugged into; for a host with a bond, that of the first port.
    pub switch: usize,
    /// Port of the switch.
    pub port: PortNo,
    /// Properties of its link.
    pub wire: Wire,
}

/// A port to a real network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uplink {
    /// Index of the host that stands for the outside network; its address is the gateway's.
    pub host: usize,
    /// Address of the gateway.
    pub gateway: Ipv4Addr,
    /// Network device that a lab uses as the port, if a real one.
    pub device: Option<String>,
}

/// Ports of one or more switches that lead to one host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bond {
    /// Name of its host, or of its first port.
    pub name: String,
    /// Index of the host; `None` if any host may be plugged in.
    pub host: Option<usize>,
    /// Member ports; the first is the port of the host, if there is one.
    pub members: Vec<End>,
    /// True if the switches send LACPDUs before the host does.
    pub active: bool,
}

/// An agent of a fabric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentSetup {
    /// Name, such as `a1`.
    pub name: String,
    /// The switch port that it is attached to.
    pub at: End,
    /// Link between switch and agent, in the simulator.
    pub wire: Wire,
    /// Kind of the agent.
    pub kind: AgentKind,
    /// Payload buffers, and the part of a frame that it receives. The runtime sets the seed.
    pub port: AgentPortConfig,
    /// Frames that go to it, in addition to those for its own address.
    pub selections: Vec<Selection>,
}

/// A link between two switches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// One end.
    pub a: End,
    /// The other end.
    pub b: End,
    /// Properties of the link.
    pub wire: Wire,
}

/// Trust settings of switch ports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortPolicies {
    /// Ports at which other switches and the controller are allowed.
    pub axon: AxonPorts,
    /// Priorities allowed to hosts; `None` for those that are no better than best effort.
    pub priorities: Option<HostPriorities>,
    /// Settings of single ports, which take precedence.
    pub overrides: BTreeMap<End, PortTrust>,
}

/// Trust settings of a single port. A field that is `None` is as for other ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortTrust {
    /// True if another switch or the controller is allowed at the port.
    pub axon: Option<bool>,
    /// Priorities allowed to hosts at the port.
    pub priorities: Option<HostPriorities>,
}

/// Priorities allowed to hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostPriorities {
    /// Priorities that keep their value.
    pub allowed: PrioritySet,
    /// Priority that replaces all others; one of `allowed`.
    pub otherwise: Priority,
}

impl HostPriorities {
    /// Returns the priority that a frame has from its port on, indexed by that of its tag.
    pub(crate) fn table(&self) -> [Priority; PRIORITIES] {
        let of = |priority| if self.allowed.contains(priority) { priority } else { self.otherwise };
        Priority::ALL.map(of)
    }
}

/// Properties of a link, equal in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wire {
    /// Bits per second.
    pub rate: Rate,
    /// Propagation delay.
    pub latency: Span,
    /// Frames lost per million, independently of each other.
    pub loss_ppm: u32,
    /// Bits that arrive flipped, per 10^15, independently of each other: 1000 is an error rate of
    /// 1e-12.
    pub bit_errors_per_1e15: u64,
    /// Buffer at each output for each ingress, in bytes.
    pub queue: Bytes,
}

/// A path between two hosts that the file states, for both directions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatedPath {
    /// Index of one host.
    pub from: usize,
    /// Index of the other host.
    pub to: usize,
    /// Links from the first host to the second, in order, each from its near to its far end.
    pub links: Vec<[End; 2]>,
    /// Links of the backup path; empty if the file states none.
    pub backup: Vec<[End; 2]>,
}

/// The controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Controller {
    /// Mode of control. Without a controller, the fields of its node have no meaning.
    pub mode: Mode,
    /// Name, `c1`; its one port is `c1-p0`.
    pub name: String,
    /// Switch port that it is plugged into.
    pub at: End,
    /// Properties of its link.
    pub wire: Wire,
    /// Algorithm that chooses paths.
    pub router: RouterKind,
    /// True if the file wants backup routes; see `assemble`.
    pub backups: bool,
}

/// DHCP: addresses for hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dhcp {
    /// Address of the server, in the subnet.
    pub server: Ipv4Addr,
    /// Prefix length of the subnet.
    pub prefix_len: u8,
    /// First address of the pool.
    pub pool_first: Ipv4Addr,
    /// Last address of the pool.
    pub pool_last: Ipv4Addr,
    /// Duration of a lease.
    pub lease: Span,
    /// Maximum number of pool addresses that hosts behind one port may hold.
    pub leases_per_port: u32,
    /// Reserved addresses, by MAC.
    pub reservations: BTreeMap<MacAddr, Ipv4Addr>,
    /// Reserved addresses, by client identifier.
    pub clients: BTreeMap<Vec<u8>, Ipv4Addr>,
    /// Default router of hosts.
    pub router: Option<Ipv4Addr>,
    /// Name servers of hosts, best first.
    pub dns: Vec<Ipv4Addr>,
    /// Domain of hosts.
    pub domain: Option<String>,
    /// MTU that hosts are given, in bytes.
    pub mtu: Option<u16>,
    /// Index of the host that is the DHCP server, if requests are relayed.
    pub relay: Option<usize>,
}

/// A VLAN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vlan {
    /// VLAN ID.
    pub id: VlanId,
    /// Name, if any.
    pub name: Option<String>,
    /// Ports whose untagged frames are in the VLAN.
    pub access: BTreeSet<End>,
    /// Ports whose frames are in the VLAN with its tag.
    pub trunk: BTreeSet<End>,
    /// DHCP for its hosts, if configured.
    pub dhcp: Option<Dhcp>,
    /// Router advertisements that edges send to its hosts.
    pub ipv6: Option<Ipv6Config>,
}

impl Fabric {
    /// Returns the wire of a cable as it is at the start.
    ///
    /// # Panics
    /// If there is no such cable.
    pub(crate) fn wire(&self, cable: Cable) -> &Wire {
        match cable {
            Cable::Link(link) => &self.links[link].wire,
            Cable::Host(host) => &self.hosts[host].wire,
            Cable::Controller => &self.controller.wire,
        }
    }

    /// Returns the lowest and the highest rate that a cable ever has: at the start, or after a
    /// fault.
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
