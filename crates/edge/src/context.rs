//! Context shared by the parts of the edge, and the timers.

use super::controller::Controller;
use super::settings::Settings;
use crate::effect::Effect;
use alloc::vec::Vec;
use axon_node::PortView;
use axon_node::agenda::Agenda;
use axon_node::telemetry::EdgeCounters;
use axon_wire::message::{Item, Target};
use axon_wire::{MacAddr, PortNo, Time};

/// Context of a call: the time, the ports of the data plane, and the list of requests, with what
/// all parts of an edge share.
pub(super) struct Cx<'a> {
    pub(super) now: Time,
    pub(super) ports: &'a dyn PortView,
    pub(super) out: &'a mut Vec<Effect>,
    pub(super) settings: &'a Settings,
    pub(super) controller: &'a mut Controller,
    pub(super) agenda: &'a mut Agenda<Timer>,
    pub(super) counters: &'a mut EdgeCounters,
}

impl Cx<'_> {
    /// Reports to the controller, if it is reachable.
    pub(super) fn report(&mut self, item: Item) {
        if self.controller.is_reachable() {
            self.out.push(Effect::Report(item));
        }
    }
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
