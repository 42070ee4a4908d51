//! Syntax of the fabric file: the types that serde reads and the JSON Schema describes.

mod agents;
mod bonds;
mod congestion;
mod dataplane;
mod dcb;
mod dcbx;
mod failover;
mod faults;
mod ipv6;
mod isolation;
mod multicast;
mod pauses;
mod ports;
mod program;
mod stated_path;
pub(crate) mod tagged;
pub(crate) mod text;
mod topology;
mod uplinks;
mod vlans;

pub use agents::*;
pub use bonds::*;
pub use congestion::*;
pub use dataplane::DataplaneKind;
pub use dcb::*;
pub use dcbx::*;
pub use failover::Failover;
pub use faults::*;
pub use ipv6::*;
pub use isolation::*;
pub use multicast::Multicast;
pub use pauses::*;
pub use ports::*;
pub use program::*;
pub use stated_path::*;
pub use tagged::*;
pub use text::*;
pub use topology::*;
pub use uplinks::Uplink;
pub use vlans::*;

use crate::cam::Cam;
use crate::device::{Device, DeviceName};
use crate::model::Network;
use crate::units::{BytesText, RateText, SpanText};
use axon_controller::router::RouterKind;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;

/// A fabric: the network to build, and its faults and traffic. Only `name` and `topology` are
/// required.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Axon fabric")]
pub struct File {
    /// Name of the fabric and of its lab: a letter, then letters, digits or `-`, at most 32.
    pub name: String,
    /// Seed of all random numbers.
    #[serde(default = "one")]
    pub seed: u64,
    /// Switches, hosts and links.
    pub topology: Topology,
    /// Properties of links, those to hosts and to the controller included.
    #[serde(default)]
    pub links: Links,
    /// Properties of single links or switches.
    #[serde(default)]
    pub overrides: Vec<Override>,
    /// Width of a hop in bits: 4, 8 or 16. Limits the ports of a switch to 15, 255 or 65,535.
    #[serde(default = "eight")]
    #[schemars(extend("enum" = [4, 8, 16]))]
    pub hop_width: u8,
    /// Kind of the switches, in the simulator.
    #[serde(default)]
    pub network: Network,
    /// Control program of programmable switches, in place of `network`: the name of one that ships,
    /// or `{python: FILE}`.
    pub program: Option<ShortOr<ProgramText, ProgramFile>>,
    /// Stages that a frame passes inside a switch and their delays, in the simulator: a name, or a
    /// pipeline listed by hand.
    #[serde(default = "ideal")]
    pub device: ShortOr<DeviceName, Device>,
    /// Data plane of switches with real ports; the simulator ignores it.
    #[serde(default)]
    pub dataplane: DataplaneKind,
    /// Settings of the controller, and whether there is one.
    #[serde(default)]
    pub controller: Controller,
    /// Paths of a fabric without a controller, in place of those of its router.
    #[serde(default)]
    pub paths: Vec<StatedPath>,
    /// Addresses that the DHCP server gives to hosts.
    #[serde(default)]
    pub dhcp: Dhcp,
    /// Router advertisements of IPv6 that edges send to hosts; none by default.
    pub ipv6: Option<Ipv6>,
    /// Ports to real networks; Axon only.
    #[serde(default)]
    pub uplinks: Vec<Uplink>,
    /// Intervals of the control plane.
    #[serde(default)]
    pub timers: Timers,
    /// Local repair at edges when a link of a route is down.
    #[serde(default)]
    pub failover: Failover,
    /// Tables of host ports, and masquerading; Axon only.
    #[serde(default)]
    pub cam: Cam,
    /// Multicast and broadcast frames: delivery and rate limits.
    #[serde(default)]
    pub multicast: Multicast,
    /// MTU of the hosts, 576 to 9000 bytes of IP packet.
    #[serde(default = "ethernet_mtu")]
    #[schemars(range(min = 576, max = 9000))]
    pub mtu: u16,
    /// True if switches send a host PAUSE for the bytes that its routes add (thesis 000 §3.3.3).
    /// Simulated hosts, and those on veth or TAP, do not honour it.
    #[serde(default)]
    pub self_congestion_pause: bool,
    /// Master key of the control plane, 64 hex digits, or the keys of one switch as `axon key
    /// --switch` writes them. During a change of keys, a second line is accepted too. Without `key`
    /// and `key_file` it is the published lab key, which protects nothing.
    pub key: Option<String>,
    /// File with the text of `key`; its path is relative to this file.
    pub key_file: Option<PathBuf>,
    /// Trust settings of switch ports.
    #[serde(default)]
    pub ports: Ports,
    /// Isolation of hosts by tenant; Axon only.
    #[serde(default)]
    pub isolation: Isolation,
    /// VLANs; Axon only. If there are any, hosts in none of them are untagged.
    #[serde(default)]
    pub vlans: Vec<Vlan>,
    /// Traffic classes, lossless priorities, flow control; Axon only.
    pub dcb: Option<Dcb>,
    /// Bonds of ports, of one or more switches, that lead to one host; Axon only.
    #[serde(default)]
    pub bonds: Vec<Bond>,
    /// Agents: programs at switches that process packets.
    #[serde(default)]
    pub agents: Vec<Agent>,
    /// Faults and recoveries, with their times.
    #[serde(default)]
    pub faults: Vec<Fault>,
    /// Traffic of the hosts, in the simulator.
    #[serde(default)]
    pub traffic: Vec<crate::traffic::Entry>,
}

