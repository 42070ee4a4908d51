//! Configuration of switches and controllers, with every limit and interval.

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

/// Maximum number of addresses of one host, IPv4 and IPv6 together. Another one replaces the
/// oldest.
pub const IPS_PER_HOST_MAX: usize = 16;

/// Configuration shared by switches and controllers.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// The node and its incarnation.
    pub incarnation: Incarnation,
    /// Source address of the node's own Ethernet frames; locally administered in a lab.
    pub mac: MacAddr,
    /// Keys for sealing control messages.
    pub keys: Keys,
    /// Seed of the node's random numbers (challenges). Unpredictable outside a simulation.
    pub seed: u64,
    /// Intervals of the control plane.
    pub timers: Timers,
    /// LLDP and DCBX on the ports; `None` disables them. The advertised scheduling and PFC follow
    /// from the configuration of the data plane
    /// ([`DcbxConfig::for_plane`](axon_dcbx::DcbxConfig::for_plane)).
    pub dcbx: Option<Box<DcbxNodeConfig>>,
    /// Address of the DHCP server as hosts see it; also the source of the switches' probes.
    pub server: ServerIdentity,
}

/// Identity of the fabric towards hosts. Its MAC address never has a route, so every frame that a
/// host sends to it reaches the control plane (paper 001 §4.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerIdentity {
    /// MAC address, the same at every edge.
    pub mac: MacAddr,
    /// IPv4 address, the same at every edge.
    pub ip: Ipv4Addr,
}

/// Intervals of the control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timers {
    /// Interval between Hellos on a port without a neighbour.
    pub hello: Span,
    /// Interval between heartbeats. A link is down after two intervals without one, unless the
    /// neighbour's data plane still forwards ([`Timers::restart_max`]).
    pub heartbeat: Span,
    /// Time until an unacknowledged control message is sent again.
    pub retry: Span,
    /// Interval between ARP probes of a local host.
    pub host_probe: Span,
    /// Number of consecutive probes that a host may leave unanswered.
    pub host_probes_max: u32,
    /// Longest time that a reserved route entry waits for its Axon-ARP reply.
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
    /// Returns how long a switch may be silent before the controller removes its hosts: 600
    /// heartbeats and 100 retries. A switch reports all its hosts again after half that time
    /// without a path to the controller. It gives up a path that does not work after 30 heartbeats
    /// and 10 retries, so a switch whose hosts were removed always reports them.
    pub fn silence_max(&self) -> Span {
        self.heartbeat * 600 + self.retry * 100
    }

    /// Returns how long a neighbour may be without a heartbeat while its data plane returns echoes:
    /// 100 heartbeats. A node that hangs is removed after that, even if its data plane still
    /// forwards.
    pub fn restart_max(&self) -> Span {
        self.heartbeat * 100
    }

    /// Returns how long a controller counts links of a switch's previous incarnation that the new
    /// one has not reported: [`Timers::restart_max`], in which a restarting neighbour is back, and
    /// 10 Hellos for the handshake.
    pub fn reunion_max(&self) -> Span {
        self.restart_max() + self.hello * 10
    }

    /// Returns the longest time that a controller takes to decide about a route of its previous
    /// incarnation: 100 heartbeats and 50 retries.
    pub(crate) const fn decision_max(&self) -> Span {
        Span::from_ticks(self.heartbeat.ticks() * 100 + self.retry.ticks() * 50)
    }

    /// Returns how long frames may be in flight on a route that its edge has removed: 100
    /// heartbeats. Used only when a router replaces its order of switches, for flows without a path
    /// that is compatible with the old one.
    pub fn drain_max(&self) -> Span {
        self.heartbeat * 100
    }

    /// Returns how long a switch keeps a route of an earlier incarnation of the controller while
    /// the new one is reachable and has not decided about it: 200 heartbeats and 100 retries.
    pub fn inherited_max(&self) -> Span {
        self.decision_max() * 2
    }
}

/// Configuration of a switch.
#[derive(Clone, Debug)]
pub struct SwitchConfig {
    /// Configuration common to every node.
    pub node: NodeConfig,
    /// Maximum number of bytes of queued frames without a route, over the whole switch.
    pub waiting_bytes_max: usize,
    /// Maximum number of hosts on one port. Further hosts are not learned.
    pub hosts_per_port_max: usize,
    /// Limit of the control traffic caused by the hosts of one port.
    pub host_control: ByteLimit,
    /// Handling of hosts' multicast and broadcast frames.
    pub groups: GroupConfig,
    /// Policy of each port; a port without an entry may be of any kind.
    pub ports: Vec<PortPolicy>,
    /// Services and guards of the edge besides ARP and neighbour discovery, for untagged frames.
    pub services: EdgeServices,
    /// VLANs of the fabric.
    pub vlans: Vec<EdgeVlan>,
    /// Static control plane, for a fabric without a controller; `None` if the fabric has one.
    pub alone: Option<Box<StaticConfig>>,
}

