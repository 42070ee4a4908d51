//! Context shared by the steps of the edge, and the timers.

use alloc::vec::Vec;
use axon_link::effect::Effect;
use axon_node::PortView;
use axon_wire::message::Target;
use axon_wire::{MacAddr, PortNo, Time};

/// Context of a call: the time, the ports of the data plane, and the list of requests.
pub(super) struct Cx<'a> {
    pub(super) now: Time,
    pub(super) ports: &'a dyn PortView,
    pub(super) out: &'a mut Vec<Effect>,
}

/// Timer of the edge. The fields identify its subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    Host(MacAddr),
    Setup(PortNo, Target, MacAddr),
    Failed(PortNo, Target, MacAddr),
    Query(PortNo, MacAddr, MacAddr),
    Recall(PortNo, MacAddr),
    Place(PortNo),
    Sought(PortNo),
    Groups(PortNo),
    Advertise(PortNo),
}
