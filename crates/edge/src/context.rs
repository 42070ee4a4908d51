//! Context shared by the parts of the edge, and the timers.

use super::controller::Controller;
use super::failover::DownLinks;
use super::settings::Settings;
use super::tables::Tables;
use crate::effect::Effect;
use alloc::vec::Vec;
use axon_node::agenda::Agenda;
use axon_node::telemetry::EdgeCounters;
use axon_node::{PortView, RouteKey};
use axon_wire::message::{Item, Target};
use axon_wire::vlan::VlanId;
use axon_wire::{MacAddr, PortNo, Time};

/// Context of a call: the time, the VLAN, the ports of the data plane, and the list of requests,
/// with what all parts of an edge share.
pub(super) struct Cx<'a> {
    pub(super) now: Time,
    pub(super) vlan: VlanId,
    /// Ports of the data plane. Those that are not in the VLAN are no host ports.
    pub(super) ports: &'a dyn PortView,
    pub(super) out: &'a mut Vec<Effect>,
    /// Settings of this VLAN.
    pub(super) settings: &'a Settings,
    /// Timers of this VLAN.
    pub(super) agenda: &'a mut Agenda<Timer>,
    /// Relation of all VLANs to the controller.
    pub(super) controller: &'a Controller,
    /// Route tables of all VLANs.
    pub(super) tables: &'a mut Tables,
    /// Links that are down.
    pub(super) down: &'a DownLinks,
    /// Counters of all VLANs.
    pub(super) counters: &'a mut EdgeCounters,
}

impl Cx<'_> {
    /// Returns the route key of frames to a host of this VLAN, from any source.
    pub(super) fn to(&self, destination: MacAddr) -> RouteKey {
        RouteKey { vlan: self.vlan, ..RouteKey::to(destination) }
    }

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
