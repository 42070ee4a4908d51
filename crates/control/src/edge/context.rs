//! What the steps of the edge share: the context of a call and the timers.

use crate::effect::Effect;
use alloc::vec::Vec;
use axon_node::PortView;
use axon_wire::message::Target;
use axon_wire::{MacAddr, PortNo, Time};
use core::net::{IpAddr, Ipv4Addr};

/// What comes with every call: the time, what the data plane knows of its ports, and the list of
/// requests.
pub(super) struct Cx<'a> {
    pub(super) now: Time,
    pub(super) ports: &'a dyn PortView,
    pub(super) out: &'a mut Vec<Effect>,
}

/// What may be due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    Host(MacAddr),
    Setup(PortNo, Target),
    Failed(PortNo, Target),
    Query(PortNo, MacAddr, MacAddr),
    Recall(PortNo, MacAddr),
    Place(PortNo),
}

/// The IPv4 address, where it is one.
pub(super) fn ipv4(ip: Option<IpAddr>) -> Option<Ipv4Addr> {
    match ip? {
        IpAddr::V4(ip) => Some(ip),
        IpAddr::V6(_) => None,
    }
}
