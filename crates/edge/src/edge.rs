//! Edge of a switch: what its parts share, and reports on it.

use super::context::{Cx, Timer};
use super::controller::Controller;
use super::flows::Flow;
use super::hosts::Host;
use super::install::Installer;
use super::parts::{Call, Parts};
use super::settings::Settings;
use crate::config::EdgeConfig;
use crate::effect::Effect;
use alloc::vec::Vec;
use axon_link::member::Member;
use axon_node::agenda::Agenda;
use axon_node::telemetry::{EdgeCounters, EdgeDebts};
use axon_node::{Capabilities, PortView, RouteKey, Snapshot};
use axon_wire::message::{LinkEnd, RoutePath};
use axon_wire::{MacAddr, PortNo, Route, Time};
use core::net::IpAddr;

/// Edge of one switch: its parts, and what they share. [`Edge::at`] begins a call.
#[derive(Clone, Debug)]
pub struct Edge {
    settings: Settings,
    controller: Controller,
    agenda: Agenda<Timer>,
    counters: EdgeCounters,
    parts: Parts,
}

impl Edge {
    /// Creates the edge of a switch whose ports have no carrier and that has no controller yet, on
    /// a data plane with these capabilities.
    ///
    /// Intervals below 1 ms count as 1 ms.
    pub fn new(config: &EdgeConfig, has: &Capabilities) -> Edge {
        Edge {
            settings: Settings::new(config, has),
            controller: Controller::new(&config.node.timers),
            agenda: Agenda::new(),
            counters: EdgeCounters::default(),
            parts: Parts::new(config, has),
        }
    }

    /// Begins a call at `now` with the ports of the data plane. Its requests are appended to
    /// `out`.
    pub fn at<'a>(
        &'a mut self,
        now: Time,
        ports: &'a dyn PortView,
        out: &'a mut Vec<Effect>,
    ) -> Call<'a> {
        let Edge { settings, controller, agenda, counters, parts } = self;
        parts.call(Cx { now, ports, out, settings, controller, agenda, counters })
    }

    /// Returns all routes that the data plane should have: the ingress port and the address in its
    /// table or route memory, the destination, the route.
    pub fn wanted_routes(&self) -> impl Iterator<Item = ((PortNo, RouteKey), MacAddr, &Route)> {
        self.installer().wanted()
    }

    /// Returns the masqueraded address of a destination for hosts of `port`, if it has one.
    pub fn masquerade_of(&self, port: PortNo, destination: MacAddr) -> Option<MacAddr> {
        let (_, address) = self.installer().tables().address((port, destination.into()));
        Some(address.destination).filter(|mac| *mac != destination)
    }

    /// Records the routes of a data plane that has outlived the previous incarnation. Call it
    /// before anything else.
    pub fn found(&mut self, has: &Snapshot) {
        self.parts.found(has);
    }

    /// Records that a link is down, detected by this switch or another. Returns whether that is
    /// new; then it must be passed on before [`Call::fail_over`].
    pub fn link_down(&mut self, now: Time, ends: [LinkEnd; 2]) -> bool {
        self.parts.link_down(now, &self.settings, ends)
    }

    /// Returns whether the loss of a link is known already.
    pub fn knows_down(&self, now: Time, ends: [LinkEnd; 2]) -> bool {
        self.parts.routes().backups().knows(now, self.settings.heartbeat, ends)
    }

    /// Returns whether there are routes that may age.
    pub fn has_flows(&self) -> bool {
        !self.installer().flows().is_empty()
    }

    /// Returns the routes without frames since the last call. `used` is called for each route's
    /// address in the data plane's table or route memory, and returns whether it was used.
    ///
    /// Returns none while the controller is unreachable, because it could not set them up again.
    pub fn idle_flows(
        &mut self,
        now: Time,
        used: impl FnMut(PortNo, RouteKey) -> bool,
    ) -> Vec<(PortNo, RouteKey)> {
        let idle = self.parts.idle(now, used);
        if self.controller.is_reachable() { idle } else { Vec::new() }
    }

    /// Returns when to call [`Call::timeout`] next.
    pub fn deadline(&self) -> Option<Time> {
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
        self.installer().flows().all()
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

    /// Returns the bond ports, in order.
    pub fn bond_ports(&self) -> impl Iterator<Item = (PortNo, Member)> {
        self.parts.bonds().ports()
    }

    /// Returns the number of route requests to the controller in flight.
    pub fn setups(&self) -> usize {
        self.parts.routes().setups().count()
    }

    /// Returns the counters of this edge since its start.
    pub fn counters(&self) -> EdgeCounters {
        let tables = self.installer().tables();
        EdgeCounters {
            answers_lost: tables.losses(),
            macs_masqueraded: tables.given_count() as u64,
            ..self.counters
        }
    }

    /// Returns the outstanding answers of the data plane.
    pub fn debts(&self) -> EdgeDebts {
        self.installer().tables().debts()
    }

    /// Returns the flows and tables.
    fn installer(&self) -> &Installer {
        self.parts.routes().installer()
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
