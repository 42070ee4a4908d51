//! Unanswered ARP requests and solicitations to local hosts.

use axon_wire::message::ArpTarget;
use axon_wire::{MacAddr, PortNo, Time};
use core::net::IpAddr;

/// Key of a query: target port, target host, source host.
pub(super) type QueryKey = (PortNo, MacAddr, MacAddr);

/// ARP request to a local host on behalf of a remote one.
#[derive(Clone, Debug)]
pub(super) struct Query {
    pub(super) m: ArpTarget,
    pub(super) target_ip: IpAddr,
    pub(super) tries: u32,
    pub(super) until: Time,
}
