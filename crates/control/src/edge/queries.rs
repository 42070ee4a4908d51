//! ARP requests to local hosts that are not answered yet.

use axon_wire::message::ArpTarget;
use axon_wire::{MacAddr, PortNo, Time};
use core::net::Ipv4Addr;

/// Target port, target host, source host.
pub(super) type QueryKey = (PortNo, MacAddr, MacAddr);

/// A local host was asked whether it is there, for the sake of a remote one.
#[derive(Debug)]
pub(super) struct Query {
    pub(super) m: ArpTarget,
    pub(super) target_ip: Ipv4Addr,
    pub(super) tries: u32,
    pub(super) until: Time,
}

/// A host that is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recall {
    pub(super) ip: Ipv4Addr,
    pub(super) tries: u64,
}
