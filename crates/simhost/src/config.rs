//! Configuration of a host.

use crate::dcb_nic::HostDcb;
use axon_wire::vlan::VlanId;
use axon_wire::{MacAddr, PortNo, Span};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Single port of a host.
pub const PORT: PortNo = PortNo(0);

/// Configuration of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostConfig {
    /// MAC address.
    pub mac: MacAddr,
    /// Fixed address and prefix length; `None` uses DHCP.
    pub fixed: Option<(Ipv4Addr, u8)>,
    /// True if the host is a gateway, which answers pings to all addresses outside its subnet.
    pub is_gateway: bool,
    /// IPv6 with an optional fixed address; `None` disables IPv6.
    pub ipv6: Option<Option<Ipv6Addr>>,
    /// True if the host announces a fixed address. Otherwise it is silent until it receives a
    /// request.
    pub announces: bool,
    /// Maximum IP packet size, in bytes.
    pub mtu: u16,
    /// Seed of the stack's random numbers.
    pub seed: u64,
    /// Retry interval of DHCP DISCOVER, ARP requests and announcements.
    pub retry: Span,
    /// Priorities and flow control of the NIC; `None` has one queue and ignores flow control.
    pub dcb: Option<HostDcb>,
    /// VLAN of the host, in a fabric with VLANs.
    pub vlan: HostVlan,
    /// Number of bond ports; 0 for a host with one port and no LACP.
    pub bond_ports: u16,
}

/// VLAN of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostVlan {
    /// VLAN ID of the tag on all frames of the host, in both directions; none if untagged.
    pub tag: VlanId,
    /// True if the host records the senders of received frames.
    pub remembers: bool,
}
