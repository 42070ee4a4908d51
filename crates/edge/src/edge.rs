//! Edge of a switch, and the calls of its node.

use super::context::{Cx, Timer};
use super::controller::Controller;
use super::fate::Fate;
use super::flows::Flow;
use super::hosts::Host;
use super::install::Installer;
use super::parts::Parts;
use super::settings::Settings;
use crate::config::EdgeConfig;
use alloc::vec::Vec;
use axon_link::effect::Effect;
use axon_link::member::Member;
use axon_node::agenda::Agenda;
use axon_node::telemetry::{EdgeCounters, EdgeDebts};
use axon_node::{Capabilities, Drop, PortView, RouteAnswer, RouteKey, Snapshot};
use axon_wire::message::{ArpReply, ArpTarget, HostFrame, Item, LinkEnd, RoutePath, Seek};
use axon_wire::{Incarnation, MacAddr, PortNo, Route, Time};
use core::net::IpAddr;

/// Edge of one switch. It appends its requests to `out`.
///
/// Each call is handled by the `Parts`, with the context that they share.
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

    /// Returns the parts, with the context of a call.
    fn call<'a>(
        &'a mut self,
        now: Time,
        ports: &'a dyn PortView,
        out: &'a mut Vec<Effect>,
    ) -> (&'a mut Parts, Cx<'a>) {
        let Edge { settings, controller, agenda, counters, parts } = self;
        (parts, Cx { now, ports, out, settings, controller, agenda, counters })
    }

    /// Handles a host's frame without Axon header that had no route.
    ///
    /// Queued frames leave with [`Effect::Release`] or are dropped with [`Effect::Abandon`].
    ///
    /// # Errors
    /// The drop reason, if the frame is dropped now.
    pub fn host_frame(
        &mut self,
        now: Time,
        port: PortNo,
        frame: &[u8],
        ports: &dyn PortView,
        out: &mut Vec<Effect>,
    ) -> Result<Fate, Drop> {
        let (parts, mut cx) = self.call(now, ports, out);
        parts.serve(&mut cx, port, frame)
    }

    /// Copies a frame that waited for its list.
    pub fn waited_for_list(
        &mut self,
        (now, port): (Time, PortNo),
        frame: &[u8],
        ports: &dyn PortView,
        out: &mut Vec<Effect>,
    ) -> Result<Fate, Drop> {
        let (parts, mut cx) = self.call(now, ports, out);
        parts.waited_for_list(&mut cx, port, frame)
    }

    /// Handles phase II of Axon-ARP: the controller looks up a host of this switch.
    pub fn arp_target(
        &mut self,
        now: Time,
        m: ArpTarget,
        ports: &dyn PortView,
        out: &mut Vec<Effect>,
    ) {
        let (parts, mut cx) = self.call(now, ports, out);
        parts.phase_two(&mut cx, m);
    }

    /// Handles phase IV of Axon-ARP: the target switch's answer.
    pub fn arp_reply(
        &mut self,
        now: Time,
        m: ArpReply,
        ports: &dyn PortView,
        out: &mut Vec<Effect>,
    ) {
        let (parts, mut cx) = self.call(now, ports, out);
        parts.phase_four(&mut cx, &m);
    }

    /// Handles the controller's search for the hosts that have this address.
    pub fn seek(&mut self, now: Time, m: Seek, ports: &dyn PortView, out: &mut Vec<Effect>) {
        let (parts, mut cx) = self.call(now, ports, out);
        parts.seek(&mut cx, m);
    }

    /// Handles a command of the controller from its reliable stream. Items that only a switch sends
    /// are counted and ignored.
    pub fn item(&mut self, now: Time, item: Item, ports: &dyn PortView, out: &mut Vec<Effect>) {
        let (parts, mut cx) = self.call(now, ports, out);
        parts.item(&mut cx, item);
    }

    /// Sends a frame of the controller, a DHCP reply, to a host. The host's address is learned from
    /// a DHCP acknowledgement.
    pub fn host_frame_out(
        &mut self,
        now: Time,
        m: HostFrame,
        ports: &dyn PortView,
        out: &mut Vec<Effect>,
    ) {
        let (parts, mut cx) = self.call(now, ports, out);
        parts.host_frame_out(&mut cx, m);
    }

    /// Handles the data plane's answer to a route change.
    pub fn route_changed(
        &mut self,
        now: Time,
        answer: RouteAnswer,
        ports: &dyn PortView,
        out: &mut Vec<Effect>,
    ) {
        let (parts, mut cx) = self.call(now, ports, out);
        parts.route_changed(&mut cx, answer);
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

    /// Resynchronises the flows with a data plane that has lost its tables. `has` is its current
    /// state.
    pub fn resynchronised(
        &mut self,
        now: Time,
        has: &Snapshot,
        ports: &dyn PortView,
        out: &mut Vec<Effect>,
    ) {
        let (parts, mut cx) = self.call(now, ports, out);
        parts.resynchronised(&mut cx, has);
    }

    /// Records the routes of a data plane that has outlived the previous incarnation. Call it
    /// before anything else.
    pub fn found(&mut self, has: &Snapshot) {
        self.parts.found(has);
    }

    /// Handles a change of carrier. Routes found at a port without carrier are removed; others wait
    /// from now on for at most [`Timers::inherited_max`].
    ///
    /// [`Timers::inherited_max`]: axon_link::config::Timers::inherited_max
    pub fn link(
        &mut self,
        now: Time,
        link: (PortNo, bool),
        ports: &dyn PortView,
        out: &mut Vec<Effect>,
    ) {
        let (parts, mut cx) = self.call(now, ports, out);
        parts.link(&mut cx, link);
    }

    /// Handles a change of a port's kind or carrier, shown by `ports`. Hosts at a port that is no
    /// longer a host port are removed with their flows.
    pub fn port_changed(
        &mut self,
        now: Time,
        port: PortNo,
        ports: &dyn PortView,
        out: &mut Vec<Effect>,
    ) {
        let (parts, mut cx) = self.call(now, ports, out);
        parts.port_changed(&mut cx, port);
    }

    /// Handles a change of a port's LACP state.
    pub fn member_changed(
        &mut self,
        now: Time,
        changed: (PortNo, Member),
        ports: &dyn PortView,
        out: &mut Vec<Effect>,
    ) {
        let (parts, mut cx) = self.call(now, ports, out);
        parts.member_changed(&mut cx, changed);
    }

    /// Records that a link is down, detected by this switch or another. Returns whether that is
    /// new; then it must be passed on before [`Edge::fail_over`].
    pub fn link_down(&mut self, now: Time, ends: [LinkEnd; 2]) -> bool {
        self.parts.link_down(now, &self.settings, ends)
    }

    /// Returns whether the loss of a link is known already.
    pub fn knows_down(&self, now: Time, ends: [LinkEnd; 2]) -> bool {
        self.parts.routes().backups().knows(now, self.settings.heartbeat, ends)
    }

    /// Switches every flow over this lost link to its backup route.
    pub fn fail_over(
        &mut self,
        now: Time,
        ends: [LinkEnd; 2],
        ports: &dyn PortView,
        out: &mut Vec<Effect>,
    ) {
        let (parts, mut cx) = self.call(now, ports, out);
        parts.fail_over(&mut cx, ends);
    }

    /// Handles a change of the controller; `None` if it is unreachable.
    ///
    /// While it is unreachable, flows and routes are kept. When the same incarnation is back, the
    /// edge reports changes; after half of [`Timers::silence_max`](axon_link::config::Timers)
    /// without it, all hosts, because it may have removed them. A new incarnation has none of the
    /// old decisions: all hosts and routes are reported, and the routes are kept until it has
    /// decided; see `inherited.rs`. In both cases open requests are repeated at once.
    pub fn controller_changed(
        &mut self,
        now: Time,
        controller: Option<Incarnation>,
        ports: &dyn PortView,
        out: &mut Vec<Effect>,
    ) {
        let Some(change) = self.controller.changed(now, controller) else { return };
        let (parts, mut cx) = self.call(now, ports, out);
        parts.controller_changed(&mut cx, change);
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

    /// Removes these routes and reports that to the controller.
    pub fn remove_idle(
        &mut self,
        now: Time,
        idle: &[(PortNo, RouteKey)],
        ports: &dyn PortView,
        out: &mut Vec<Effect>,
    ) {
        let (parts, mut cx) = self.call(now, ports, out);
        parts.remove_idle(&mut cx, idle);
    }

    /// Handles expired timers. Early or repeated calls are harmless.
    pub fn timeout(&mut self, now: Time, ports: &dyn PortView, out: &mut Vec<Effect>) {
        let (parts, mut cx) = self.call(now, ports, out);
        parts.timeout(&mut cx);
    }

    /// Returns when to call [`Edge::timeout`] next.
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
