//! What a host is made from.

use crate::host::dcb_nic::HostDcb;
use axon_wire::{MacAddr, Span};
use std::net::Ipv4Addr;

/// The configuration of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostConfig {
    /// Its address at layer 2.
    pub mac: MacAddr,
    /// A fixed address and prefix length; DHCP without.
    pub fixed: Option<(Ipv4Addr, u8)>,
    /// Whether it is a gateway: it answers pings to all addresses that are not of its subnet.
    pub is_gateway: bool,
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
}
