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

/// A port to an external network (see `PortPolicy::uplink` of the edge).
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
