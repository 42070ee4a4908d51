//! The fabric file as it is written: what serde reads and the JSON Schema describes.

mod agents;
mod bonds;
mod cam;
mod congestion;
mod dataplane;
mod dcb;
mod dcbx;
mod device;
mod failover;
mod faults;
mod ipv6;
mod isolation;
mod multicast;
mod pauses;
mod ports;
mod program;
mod stated_path;
mod text;
mod topology;
mod uplinks;
mod vlans;

pub use agents::{
    Agent, Backends, Balancer, BytesAt, Cache, CacheProtocol, Congestion, Forwarder, IdAt, Payload,
    Route, Select, Transport, WhenAgentFull,
};
pub use bonds::{Bond, LacpMode};
pub use cam::Cam;
pub use congestion::{
    Cnm, CongestionNotification, Defence, Ecn, HalfPeriod, Increase, NonEct, Reaction, Red,
    Rounding, TargetPart,
};
pub use dataplane::DataplaneName;
pub use dcb::{
    Buffers, Charge, Class as DcbClass, Dcb, FlowControl, Reserved, Scheduling, Weights,
};
pub use dcbx::{
    Application, Dcbx, DcbxOverride, Mode as DcbxMode, Recommend, Repeated, Tie, Willing,
    ZeroClasses,
};
pub use device::{DeviceName, ListedDevice, ListedSide, ListedStage};
pub use failover::Failover;
pub use faults::Fault;
pub use ipv6::{Dhcpv6, Ipv6};
pub use isolation::{Isolation, Others, Tenant};
pub use multicast::Multicast;
pub use pauses::{Choose, StormAction, Watchdog, Watermarks};
pub use ports::{AxonPorts, PortOverride, Ports};
pub use program::{Program as ProgramFile, ProgramText, TableSizes};
pub use stated_path::{Mode, StatedPath};
use text::an_hour;
pub(crate) use text::mac;
pub use text::{BitErrorsText, MacText, ShareText, ShortOr, SubnetText};
pub use topology::{
    BCube, DCell, Dragonfly, FatTree, FlattenedButterfly, GraphFile, Hosts, Listed, ListedHost,
    ListedLink, Placed, Placement, Random, RandomLinks, Row, Topology, Torus,
};
pub use uplinks::Uplink;
pub use vlans::{Vlan, VlanDhcp};

use crate::units::{BytesText, RateText, SpanText};
use axon_control::controller::router::RouterKind;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;