/// A VLAN, as configured at its edges.
#[derive(Clone, Debug)]
pub struct EdgeVlan {
    /// VLAN ID.
    pub id: VlanId,
    /// Identity of the fabric towards hosts of the VLAN.
    pub server: ServerIdentity,
    /// Router advertisements to hosts of the VLAN.
    pub ipv6: Option<Box<Ipv6Config>>,
}

/// Configuration of a switch in a fabric without a controller.
#[derive(Clone, Debug)]
pub struct StaticConfig {
    /// Configuration of the controller within the switch. `node` is that of the switch, the router
    /// depends on the graph and the flow alone ([`RouterKind::is_fixed`]), and the address pool is
    /// empty.
    pub controller: ControllerConfig,
    /// Topology of the fabric file.
    pub topology: StaticTopology,
}

/// Topology of a fabric file, available to all switches from the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StaticTopology {
    /// Switches, in the same order at each of them.
    pub switches: Vec<StaticSwitch>,
    /// Hosts with fixed addresses, at their ports in the file.
    pub hosts: Vec<StoredHost>,
    /// Explicit paths in the file.
    pub paths: Vec<StatedPath>,
}

/// A switch of the fabric file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaticSwitch {
    /// Node ID.
    pub node: NodeId,
    /// Ports that lead to other switches or to hosts.
    pub ports: Vec<PortState>,
}

/// Services and guards of an edge besides ARP and neighbour discovery.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EdgeServices {
    /// Host that runs the DHCP server, if requests are relayed. DHCP server messages from any other
    /// host are refused.
    pub dhcp_server: Option<MacAddr>,
    /// Router advertisements; if `None`, the edge neither sends nor refuses any.
    pub ipv6: Option<Box<Ipv6Config>>,
}

/// Router advertisements of edges (RFC 4861, RFC 8106).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ipv6Config {
    /// Content of the advertisements.
    pub advertisement: Advertisement,
    /// Router address advertised to hosts; `None` if there is no router.
    pub router: Option<Ipv6Addr>,
    /// Host that is this router. It gets no advertisements, and its own are not refused.
    pub router_host: Option<MacAddr>,
    /// DHCPv6; if `None`, the edge neither serves nor refuses it.
    pub dhcp: Option<Dhcpv6Config>,
    /// Interval between unsolicited advertisements on a port, at least one second.
    pub interval: Span,
}

/// DHCPv6 at the edge (RFC 8415).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dhcpv6Config {
    /// Host that runs the server; the controller's relay agent forwards requests to it. If `None`,
    /// the edge answers information requests itself, and no other requests.
    pub server: Option<MacAddr>,
    /// Address of that host; `None` for its link-local address.
    pub address: Option<Ipv6Addr>,
}

/// Handling of multicast and broadcast frames at the edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupConfig {
    /// True if multicast frames reach their members. Otherwise the edge drops them.
    pub multicast: bool,
    /// True if broadcasts, and frames to the all-systems and all-nodes groups, reach all hosts.
    pub broadcast: bool,
    /// Multicast and broadcast frames per second that the hosts of one port may send; also the
    /// burst size. 0 counts as 1.
    pub frames_per_second: u32,
    /// Copies of such frames per second made for one port; also the burst size. The minimum is 512,
    /// the most copies of one frame.
    pub copies_per_second: u32,
    /// Interval between membership queries on a port. A membership lasts two intervals.
    pub query: Span,
}

impl Default for GroupConfig {
    /// Multicast without broadcast, 500 frames and 10,000 copies a second, and the query interval
    /// of RFC 3376 section 8.2.
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

/// Token bucket over bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteLimit {
    /// Sustained rate in bytes per second, at least 1.
    pub bytes_per_second: u64,
    /// Burst size in bytes.
    pub burst: u64,
}

impl Default for ByteLimit {
    /// 2 Mb/s with a burst of 256 KiB: about a thousand short frames a second.
    fn default() -> ByteLimit {
        ByteLimit { bytes_per_second: 250_000, burst: 256 << 10 }
    }
}

/// Policy of a switch port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortPolicy {
    /// True if the port is pinned to hosts. A switch or controller there is refused.
    pub hosts_only: bool,
    /// True if the port leads to an external network with its own hosts and routers. DHCP does not
    /// pass in either direction, and the edge sends no router advertisements there.
    pub uplink: bool,
    /// Priority regeneration table for hosts of the port (IEEE 802.1Q clause 6.9.4); `None` if the
    /// data plane has no priorities or hosts may use all of them.
    pub regeneration: Option<Box<[Priority; PRIORITIES]>>,
    /// VLANs of hosts on the port; `None` in a fabric without VLANs.
    pub vlans: Option<Box<PortVlans>>,
    /// LACP configuration, if the port is a member of a bond.
    pub bond: Option<LacpConfig>,
}

