//! Edge of a VLAN: its parts, and reports on it; and what the edges of all VLANs share.

use super::context::{Cx, Timer};
use super::controller::Controller;
use super::failover::DownLinks;
use super::flows::Flow;
use super::hosts::Host;
use super::masqueraded::mixed;
use super::parts::{Call, Parts};
use super::settings::Settings;
use super::tables::Tables;
use crate::config::EdgeConfig;
use crate::effect::Effect;
use alloc::vec::Vec;
use axon_link::config::NodeConfig;
use axon_node::agenda::Agenda;
use axon_node::telemetry::EdgeCounters;
use axon_node::{Capabilities, PortView, RouteKey, Snapshot};
use axon_wire::message::{LinkEnd, RoutePath};
use axon_wire::vlan::VlanId;
use axon_wire::{Incarnation, MacAddr, NodeId, PortNo, Route, Span, Time};
use core::net::IpAddr;

/// State that the edges of all VLANs share.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    node: NodeId,
    heartbeat: Span,
    pub(super) controller: Controller,
    pub(super) tables: Tables,
    down: DownLinks,
    pub(super) counters: EdgeCounters,
}

impl Shared {
    /// Creates the state of a switch without a controller, on a data plane with these capabilities.
    pub(super) fn new(config: &EdgeConfig, has: &Capabilities) -> Shared {
        let NodeConfig { incarnation: Incarnation { node, number }, timers, seed, .. } =
            config.node;
        // Unique to this incarnation of this switch.
        let seed = seed ^ mixed(node.0 ^ mixed(number));
        Shared {
            node,
            heartbeat: timers.heartbeat,
            controller: Controller::new(&timers),
            tables: Tables::new(has, seed, !config.vlans.is_empty()),
            down: DownLinks::default(),
            counters: EdgeCounters::default(),
        }
    }

    /// Records that a link is down; returns whether that is new.
    pub(super) fn link_down(&mut self, now: Time, ends: [LinkEnd; 2]) -> bool {
        self.down.mark(now, self.heartbeat, ends, self.node)
    }

    /// Returns whether the loss of a link is known already.
    pub(super) fn knows_down(&self, now: Time, ends: [LinkEnd; 2]) -> bool {
        self.down.knows(now, self.heartbeat, ends)
    }
}

/// Edge of one VLAN: its hosts, and all that belongs to them.
#[derive(Clone, Debug)]
pub struct Edge {
    vlan: VlanId,
    settings: Settings,
    agenda: Agenda<Timer>,
    parts: Parts,
}

impl Edge {
    /// Creates the edge of a VLAN without hosts, for routes in these tables.
    ///
    /// Intervals below 1 ms count as 1 ms.
    pub(super) fn new(
        (vlan, config): (VlanId, &EdgeConfig),
        has: &Capabilities,
        tables: &Tables,
    ) -> Edge {
        Edge {
            vlan,
            settings: Settings::new(config, has),
            agenda: Agenda::new(),
            parts: Parts::new(config, tables),
        }
    }

    /// Begins a call at `now` with the ports of the data plane. Its requests are appended to
    /// `out`.
    pub(super) fn at<'a>(
        &'a mut self,
        shared: &'a mut Shared,
        (now, ports): (Time, &'a dyn PortView),
        out: &'a mut Vec<Effect>,
    ) -> Call<'a> {
        let Edge { vlan, settings, agenda, parts } = self;
        let Shared { controller, tables, down, counters, .. } = shared;
        let vlan = *vlan;
        parts.call(Cx {
            now,
            vlan,
            ports,
            out,
            settings,
            agenda,
            controller,
            tables,
            down,
            counters,
        })
    }

    /// Returns all routes that the data plane should have: the ingress port and the address in its
    /// table or route memory, the destination, the route.
    pub(super) fn wanted_routes<'a>(
        &'a self,
        tables: &'a Tables,
    ) -> impl Iterator<Item = ((PortNo, RouteKey), MacAddr, &'a Route)> {
        self.parts.routes().installer().wanted(tables)
    }

    /// Records the routes of a data plane that has outlived the previous incarnation. Call it
    /// before anything else.
    pub(super) fn found(&mut self, has: &Snapshot) {
        self.parts.routes_mut().found(has, self.vlan);
    }

    /// Returns whether there are routes that may age.
    pub(super) fn has_flows(&self) -> bool {
        !self.parts.routes().installer().flows().is_empty()
    }

    /// Returns the routes without frames since the last call. `used` is called for each route's
    /// address in the data plane's table or route memory, and returns whether it was used.
    pub(super) fn idle_flows(
        &mut self,
        now: Time,
        tables: &Tables,
        used: impl FnMut(PortNo, RouteKey) -> bool,
    ) -> Vec<(PortNo, RouteKey)> {
        self.parts.routes_mut().idle(now, tables, used)
    }

    /// Returns when to call [`Call::timeout`] next.
    pub(super) fn deadline(&self) -> Option<Time> {
        [self.agenda.next(), self.parts.deadline()].into_iter().flatten().min()
    }

    /// Returns all local hosts, sorted by MAC address.
    pub fn hosts(&self) -> impl Iterator<Item = (MacAddr, &Host)> {
        self.parts.hosts().all()
    }

    /// Returns all flows of local hosts: ingress port, destination, route.
    pub fn flows(&self) -> impl Iterator<Item = (PortNo, MacAddr, &Flow)> {
        self.keyed_flows().map(|((port, key), flow)| (port, key.destination, flow))
    }

    /// Returns all flows of local hosts, with the source of those for one host.
    pub fn keyed_flows(&self) -> impl Iterator<Item = ((PortNo, RouteKey), &Flow)> {
        self.parts.routes().installer().flows().all()
    }

    /// Returns all backups: ingress port, destination, the primary route, the backup route.
    pub fn backups(&self) -> impl Iterator<Item = (PortNo, MacAddr, &RoutePath, &RoutePath)> {
        let all = self.parts.routes().backups().all();
        all.map(|((port, key), primary, backup)| (port, key.destination, primary, backup))
    }

    /// Returns the memberships of hosts at this switch: port, host, group.
    pub fn members(&self) -> impl Iterator<Item = (PortNo, MacAddr, IpAddr)> {
        self.parts.groups().members().all()
    }

    /// Returns the number of route requests to the controller in flight.
    pub fn setups(&self) -> usize {
        self.parts.routes().setups().count()
    }

    #[cfg(test)]
    pub(super) fn parts(&self) -> &Parts {
        &self.parts
    }

    /// Returns the settings, which a test may change before it begins.
    #[cfg(test)]
    pub(super) fn settings(&mut self) -> &mut Settings {
        &mut self.settings
    }

    /// Returns the number of timers.
    #[cfg(test)]
    pub(super) fn timers(&self) -> usize {
        self.agenda.len()
    }
}