/// A fabric: what to build and what happens to it. Only `name` and `topology` are needed.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Axon fabric")]
pub struct File {
    /// Its name, and the lab's: a letter, then letters, digits or `-`, at most 32.
    pub name: String,
    /// Seed of everything random in it.
    #[serde(default = "one")]
    pub seed: u64,
    /// Which switches, hosts and links there are.
    pub topology: Topology,
    /// What links are like, those to hosts and to the controller too.
    #[serde(default)]
    pub links: Links,
    /// Where single links or switches differ.
    #[serde(default)]
    pub overrides: Vec<Override>,
    /// Bits of a hop: 4, 8 or 16. They bound the ports of a switch: 15, 255 or 65,535.
    #[serde(default = "eight")]
    #[schemars(extend("enum" = [4, 8, 16]))]
    pub hop_width: u8,
    /// What the switches are, in the simulator.
    #[serde(default)]
    pub network: Network,
    /// The control program of programmable switches, in place of a network: the name of one that
    /// ships, or `{python: FILE}`.
    pub program: Option<ShortOr<ProgramText, ProgramFile>>,
    /// What a frame goes through inside a switch and how long it takes, in the simulator: a
    /// name, or a pipeline by hand.
    #[serde(default = "ideal")]
    pub device: ShortOr<DeviceName, ListedDevice>,
    /// Which data plane carries the frames of switches with real ports; the simulator ignores it.
    #[serde(default)]
    pub dataplane: DataplaneName,
    /// Settings of the controller, and the switch that it is at, or that there is none.
    #[serde(default)]
    pub controller: Controller,
    /// Paths of a fabric without a controller, where they are not to be those of its router.
    #[serde(default)]
    pub paths: Vec<StatedPath>,
    /// The addresses that the DHCP server gives to hosts.
    #[serde(default)]
    pub dhcp: Dhcp,
    /// What edges advertise to hosts with IPv6; without, nothing.
    pub ipv6: Option<Ipv6>,
    /// Ports to real networks; Axon only.
    #[serde(default)]
    pub uplinks: Vec<Uplink>,
    /// Intervals of the control plane.
    #[serde(default)]
    pub timers: Timers,
    /// What edges do by themselves when a link of a route is down.
    #[serde(default)]
    pub failover: Failover,
    /// The tables of host ports, and masquerading; Axon only.
    #[serde(default)]
    pub cam: Cam,
    /// Frames to groups and to all: who gets them, and how many.
    #[serde(default)]
    pub multicast: Multicast,
    /// MTU of the hosts, 576 to 9000 bytes of IP packet.
    #[serde(default = "ethernet_mtu")]
    #[schemars(range(min = 576, max = 9000))]
    pub mtu: u16,
    /// Whether switches send a host a PAUSE for the bytes that its routes add (thesis 000
    /// §3.3.3). Simulated hosts, and those on veth or TAP, do not honour it.
    #[serde(default)]
    pub self_congestion_pause: bool,
    /// The master key of the control plane, 64 hex digits, or the keys of one switch as `axon key
    /// --switch` writes them. While keys are changed, a second line is accepted too. Without `key`
    /// and `key_file` it is the published lab key, which protects nothing.
    pub key: Option<String>,
    /// A file with what could stand in `key`; its path is relative to this file.
    pub key_file: Option<PathBuf>,
    /// What the ports of switches are trusted with.
    #[serde(default)]
    pub ports: Ports,
    /// Which hosts may reach which; Axon only.
    #[serde(default)]
    pub isolation: Isolation,
    /// VLANs; Axon only. In a fabric that has some, hosts that are in none have no tags.
    #[serde(default)]
    pub vlans: Vec<Vlan>,
    /// Traffic classes, lossless priorities, flow control; Axon only.
    pub dcb: Option<Dcb>,
    /// Bonds of ports, of one or more switches, that lead to one host; Axon only.
    #[serde(default)]
    pub bonds: Vec<Bond>,
    /// Agents: programs beside switches that look at packets.
    #[serde(default)]
    pub agents: Vec<Agent>,
    /// What breaks and comes back, and when.
    #[serde(default)]
    pub faults: Vec<Fault>,
    /// What the hosts send, in the simulator.
    #[serde(default)]
    pub traffic: Vec<crate::traffic::Entry>,
}

fn one() -> u64 {
    1
}

fn eight() -> u8 {
    8
}

fn ideal() -> ShortOr<DeviceName, ListedDevice> {
    ShortOr::Short(DeviceName::Ideal)
}

fn ethernet_mtu() -> u16 {
    1500
}

impl File {
    /// A fabric with nothing said but its topology.
    pub fn new(name: &str, topology: Topology) -> File {
        File {
            name: name.into(),
            seed: one(),
            topology,
            links: Links::default(),
            overrides: Vec::new(),
            hop_width: eight(),
            network: Network::default(),
            program: None,
            device: ideal(),
            dataplane: DataplaneName::default(),
            controller: Controller::default(),
            paths: Vec::new(),
            dhcp: Dhcp::default(),
            ipv6: None,
            uplinks: Vec::new(),
            timers: Timers::default(),
            failover: Failover::default(),
            cam: Cam::default(),
            multicast: Multicast::default(),
            mtu: ethernet_mtu(),
            self_congestion_pause: false,
            key: None,
            key_file: None,
            ports: Ports::default(),
            isolation: Isolation::default(),
            vlans: Vec::new(),
            dcb: None,
            bonds: Vec::new(),
            agents: Vec::new(),
            faults: Vec::new(),
            traffic: Vec::new(),
        }
    }

