//! The configuration of switches and controllers. Every limit and interval is here.

use crate::controller::policy::Policy;
use crate::controller::router::{RouterKind, StatedPath};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use axon_dcbx::DcbxNodeConfig;
use axon_lacp::LacpConfig;
use axon_node::{Keys, PortVlans, StoredHost};
use axon_wire::message::PortState;
use axon_wire::priority::{PRIORITIES, Priority};
use axon_wire::router::Advertisement;
use axon_wire::vlan::VlanId;
use axon_wire::{Incarnation, MacAddr, NodeId, PortNo, Span};
use core::net::{Ipv4Addr, Ipv6Addr};

/// The most addresses of one host, IPv4 and IPv6 together. One more takes the place of the oldest.
pub const IPS_PER_HOST_MAX: usize = 16;

/// The configuration that switches and controllers share.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// The node and its incarnation.
    pub incarnation: Incarnation,
    /// Source address of its own Ethernet frames; locally administered in a lab.
    pub mac: MacAddr,
    /// What its control messages are sealed with.
    pub keys: Keys,
    /// The seed of the node's random numbers (challenges). Unpredictable outside a simulation.
    pub seed: u64,
    /// The intervals of the control plane.
    pub timers: Timers,
    /// LLDP and DCBX at the ports; `None` if the node does not run them. The scheduling and PFC to
    /// advertise follow from the configuration of its data plane
    /// ([`DcbxConfig::for_plane`](axon_dcbx::DcbxConfig::for_plane)).
    pub dcbx: Option<Box<DcbxNodeConfig>>,
    /// The address that every host knows as its DHCP server and that switches probe from.
    pub server: ServerIdentity,
}

/// The one identity of the fabric towards hosts. Its MAC never has a route, so every frame that a
/// host sends to it comes to the control plane (paper 001 §4.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerIdentity {
    /// The MAC address, the same at every edge.
    pub mac: MacAddr,
    /// The IPv4 address, the same at every edge.
    pub ip: Ipv4Addr,
}

/// Intervals of the control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timers {
    /// The time between Hellos on a port without neighbour.
    pub hello: Span,
    /// The time between heartbeats. A link is down after two intervals without one, unless the
    /// neighbour's data plane goes on ([`Timers::restart_max`]).
    pub heartbeat: Span,
    /// The time before an unacknowledged control message is sent again.
    pub retry: Span,
    /// The time between ARP probes of a local host.
    pub host_probe: Span,
    /// The number of probes in a row that a host may leave unanswered.
    pub host_probes_max: u32,
    /// The longest time that a reserved route entry waits for its Axon-ARP reply.
    pub arp_wait: Span,
}

impl Default for Timers {
    fn default() -> Timers {
        Timers {
            hello: Span::from_millis(100),
            heartbeat: Span::from_millis(100),
            retry: Span::from_millis(50),
            host_probe: Span::from_secs(5),
            host_probes_max: 3,
            arp_wait: Span::from_secs(3),
        }
    }
}

impl Timers {
    /// For how long a switch may be silent before the controller forgets its hosts: 600 heartbeats
    /// and 100 retries. A switch that was without a path to the controller for half as long reports
    /// all its hosts again. A path that does not work is given up after 30 heartbeats and 10
    /// retries, so whose hosts were forgotten reports them.
    pub fn silence_max(&self) -> Span {
        self.heartbeat * 600 + self.retry * 100
    }

    /// For how long a neighbour may be without a heartbeat while its data plane returns echoes: 100
    /// heartbeats. A node that hangs is removed after that, whatever its data plane does.
    pub fn restart_max(&self) -> Span {
        self.heartbeat * 100
    }

    /// For how long a controller counts the links of a switch's incarnation before that the new
    /// one has not reported: [`Timers::restart_max`], in which the node at the other end is back
    /// if it restarts too, and 10 Hellos to meet it.
    pub fn reunion_max(&self) -> Span {
        self.restart_max() + self.hello * 10
    }

