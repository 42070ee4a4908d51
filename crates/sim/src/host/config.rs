//! What a host is made from.

use crate::host::dcb_nic::HostDcb;
use axon_wire::vlan::VlanId;
use axon_wire::{MacAddr, Span};
use std::net::{Ipv4Addr, Ipv6Addr};

/// The configuration of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostConfig {
    /// Its address at layer 2.
    pub mac: MacAddr,
    /// A fixed address and prefix length; DHCP without.
    pub fixed: Option<(Ipv4Addr, u8)>,
    /// Whether it is a gateway: it answers pings to all addresses that are not of its subnet.
    pub is_gateway: bool,
    /// Whether it has IPv6, and a fixed address of it if there is one.
    pub ipv6: Option<Option<Ipv6Addr>>,
    /// Whether it announces a fixed address; otherwise it says nothing before it is asked.
    pub announces: bool,
    /// The longest IP packet it sends, in bytes.
    pub mtu: u16,
    /// Feeds the stack's random numbers.
    pub seed: u64,
    /// Between two tries: DHCP DISCOVER, ARP request, announcement.
    pub retry: Span,
    /// Its NIC has priorities and flow control; without, it has one queue and ignores flow control.
    pub dcb: Option<HostDcb>,
    /// Its VLAN, in a fabric that has some; none in the others, and for hosts in none.
    pub vlan: HostVlan,
    /// Ports of its bond; 0 for a host with one port and no LACP.
    pub bond_ports: u16,
}

/// The VLAN of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostVlan {
    /// The VLAN whose tag all frames of the host have, both ways; none if they have none.
    pub tag: VlanId,
    /// Whether the host remembers whose frames it has received.
    pub remembers: bool,
}