    /// The key of the topology's one entry: `topology.ring`.
    pub(crate) fn topology_key(&self) -> &'static str {
        match self.topology {
            Topology::Line(_) => "topology.line",
            Topology::Ring(_) => "topology.ring",
            Topology::Star(_) => "topology.star",
            Topology::Torus(_) => "topology.torus",
            Topology::FatTree(_) => "topology.fat_tree",
            Topology::FlattenedButterfly(_) => "topology.flattened_butterfly",
            Topology::Dragonfly(_) => "topology.dragonfly",
            Topology::Bcube(_) => "topology.bcube",
            Topology::Dcell(_) => "topology.dcell",
            Topology::Random(_) => "topology.random",
            Topology::RandomLinks(_) => "topology.random_links",
            Topology::Graph(_) => "topology.graph",
            Topology::Listed(_) => "topology.listed",
        }
    }
}

/// What all links are like.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Links {
    /// Bits per second; 1Gbps by default.
    pub rate: Option<RateText>,
    /// Propagation delay; 1us by default.
    pub latency: SpanText,
    /// Frames lost per million, each by itself; none by default.
    #[schemars(range(max = 1_000_000))]
    pub loss_ppm: u32,
    /// Share of bits that arrive flipped, each by itself; none by default.
    pub bit_error_rate: BitErrorsText,
    /// The buffer that each output port has for each ingress port; 128KiB by default.
    pub queue: BytesText,
    /// What becomes of a packet that finds its buffer full; Axon only.
    pub on_full: WhenFull,
    /// With `on_full: nack`, what each input port keeps of refused packets; 128KiB by default.
    pub nack_queue: Option<BytesText>,
}

/// What becomes of a packet that finds its buffer full (thesis 000 §3.2.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WhenFull {
    /// The packet that does not fit is dropped.
    #[default]
    Drop,
    /// The input port keeps it until the output has room.
    Nack,
    /// It is dropped, and the hosts that it came from are sent a PAUSE. Simulated hosts, and
    /// those on veth or TAP, do not honour it.
    CongestionMessage,
}

impl Default for Links {
    fn default() -> Links {
        Links {
            rate: None,
            latency: SpanText(axon_wire::Span::from_micros(1)),
            loss_ppm: 0,
            bit_error_rate: BitErrorsText(0),
            queue: BytesText(axon_wire::Bytes(128 * 1024)),
            on_full: WhenFull::default(),
            nack_queue: None,
        }
    }
}

/// One link that differs, or switches that do.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Override {
    /// The two ends of a link: switches, hosts, the controller, or ports (`s1-p0`).
    pub between: Option<[String; 2]>,
    /// Or switches, by name.
    pub switches: Option<Vec<String>>,
    /// The data plane of the switches.
    pub dataplane: Option<DataplaneName>,
    /// The rate of the link.
    pub rate: Option<RateText>,
    /// The propagation delay of the link.
    pub latency: Option<SpanText>,
    /// Frames lost per million.
    pub loss_ppm: Option<u32>,
    /// Share of bits that arrive flipped.
    pub bit_error_rate: Option<BitErrorsText>,
}

impl Override {
    /// Whether it says anything that links have.
    pub(crate) const fn changes_link(&self) -> bool {
        let Override { rate, latency, loss_ppm, bit_error_rate, .. } = self;
        rate.is_some() || latency.is_some() || loss_ppm.is_some() || bit_error_rate.is_some()
    }
}

/// What the switches of a fabric are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Network {
    /// Source routing and a controller: Axon.
    #[default]
    Axon,
    /// Learning bridges with the rapid spanning tree protocol; simulator only.
    Ethernet,
    /// PortLand's switches and its fabric manager; simulator only.
    Portland,
    /// Static tables of all shortest paths, one by the hash of the flow; simulator only.
    Ecmp,
}