fn one() -> u64 {
    1
}

fn eight() -> u8 {
    8
}

fn ideal() -> ShortOr<DeviceName, Device> {
    ShortOr::Short(DeviceName::Ideal)
}

fn ethernet_mtu() -> u16 {
    1500
}

/// Default properties of links.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Links {
    /// Bits per second; 1Gbps by default.
    pub rate: Option<RateText>,
    /// Propagation delay; 1us by default.
    pub latency: SpanText,
    /// Frames lost per million, independently of each other; none by default.
    #[schemars(range(max = 1_000_000))]
    pub loss_ppm: u32,
    /// Share of bits that arrive flipped, independently of each other; none by default.
    pub bit_error_rate: BitErrorsText,
    /// Buffer that each output port has for each ingress port; 128KiB by default.
    pub queue: BytesText,
    /// Action on a packet whose buffer is full; Axon only.
    pub on_full: WhenFull,
    /// Buffer for refused packets at each input port, with `on_full: nack`; 128KiB by default.
    pub nack_queue: Option<BytesText>,
}

/// Action on a packet whose buffer is full (thesis 000 §3.2.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WhenFull {
    /// The packet is dropped.
    #[default]
    Drop,
    /// The input port keeps the packet until the output has room.
    Nack,
    /// The packet is dropped, and the hosts that it came from are sent PAUSE. Simulated hosts, and
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

/// Override of the properties of one link, or of some switches.
pub type Override = Tagged<WireKey, OverrideKeys>;

/// Different properties of one link, or of some switches.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Override")]
pub struct OverrideKeys {
    /// Two ends of a link: switches, hosts, the controller, or ports (`s1-p0`).
    pub between: Option<[String; 2]>,
    /// Names of switches, in place of `between`.
    pub switches: Option<Vec<String>>,
    /// Data plane of the switches.
    pub dataplane: Option<DataplaneKind>,
}

/// Algorithm by which the controller chooses paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Router {
    /// One shortest path per flow, chosen by its hash among equal ones.
    #[default]
    ShortestPath,
    /// A shortest path drawn at random for each flow.
    Ecmp,
    /// Greedy weighted shortest path, where a link's weight is the number of its flows (paper 001
    /// section 5.5).
    Spain,
    /// Hedera's global first fit.
    HederaGff,
    /// Hedera's simulated annealing over estimated demands.
    HederaSa,
    /// By the measured load of links.
    CongestionAware,
    /// Axon's most even spread of flows over links.
    Balanced,
    /// Shortest of the paths that never go up after down: no deadlock of lossless links.
    UpDown,
    /// Shortest paths on several layers, each free of deadlock; with `dcb.layers`.
    Layered,
}

impl Router {
    /// Returns the controller's name of the algorithm.
    pub(crate) fn kind(self) -> RouterKind {
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

/// Presence of a controller, its port, and the choice of paths.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Controller {
    /// Mode of control: a controller (`central`, the default) or none (`static`).
    pub mode: Mode,
    /// Switch (`s1`) or port (`s1-p7`); the first switch by default.
    pub at: Option<String>,
    /// Algorithm that chooses paths, run by the controller, or by every switch in mode `static`.
    pub router: Router,
    /// True if several hosts behind one port get routes of their own, which may take different
    /// paths to one destination. False by default.
    pub by_source: bool,
}

/// DHCP service that the controller offers to hosts.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Dhcp {
    /// Subnet of all hosts; 10.0.0.0/16 by default, or 10.0.0.0/8 if there are more hosts than that
    /// holds.
    pub subnet: Option<SubnetText>,
    /// Address of the server; the first of the subnet by default.
    pub server: Option<Ipv4Addr>,
    /// First and last address of the pool; by default the rest of the subnet.
    pub pool: Option<[Ipv4Addr; 2]>,
    /// Duration of a lease; 1h by default.
    pub lease: SpanText,
    /// Maximum number of pool addresses that hosts behind one port may hold, leased or claimed by
    /// ARP: 1 to 512. A quarter of the pool by default, 64 at most. Reserved and fixed addresses do
    /// not count.
    pub leases_per_port: Option<u32>,
    /// Reserved addresses, by host name, by MAC (`02:00:00:00:00:07`), or by the client identifier
    /// (`id:printer`, `id:01:02:00`).
    pub reservations: BTreeMap<String, Ipv4Addr>,
    /// Default router of the hosts, an address of the subnet.
    pub router: Option<Ipv4Addr>,
    /// Name servers of the hosts, best first, at most 8.
    #[schemars(length(max = 8))]
    pub dns: Vec<Ipv4Addr>,
    /// Domain in which hosts look up names, such as `lab.example`.
    pub domain: Option<String>,
    /// MTU that hosts are given, 576 to 9000 bytes of IP packet and no more than `mtu`.
    #[schemars(range(min = 576, max = 9000))]
    pub mtu: Option<u16>,
    /// Name of a host with a fixed address that is the DHCP server: requests are relayed to it.
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

/// Intervals of the control plane.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Timers {
    /// Interval between Hellos on a port without neighbour.
    pub hello: Option<SpanText>,
    /// Interval between heartbeats; a link is down after two missed ones.
    pub heartbeat: Option<SpanText>,
    /// Time before an unacknowledged control message is sent again.
    pub retry: Option<SpanText>,
    /// Interval between probes of a local host.
    pub host_probe: Option<SpanText>,
}
