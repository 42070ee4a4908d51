//! Configuration of an edge switch, with its limits.

use alloc::boxed::Box;
use alloc::vec::Vec;
use axon_link::config::{NodeConfig, ServerIdentity};
use axon_link::lacp::LacpConfig;
use axon_node::PortVlans;
use axon_wire::priority::{PRIORITIES, Priority};
use axon_wire::router::Advertisement;
use axon_wire::vlan::VlanId;
use axon_wire::{MacAddr, Span};
use core::net::Ipv6Addr;

/// Configuration of an edge switch.
#[derive(Clone, Debug)]
pub struct EdgeConfig {
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