    /// The longest time that a controller takes to decide about a route of its incarnation before:
    /// 100 heartbeats and 50 retries.
    pub(crate) const fn decision_max(&self) -> Span {
        Span::from_ticks(self.heartbeat.ticks() * 100 + self.retry.ticks() * 50)
    }

    /// For how long frames may be in flight on a route that its edge has removed: 100 heartbeats.
    /// Only where a new order of the router replaces another that long counts, and only for flows
    /// that have no path beside the old ones.
    pub fn drain_max(&self) -> Span {
        self.heartbeat * 100
    }

    /// For how long a switch keeps a route of an earlier incarnation of the controller while the
    /// new one can be reached and does not decide about it: 200 heartbeats and 100 retries.
    pub fn inherited_max(&self) -> Span {
        self.decision_max() * 2
    }
}

/// The configuration of a switch.
#[derive(Clone, Debug)]
pub struct SwitchConfig {
    /// The configuration that every node has.
    pub node: NodeConfig,
    /// The most bytes of frames that may wait for routes, over the whole switch.
    pub waiting_bytes_max: usize,
    /// The most hosts at one port. Further hosts are not learned.
    pub hosts_per_port_max: usize,
    /// The control traffic that the hosts of one port may cause.
    pub host_control: ByteLimit,
    /// What becomes of its hosts' frames to groups.
    pub groups: GroupConfig,
    /// By port, what it is trusted with; a port that is missing is any kind of port.
    pub ports: Vec<PortPolicy>,
    /// What the edge serves and guards beside ARP and neighbour discovery, for frames in no VLAN.
    pub services: EdgeServices,
    /// The VLANs of the fabric.
    pub vlans: Vec<EdgeVlan>,
    /// What the switch decides by itself, in a fabric without a controller; `None` in one that has
    /// one.
    pub alone: Option<Box<StaticConfig>>,
}

/// A VLAN as the edges of it know it.
#[derive(Clone, Debug)]
pub struct EdgeVlan {
    /// Its number.
    pub id: VlanId,
    /// Who the fabric is towards its hosts.
    pub server: ServerIdentity,
    /// What its hosts are advertised.
    pub ipv6: Option<Box<Ipv6Config>>,
}

/// The configuration of a switch in a fabric without a controller.
#[derive(Clone, Debug)]
pub struct StaticConfig {
    /// Of the controller within the switch. Its `node` is that of the switch, its router is one
    /// whose choice follows from the graph and the flow alone
    /// ([`RouterKind::is_fixed`]), and its pool is empty.
    pub controller: ControllerConfig,
    /// The topology of the fabric file.
    pub topology: StaticTopology,
}

/// The topology of a fabric file: what all switches know from the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StaticTopology {
    /// The switches, in the same order at each of them.
    pub switches: Vec<StaticSwitch>,
    /// The hosts with fixed addresses, at the places that they have in the file.
    pub hosts: Vec<StoredHost>,
    /// The paths that the file states.
    pub paths: Vec<StatedPath>,
}

/// A switch as the fabric file has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaticSwitch {
    /// The switch.
    pub node: NodeId,
    /// Its ports: other switches, and hosts.
    pub ports: Vec<PortState>,
}

/// What an edge does for the configuration of hosts by themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EdgeServices {
    /// The host that is the DHCP server, if requests are relayed to one. Messages of any other
    /// host to DHCP clients are refused.
    pub dhcp_server: Option<MacAddr>,
    /// Router advertisements; without, the edge neither sends nor refuses any.
    pub ipv6: Option<Box<Ipv6Config>>,
}

/// Router advertisements of edges (RFC 4861, RFC 8106).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ipv6Config {
    /// What is advertised.
    pub advertisement: Advertisement,
    /// Whose address hosts are to take as that of their router; `None` if there is no router.
    pub router: Option<Ipv6Addr>,
    /// The host that is this router: it gets no advertisements, and its own are not refused.
    pub router_host: Option<MacAddr>,
    /// What becomes of requests for DHCPv6; without, the edge neither serves nor refuses any.
    pub dhcp: Option<Dhcpv6Config>,
    /// The time between advertisements at a port that nobody asks for, at least a second.
    pub interval: Span,
}