/// Configuration of a controller.
#[derive(Clone, Debug)]
pub struct ControllerConfig {
    /// Configuration common to every node.
    pub node: NodeConfig,
    /// DHCP server.
    pub dhcp: DhcpConfig,
    /// Router, which chooses paths.
    pub router: RouterKind,
    /// Number of route layers of the switches, 1 to 8.
    pub layers: u8,
    /// Policy of which hosts may reach which.
    pub policy: Policy,
    /// Use of routes by source and destination.
    pub by_source: BySource,
    /// True if edges get a backup route for each route.
    pub backups: bool,
    /// DHCPv6 server to relay requests to, if any.
    pub dhcpv6: Option<Dhcpv6Relay>,
    /// Ports to external networks.
    pub uplinks: Vec<UplinkConfig>,
    /// VLANs of the fabric.
    pub vlans: VlanPlan,
    /// Bonds.
    pub bonds: Vec<BondConfig>,
}

/// Use of routes by source and destination for hosts behind one port, instead of shared routes by
/// destination. Not applied to a port to an external network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum BySource {
    /// Never. A port reaches everything that its hosts together may reach.
    #[default]
    Never,
    /// On ports with hosts of different rights: the policy lets one host reach a destination that a
    /// second host of the same port may not.
    Policy,
    /// On every port with several hosts, so that they may take different paths.
    Always,
}

/// A port to an external network (see [`PortPolicy::uplink`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UplinkConfig {
    /// Switch and port.
    pub at: (NodeId, PortNo),
    /// Address of the gateway there. No other host may use it.
    pub gateway: Ipv4Addr,
}

/// A DHCPv6 server that is a host of the fabric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dhcpv6Relay {
    /// IPv6 address: link-local, or within the prefix of the link.
    pub ip: Ipv6Addr,
    /// MAC address.
    pub mac: MacAddr,
    /// Switch and port where the server is assumed to be until it is seen elsewhere.
    pub at: (NodeId, PortNo),
    /// Address within the link's prefix, by which the server identifies the link.
    pub link: Ipv6Addr,
    /// Names of switches, for the option that identifies a client's port.
    pub names: BTreeMap<NodeId, String>,
}

/// VLANs of a fabric, as configured at its controller.
#[derive(Clone, Debug, Default)]
pub struct VlanPlan {
    /// All VLANs.
    pub vlans: Vec<VlanConfig>,
    /// Host ports of switches and their VLANs. A report of a VLAN's host on any other port is
    /// ignored.
    pub ports: BTreeMap<(NodeId, PortNo), PortVlans>,
}

/// Configuration of one VLAN.
#[derive(Clone, Debug)]
pub struct VlanConfig {
    /// VLAN ID, never `VlanId::NONE`.
    pub vlan: VlanId,
    /// Identity of the fabric towards hosts of the VLAN.
    pub server: ServerIdentity,
    /// DHCP server of the VLAN; `None` if it leases no addresses.
    pub dhcp: Option<DhcpConfig>,
}

/// A bond: ports of one or more switches that lead to one host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BondConfig {
    /// Name in telemetry.
    pub name: String,
    /// Member ports, most preferred first.
    pub members: Vec<(NodeId, PortNo)>,
}

/// Configuration of the DHCP server (RFC 2131).
#[derive(Clone, Debug)]
pub struct DhcpConfig {
    /// Prefix length of the subnet of [`ServerIdentity::ip`].
    pub prefix_len: u8,
    /// First address of the pool.
    pub pool_first: Ipv4Addr,
    /// Last address of the pool, inclusive.
    pub pool_last: Ipv4Addr,
    /// Duration of a lease.
    pub lease: Span,
    /// Maximum number of pool addresses held by hosts of one port, leased or in use without a
    /// lease; at least 1. The same number again, up to 16, may be offered or declined.
    pub leases_per_port_max: usize,
    /// Fixed addresses by MAC address; they may lie outside the pool.
    pub reservations: BTreeMap<MacAddr, Ipv4Addr>,
    /// Default router to announce, if any.
    pub router: Option<Ipv4Addr>,
    /// Name servers to announce.
    pub dns: Vec<Ipv4Addr>,
    /// Domain name to announce (option 15), 1 to 253 bytes.
    pub domain: Option<String>,
    /// MTU to announce (option 26), in bytes of IP packet, at least 68.
    pub mtu: Option<u16>,
    /// Fixed addresses by client identifier (option 61). They may lie outside the pool and must not
    /// be in `reservations`.
    pub clients: BTreeMap<Vec<u8>, Ipv4Addr>,
    /// Server to relay requests to; `None` if this server answers them.
    pub relay: Option<RelayConfig>,
}

/// A DHCP server that is a host of the fabric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayConfig {
    /// IPv4 address.
    pub ip: Ipv4Addr,
    /// MAC address.
    pub mac: MacAddr,
    /// Switch and port where the server is assumed to be until it is seen elsewhere.
    pub at: (NodeId, PortNo),
    /// Names of switches, for option 82.
    pub names: BTreeMap<NodeId, String>,
}
