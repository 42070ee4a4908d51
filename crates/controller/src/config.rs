//! Configuration of a controller: addresses, routes, VLANs, bonds, uplinks.

use crate::policy::Policy;
use crate::router::{RouterKind, StatedPath};
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use axon_link::config::{NodeConfig, ServerIdentity};
use axon_node::{PortVlans, StoredHost};
use axon_wire::message::PortState;
use axon_wire::vlan::VlanId;
use axon_wire::{MacAddr, NodeId, PortNo, Span};
use core::net::{Ipv4Addr, Ipv6Addr};

/// Topology from a fabric file, available to all switches from the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StaticTopology {
    /// Switches, in the same order at every switch.
    pub switches: Vec<StaticSwitch>,
    /// Hosts with fixed addresses, at the ports given in the file.
    pub hosts: Vec<StoredHost>,
    /// Explicit paths given in the file.
    pub paths: Vec<StatedPath>,
}

/// Switch in a fabric file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaticSwitch {
    /// Node ID.
    pub node: NodeId,
    /// Ports of the switch that lead to other switches or to hosts.
    pub ports: Vec<PortState>,
}

/// Configuration of a controller.
#[derive(Clone, Debug)]
pub struct ControllerConfig {
    /// Configuration that is common to all nodes.
    pub node: NodeConfig,
    /// Configuration of the DHCP server.
    pub dhcp: DhcpConfig,
    /// Kind of router, which chooses the paths.
    pub router: RouterKind,
    /// Number of route layers in the switches, 1 to 8.
    pub layers: u8,
    /// Policy that determines which hosts may reach each other.
    pub policy: Policy,
    /// Selects the ports where routes are looked up by source and destination.
    pub by_source: BySource,
    /// True if edges get a backup for each route.
    pub backups: bool,
    /// DHCPv6 server to which requests are relayed, if any.
    pub dhcpv6: Option<Dhcpv6Relay>,
    /// Ports that lead to external networks.
    pub uplinks: Vec<UplinkConfig>,
    /// VLANs in the fabric.
    pub vlans: VlanPlan,
    /// Bonds in the fabric.
    pub bonds: Vec<BondConfig>,
}

/// Selects where hosts behind one port have routes by source and destination instead of shared
/// routes by destination. Does not apply to a port to an external network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum BySource {
    /// Never. All hosts at a port reach everything that any of them may reach together.
    #[default]
    Never,
    /// On ports with hosts that have different rights. There, the policy lets one host reach a
    /// destination that another host at the same port may not reach.
    Policy,
    /// On every port with several hosts, so that their frames may take different paths.
    Always,
}

/// Port to an external network (see `PortPolicy::uplink` in the edge).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UplinkConfig {
    /// Switch and port of the uplink.
    pub at: (NodeId, PortNo),
    /// Address of the gateway in the external network. No other host may use it.
    pub gateway: Ipv4Addr,
}

/// DHCPv6 server that is a host in the fabric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dhcpv6Relay {
    /// IPv6 address: link-local, or within the prefix of the link.
    pub ip: Ipv6Addr,
    /// MAC address.
    pub mac: MacAddr,
    /// Switch and port where the server is assumed to be until it is seen at another port.
    pub at: (NodeId, PortNo),
    /// Address within the link's prefix, by which the server recognizes the link.
    pub link: Ipv6Addr,
    /// Names of the switches, for the option that identifies a client's port.
    pub names: BTreeMap<NodeId, String>,
}

/// VLANs in a fabric, as configured at its controller.
#[derive(Clone, Debug, Default)]
pub struct VlanPlan {
    /// Configurations of all VLANs.
    pub vlans: Vec<VlanConfig>,
    /// VLANs of each switch's host ports. A report of a VLAN's host on any other port is ignored.
    pub ports: BTreeMap<(NodeId, PortNo), PortVlans>,
}

/// Configuration of one VLAN.
#[derive(Clone, Debug)]
pub struct VlanConfig {
    /// VLAN ID, never `VlanId::NONE`.
    pub vlan: VlanId,
    /// Identity of the fabric as seen by hosts in the VLAN.
    pub server: ServerIdentity,
    /// DHCP server for the VLAN, or `None` if no addresses are leased there.
    pub dhcp: Option<DhcpConfig>,
}

/// Bond: ports on one or more switches that lead to one host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BondConfig {
    /// Name used in telemetry.
    pub name: String,
    /// Member ports, in order of preference.
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
    /// Maximum number of pool addresses for the hosts at one port, at least 1. It covers addresses
    /// that are leased and those in use without a lease. The same number again, but at most 16, may
    /// be offered or declined.
    pub leases_per_port_max: usize,
    /// Fixed addresses, by MAC address. They may lie outside the pool.
    pub reservations: BTreeMap<MacAddr, Ipv4Addr>,
    /// Default router announced to clients, if any.
    pub router: Option<Ipv4Addr>,
    /// Name servers announced to clients.
    pub dns: Vec<Ipv4Addr>,
    /// Domain name announced to clients (option 15), 1 to 253 bytes.
    pub domain: Option<String>,
    /// MTU announced to clients (option 26), in bytes of IP packet, at least 68.
    pub mtu: Option<u16>,
    /// Fixed addresses, by client identifier (option 61). They may lie outside the pool and must
    /// not be in `reservations`.
    pub clients: BTreeMap<Vec<u8>, Ipv4Addr>,
    /// Server to which requests are relayed, or `None` if this server answers them itself.
    pub relay: Option<RelayConfig>,
}

/// DHCP server that is a host in the fabric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayConfig {
    /// IPv4 address.
    pub ip: Ipv4Addr,
    /// MAC address.
    pub mac: MacAddr,
    /// Switch and port where the server is assumed to be until it is seen at another port.
    pub at: (NodeId, PortNo),
    /// Names of the switches, for option 82.
    pub names: BTreeMap<NodeId, String>,
}
