//! What the steps of the edge share: the context of a call and the timers.

use crate::effect::Effect;
use alloc::vec::Vec;
use axon_node::PortView;
use axon_wire::message::Target;
use axon_wire::{MacAddr, PortNo, Time};

/// The context of a call: the time, the ports as the data plane sees them, and the list of
/// requests.
pub(super) struct Cx<'a> {
    pub(super) now: Time,
    pub(super) ports: &'a dyn PortView,
    pub(super) out: &'a mut Vec<Effect>,
}

/// A timer of the edge. The fields name what it belongs to.
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