/// How the controller chooses paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Router {
    /// One shortest path per flow, of several equal ones by its hash.
    #[default]
    ShortestPath,
    /// A shortest path drawn anew for each flow.
    Ecmp,
    /// Greedy weighted shortest path, a link's weight the flows on it (paper 001 section 5.5).
    Spain,
    /// Hedera's global first fit.
    HederaGff,
    /// Hedera's simulated annealing over estimated demands.
    HederaSa,
    /// By the load that links were measured to carry.
    CongestionAware,
    /// Our own best spread of flows over links.
    Balanced,
    /// Shortest of the paths that never go up after down: no deadlock of lossless links.
    UpDown,
    /// Shortest paths on several layers, each free of deadlock; with `dcb.layers`.
    Layered,
}

impl Router {
    /// The controller's word for it.
    pub fn kind(self) -> RouterKind {
        match self {
            Router::ShortestPath => RouterKind::ShortestPath,
            Router::Ecmp => RouterKind::Ecmp,
            Router::Spain => RouterKind::Spain,
            Router::HederaGff => RouterKind::HederaFirstFit,
            Router::HederaSa => RouterKind::HederaAnnealing,
            Router::CongestionAware => RouterKind::CongestionAware,
            Router::Balanced => RouterKind::Balanced,
            Router::UpDown => RouterKind::UpDown,
            Router::Layered => RouterKind::Layered,
        }
    }
}

/// Whether there is a controller, where it is plugged in, and how paths are chosen.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Controller {
    /// Whether there is one; `central` by default.
    pub mode: Mode,
    /// A switch (`s1`) or port (`s1-p7`); the first switch by default.
    pub at: Option<String>,
    /// How it chooses paths; in the mode `static`, how every switch does.
    pub router: Router,
    /// Whether several hosts behind one port get routes of their own, and so may take different
    /// paths to one destination. No by default.
    pub by_source: bool,
}

/// The address service that the controller gives to hosts.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Dhcp {
    /// The subnet of all hosts; 10.0.0.0/16 by default, 10.0.0.0/8 for more hosts than that
    /// holds.
    pub subnet: Option<SubnetText>,
    /// The server's address; the subnet's first by default.
    pub server: Option<Ipv4Addr>,
    /// First and last address to give; all of the subnet behind the first by default.
    pub pool: Option<[Ipv4Addr; 2]>,
    /// How long a lease lasts; 1h by default.
    pub lease: SpanText,
    /// The most addresses of the pool that hosts behind one port may hold, leased or claimed by
    /// ARP: 1 to 512. A quarter of the pool by default, 64 at most. Reserved and fixed addresses
    /// do not count.
    pub leases_per_port: Option<u32>,
    /// What always gets the same address: hosts by name, MACs (`02:00:00:00:00:07`), and clients by
    /// the identifier that they send (`id:printer`, `id:01:02:00`).
    pub reservations: BTreeMap<String, Ipv4Addr>,
    /// The default router of the hosts, an address of the subnet.
    pub router: Option<Ipv4Addr>,
    /// Name servers of the hosts, best first, at most 8.
    #[schemars(length(max = 8))]
    pub dns: Vec<Ipv4Addr>,
    /// The domain in which hosts look for names, such as `lab.example`.
    pub domain: Option<String>,
    /// The MTU that hosts are to set, 576 to 9000 bytes of IP packet and no more than `mtu`.
    #[schemars(range(min = 576, max = 9000))]
    pub mtu: Option<u16>,
    /// A host with a fixed address, by name, that is the DHCP server: requests are relayed to it.
    pub relay: Option<String>,
}

impl Default for Dhcp {
    fn default() -> Dhcp {
        Dhcp {
            subnet: None,
            server: None,
            pool: None,
            lease: an_hour(),
            leases_per_port: None,
            reservations: BTreeMap::new(),
            router: None,
            dns: Vec::new(),
            domain: None,
            mtu: None,
            relay: None,
        }
    }
}

/// Intervals of the control plane; see `axon_control::config::Timers` for the defaults.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Timers {
    /// Between Hellos on a port without neighbour.
    pub hello: Option<SpanText>,
    /// Between heartbeats; a link is down after two without one.
    pub heartbeat: Option<SpanText>,
    /// Before an unacknowledged control message is sent again.
    pub retry: Option<SpanText>,
    /// Between probes of a local host.
    pub host_probe: Option<SpanText>,
}