/// DHCPv6 at the edge (RFC 8415).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dhcpv6Config {
    /// The host that is the server: requests go to it by the relay agent of the controller. `None`
    /// if the edge itself answers requests for information, and no others.
    pub server: Option<MacAddr>,
    /// The address of that host; its link-local one if `None`.
    pub address: Option<Ipv6Addr>,
}

/// How frames to groups and to all are handled at the edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupConfig {
    /// Whether frames to groups go to their members. Otherwise they end at the edge.
    pub multicast: bool,
    /// Whether broadcasts, and frames to the groups of all systems and all nodes, go to all hosts.
    pub broadcast: bool,
    /// How many frames the hosts of one port may send so in a second, and as many at once after a
    /// rest; 0 counts as 1.
    pub frames_per_second: u32,
    /// How many copies of such frames are made for one port in a second, and as many at once after
    /// a rest. At least as many as one frame may have are counted with: 512.
    pub copies_per_second: u32,
    /// The time from one question to the hosts of a port for their groups to the next; a
    /// membership lasts twice as long.
    pub query: Span,
}

impl Default for GroupConfig {
    /// Groups and no broadcasts, 500 frames and 10,000 copies a second, questions as RFC 3376
    /// section 8.2 has them.
    fn default() -> GroupConfig {
        GroupConfig {
            multicast: true,
            broadcast: false,
            frames_per_second: 500,
            copies_per_second: 10_000,
            query: Span::from_secs(125),
        }
    }
}

/// A token bucket over bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteLimit {
    /// Bytes per second in the long run, at least 1.
    pub bytes_per_second: u64,
    /// Bytes at once after a rest.
    pub burst: u64,
}

impl Default for ByteLimit {
    /// 2 Mb/s after a burst of 256 KiB: a host port's thousand frames a second, if they are short.
    fn default() -> ByteLimit {
        ByteLimit { bytes_per_second: 250_000, burst: 256 << 10 }
    }
}

/// What a port of a switch is trusted with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortPolicy {
    /// The port is pinned to hosts: another switch or controller there is refused.
    pub hosts_only: bool,
    /// The port leads to a real network with hosts and routers of its own: no DHCP passes there in
    /// either direction, nor do router advertisements of the edge.
    pub uplink: bool,
    /// The priority regeneration table for hosts there (IEEE 802.1Q clause 6.9.4); `None` if the
    /// data plane has no priorities or hosts may use all.
    pub regeneration: Option<Box<[Priority; PRIORITIES]>>,
    /// The VLANs of hosts there; `None` in a fabric without VLANs.
    pub vlans: Option<Box<PortVlans>>,
    /// The bond that the port is one of, if it is.
    pub bond: Option<LacpConfig>,
}

/// The configuration of a controller.
#[derive(Clone, Debug)]
pub struct ControllerConfig {
    /// The configuration that every node has.
    pub node: NodeConfig,
    /// The DHCP server.
    pub dhcp: DhcpConfig,
    /// The router: how paths are chosen.
    pub router: RouterKind,
    /// The number of route layers that the switches have: 1 to 8.
    pub layers: u8,
    /// Which hosts may reach which.
    pub policy: Policy,
    /// Where hosts behind one port get routes of their own.
    pub by_source: BySource,
    /// Whether edges get a backup route beside each route.
    pub backups: bool,
    /// The server that requests for DHCPv6 are relayed to, if there is one.
    pub dhcpv6: Option<Dhcpv6Relay>,
    /// Ports to real networks.
    pub uplinks: Vec<UplinkConfig>,
    /// The VLANs of the fabric.
    pub vlans: VlanPlan,
    /// Ports that are one place each.
    pub bonds: Vec<BondConfig>,
}

/// Where hosts behind one port get routes of their own, by source and destination, in place of
/// those by destination that they share. A port to a real network has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum BySource {
    /// Nowhere: a port reaches what all its hosts may reach.
    #[default]
    Never,
    /// Where the policy lets a host reach another that a neighbour of it may not.
    Policy,
    /// At every port with several hosts, so that they may take different paths.
    Always,
}

/// A port to a real network (see [`PortPolicy::uplink`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UplinkConfig {
    /// The switch and the port.
    pub at: (NodeId, PortNo),
    /// The address of the gateway there: no host elsewhere has it.
    pub gateway: Ipv4Addr,
}

/// A server of DHCPv6 that is a host of the fabric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dhcpv6Relay {
    /// Its address: link-local, or one of the link's prefix.
    pub ip: Ipv6Addr,
    /// Its MAC address.
    pub mac: MacAddr,
    /// The port that it is at as long as it has not been seen elsewhere.
    pub at: (NodeId, PortNo),
    /// An address of the link's prefix, by which the server knows the link.
    pub link: Ipv6Addr,
    /// The names of switches, for the option that names a client's port.
    pub names: BTreeMap<NodeId, String>,
}

/// The VLANs of a fabric, as its controller knows them.
#[derive(Clone, Debug, Default)]
pub struct VlanPlan {
    /// Each VLAN.
    pub vlans: Vec<VlanConfig>,
    /// The host ports of switches that are in VLANs. What a switch says of hosts of a VLAN at
    /// another port is ignored.
    pub ports: BTreeMap<(NodeId, PortNo), PortVlans>,
}

/// One VLAN.
#[derive(Clone, Debug)]
pub struct VlanConfig {
    /// Its number, never none.
    pub vlan: VlanId,
    /// Who the fabric is towards its hosts.
    pub server: ServerIdentity,
    /// The addresses that its hosts are leased; `None` if they are leased none.
    pub dhcp: Option<DhcpConfig>,
}

/// A bond: ports of one or more switches that lead to one host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BondConfig {
    /// Its name in telemetry.
    pub name: String,
    /// Its ports, in the order in which they are preferred.
    pub members: Vec<(NodeId, PortNo)>,
}

/// The DHCP server's addresses (RFC 2131).
#[derive(Clone, Debug)]
pub struct DhcpConfig {
    /// Prefix length of the subnet that [`ServerIdentity::ip`] is in.
    pub prefix_len: u8,
    /// First address of the pool.
    pub pool_first: Ipv4Addr,
    /// Last address of the pool, itself included.
    pub pool_last: Ipv4Addr,
    /// The duration of a lease.
    pub lease: Span,
    /// The most addresses of the pool that hosts behind one port hold, leased or in use without a
    /// lease: at least 1. As many again, up to 16, may be offered or declined.
    pub leases_per_port_max: usize,
    /// Hosts that always get the same address; it may lie outside the pool.
    pub reservations: BTreeMap<MacAddr, Ipv4Addr>,
    /// Default router to announce, if any.
    pub router: Option<Ipv4Addr>,
    /// Name servers to announce.
    pub dns: Vec<Ipv4Addr>,
    /// The domain to announce (option 15), 1 to 253 bytes.
    pub domain: Option<String>,
    /// The MTU to announce (option 26), in bytes of IP packet, at least 68.
    pub mtu: Option<u16>,
    /// Clients that always get the same address, by their identifier (option 61). It may lie
    /// outside the pool and is none of `reservations`.
    pub clients: BTreeMap<Vec<u8>, Ipv4Addr>,
    /// The server that requests are relayed to; `None` if this server answers them.
    pub relay: Option<RelayConfig>,
}

/// A DHCP server that is a host of the fabric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayConfig {
    /// Its address.
    pub ip: Ipv4Addr,
    /// Its MAC address.
    pub mac: MacAddr,
    /// The port that it is at as long as it has not been seen elsewhere.
    pub at: (NodeId, PortNo),
    /// The names of switches, for option 82.
    pub names: BTreeMap<NodeId, String>,
}
