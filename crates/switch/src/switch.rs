//! A switch: plane, discovery, uplink and edge agent in one node.

mod failover;
mod messages;
mod port_kind;
mod resynchronise;
mod spread;
mod telemetry;
mod without_controller;

use super::chassis::{Arrival, Chassis, Refusals};
use super::effect::SwitchEffect;
use super::host_limits::HostLimits;
use super::lacp_ports::LacpPorts;
use super::upstream::Upstream;
use crate::config::SwitchConfig;
use crate::static_mode::StaticControl;
use alloc::boxed::Box;
use alloc::vec::Vec;
use axon_controller::Effect as OwnEffect;
use axon_dcbx::DcbPort;
use axon_dcbx::DcbPorts;
use axon_edge::waiting::Waiting;
use axon_edge::{Edge, Edges, Effect as EdgeEffect, ROUTE_LOOK};
use axon_link::discovery::Discovery;
use axon_link::effect::Effect as LinkEffect;
use axon_link::uplink::Uplink;
use axon_node::probe::ProbeReport;
use axon_node::telemetry::RefusedSetting;
use axon_node::{
    Action, Awaited, Command, Dataplane, Drop, Input, Node, PortKind, Request, RouteAnswer,
    Shortcuts,
};
use axon_wire::message::Role;
use axon_wire::vlan::VlanId;
use axon_wire::{FrameBuf, Incarnation, PortNo, Time};

/// A complete switch, on any data plane.
pub struct SwitchNode<D> {
    /// Earliest deadline of everything but the plane. Before it, a frame that the plane has handled
    /// needs no further processing.
    wake: Option<Time>,
    chassis: Chassis<D, SwitchEffect>,
    upstream: Upstream,
    edge: Edges,
    waiting: Waiting,
    limits: HostLimits,
    /// Controller last passed to the edge.
    controller: Option<Incarnation>,
    /// Static control plane, in a fabric without a controller.
    alone: Option<Box<StaticControl>>,
    /// Time of the next check for unused routes; `None` while there are no routes.
    look_at: Option<Time>,
    /// Next deadline of uplink, edge or stream. Recomputed after each input that may have changed
    /// it, which a transit frame does not.
    due: Option<Time>,
}

impl<D: Dataplane> SwitchNode<D> {
    /// Creates a switch that has just started, without carrier. The routes and links of a data
    /// plane that has outlived an earlier incarnation are kept.
    pub fn new(config: SwitchConfig, plane: D) -> SwitchNode<D> {
        let mut chassis = Chassis::new(&config.edge.node, plane, Role::Switch);
        let ports = chassis.has.ports;
        chassis.dcbx = config.dcbx.map(|dcbx| DcbPorts::new(&dcbx, config.edge.node.mac, ports));
        let limits = HostLimits::new(&config.edge);
        limits.pinned().for_each(|port| chassis.discovery.pin(port));
        chassis.lacp = LacpPorts::new(&config.edge.ports, config.edge.node.mac);
        let found = chassis.plane.snapshot();
        let ports = (0..).map(PortNo).zip(&found.ports);
        let links = ports.filter(|(_, is)| is.kind == PortKind::Axon);
        links.for_each(|(port, _)| chassis.discovery.inherit(port));
        let mut edge = Edges::new(&config.edge, &chassis.has);
        edge.found(&found);
        let hops_max = chassis.has.hops_max();
        let alone =
            config.alone.as_ref().map(|alone| Box::new(StaticControl::new(alone, hops_max)));
        if alone.is_some() {
            chassis.among_switches();
        }
        SwitchNode {
            wake: chassis.control_deadline(),
            upstream: Upstream::new(config.edge.node.timers),
            edge,
            waiting: Waiting::new(config.edge.waiting_bytes_max),
            limits,
            controller: None,
            alone,
            look_at: None,
            due: None,
            chassis,
        }
    }

    /// Returns the node and its incarnation.
    pub(crate) fn incarnation(&self) -> Incarnation {
        self.chassis.incarnation
    }

    /// Returns the data plane, read-only.
    pub fn plane(&self) -> &D {
        &self.chassis.plane
    }

    /// Returns the data plane, which continues without the node.
    pub fn into_plane(self) -> D {
        self.chassis.plane
    }

    /// Returns the neighbours.
    pub fn discovery(&self) -> &Discovery {
        &self.chassis.discovery
    }

    /// Returns the state of LLDP and DCBX at a port. `None` if there is no such port, or the switch
    /// does not run them.
    pub fn dcbx(&self, port: PortNo) -> Option<&DcbPort> {
        self.chassis.dcbx.as_ref()?.port(port)
    }

    /// Returns the uplink, with the path to the controller.
    pub fn uplink(&self) -> &Uplink {
        self.upstream.uplink()
    }

    /// Returns the edge of untagged frames: hosts and flows.
    pub fn edge(&self) -> &Edge {
        self.edge.plain()
    }

    /// Returns the edges of all VLANs.
    pub fn edges(&self) -> &Edges {
        &self.edge
    }

    /// Returns the number of hosts' frames queued for routes.
    pub fn waiting_frames(&self) -> u64 {
        self.waiting.frames()
    }

    /// Returns the bytes of frames queued for routes, with 64 bytes of overhead for each frame.
    pub fn waiting_bytes(&self) -> usize {
        self.waiting.bytes()
    }

    /// Returns the counts of refused control messages.
    pub fn refusals(&self) -> &Refusals {
        &self.chassis.refusals
    }

    /// Returns the number of reports that the controller has not acknowledged.
    pub fn unacknowledged(&self) -> usize {
        let alone = self.alone().map_or(0, StaticControl::unacknowledged);
        self.upstream.unacknowledged().unwrap_or(alone)
    }

    /// Returns the port settings that the data plane has refused and that are still pending.
    pub fn refused_settings(&self) -> Vec<RefusedSetting> {
        self.chassis.settings.telemetry()
    }

    /// Returns the probe plans of this incarnation, oldest first. Finished ones expire.
    pub fn probes(&self) -> impl Iterator<Item = &ProbeReport> {
        self.chassis.prober.reports()
    }

    /// Returns whether nothing is due at `now`, so that an input concerns the control plane only if
    /// it is punted.
    #[inline]
    fn is_quiet(&self, now: Time) -> bool {
        self.wake.is_none_or(|at| at > now) && self.chassis.plane.deadline().is_none()
    }

    /// Handles expired timers; returns whether uplink, edge or stream had any.
    fn timeouts(&mut self, now: Time) -> bool {
        self.chassis.probe(now);
        self.chassis.dcbx_timeout(now);
        self.chassis.lacp_serve(now);
        self.chassis.lacp_timeout(now);
        for port in self.chassis.set_ports_again(now) {
            let Chassis { plane, effects, .. } = &mut self.chassis;
            self.edge.with_all(now, plane, effects, |mut call| call.port_changed(port));
        }
        let Chassis { plane, discovery, effects, .. } = &mut self.chassis;
        let due = |deadline: Option<Time>| deadline.is_some_and(|at| at <= now);
        if due(discovery.deadline()) {
            discovery.timeout(now, effects);
        }
        if !due(self.due) {
            return false;
        }
        self.upstream.timeout(now, discovery, effects);
        if due(self.edge.deadline()) {
            self.edge.timeout(now, plane, effects);
        }
        self.with_alone(|alone, out| alone.timeout(now, out));
        let Chassis { plane, effects, .. } = &mut self.chassis;
        self.upstream.report_loads(now, plane, effects);
        if due(self.look_at) {
            self.look_at = None;
            let idle = self.edge.age(now, |port, key| plane.take_used(port, key));
            self.edge.remove_idle(now, &idle, plane, effects);
        }
        true
    }

    /// Passes outputs between plane and control plane; returns whether the latter had any.
    fn settle(&mut self, now: Time, out: &mut Vec<Action>) -> bool {
        let mut worked = false;
        loop {
            let mut control = false;
            let mut round = self.chassis.take_actions();
            for action in round.drain(..) {
                match action {
                    Action::Punt { ingress, frame, punt, header_bytes } => {
                        control = true;
                        let arrival =
                            self.chassis.arrival(now, ingress, frame, (punt, header_bytes), out);
                        self.arrival(now, arrival, out);
                    }
                    Action::RouteChanged(answer) => {
                        control = true;
                        self.route_changed(now, answer, out);
                    }
                    Action::Lost => {
                        control = true;
                        self.resynchronise(now);
                    }
                    action => out.push(action),
                }
            }
            self.chassis.keep_for_next_round(round);
            let alone = self.alone().map(|alone| alone.wants(now));
            let has_reports = alone.unwrap_or_else(|| self.upstream.wants(now));
            if !control && self.chassis.effects.is_empty() && !has_reports {
                return worked;
            }
            worked = true;
            self.housekeeping(now);
            for effect in core::mem::take(&mut self.chassis.effects) {
                self.apply(now, effect, out);
            }
        }
    }

    /// Handles the possible results of any change: a new path to the controller, a new controller,
    /// reports to send.
    fn housekeeping(&mut self, now: Time) {
        if self.alone.is_some() {
            return self.housekeeping_alone(now);
        }
        let Chassis { plane, discovery, effects, .. } = &mut self.chassis;
        let controller = self.upstream.update(now, discovery, effects);
        if self.controller != controller {
            self.controller = controller;
            plane.controller_reached(now, controller.is_some());
            self.edge.controller_changed(now, controller, plane, effects);
        }
        self.upstream.report(now, &mut self.chassis);
    }

    fn arrival(&mut self, now: Time, arrival: Arrival, out: &mut Vec<Action>) {
        match arrival {
            Arrival::HostFrame { port, frame } if !self.limits.admits(now, port) => {
                out.push(self.chassis.ended(port, Drop::PuntLimit, frame));
            }
            Arrival::HostFrame { port, frame } => {
                let Chassis { plane, effects, .. } = &mut self.chassis;
                let before = effects.len();
                let (vlan, outcome) =
                    self.edge.host_frame(now, port, frame.bytes(), plane, effects);
                self.limits.charge(now, port, &effects[before..]);
                self.carry_out(now, (port, vlan), frame, outcome, out);
            }
            Arrival::Message { ingress, reverse, opened } => {
                if let Err(refusal) = self.message_alone(now, reverse, opened) {
                    self.chassis.refuse(ingress, refusal, out);
                }
            }
            Arrival::Done => {}
        }
    }

    /// Handles the data plane's answer to a route change.
    fn route_changed(&mut self, now: Time, answer: RouteAnswer, out: &mut Vec<Action>) {
        let mut effects = Vec::new();
        self.edge.route_changed(now, answer, &self.chassis.plane, &mut effects);
        for effect in effects {
            self.apply(now, effect, out);
        }
    }

    fn apply(&mut self, now: Time, effect: SwitchEffect, out: &mut Vec<Action>) {
        match effect {
            SwitchEffect::Link(effect) => self.apply_link(now, effect, out),
            SwitchEffect::Edge(vlan, effect) => self.apply_edge(now, (vlan, effect), out),
            SwitchEffect::Controller(effect) => match effect {
                OwnEffect::Routed { hops, to, message } => {
                    self.routed(now, &hops, (to, (VlanId::NONE, message)), out);
                }
                OwnEffect::Command { to, item } => self.command_alone(now, to, item),
                // The switch decides about the routes of its own edge only, which has carried them
                // out already.
                OwnEffect::AwaitAcknowledged { number, .. } => {
                    self.with_alone(|alone, _| alone.acknowledged(now, number));
                }
                // A switch begins anew after a restart.
                OwnEffect::Store(_) => {}
                OwnEffect::Note(note) => out.push(Action::Note(note)),
            },
        }
    }

    fn apply_link(&mut self, now: Time, effect: LinkEffect, out: &mut Vec<Action>) {
        let chassis = &mut self.chassis;
        match effect {
            LinkEffect::Link { port, to, message } => chassis.send_link(now, port, to, &message),
            LinkEffect::Routed { hops, to, message } => {
                self.routed(now, &hops, (to, (VlanId::NONE, message)), out);
            }
            LinkEffect::Echo { port, hops, number } => chassis.send_echo(now, port, &hops, number),
            LinkEffect::PortKind { port, kind } => self.port_kind(now, port, kind),
            LinkEffect::LinkLost { port, far } => self.link_lost(now, port, far),
            LinkEffect::LinkDown { ingress, news } => self.link_down(now, ingress, news),
            LinkEffect::Member { port, member } => {
                let Chassis { plane, effects, .. } = chassis;
                let (at, changed) = ((now, VlanId::NONE), (port, member));
                self.edge.with(at, plane, effects, |mut call| call.member_changed(changed));
            }
            LinkEffect::Refuse { port, refusal } => chassis.refuse(port, refusal, out),
            LinkEffect::Note(note) => out.push(Action::Note(note)),
        }
    }

    fn apply_edge(
        &mut self,
        now: Time,
        (vlan, effect): (VlanId, EdgeEffect),
        out: &mut Vec<Action>,
    ) {
        let chassis = &mut self.chassis;
        match effect {
            EdgeEffect::Routed { hops, to, message } => {
                self.routed(now, &hops, (to, (vlan, message)), out);
            }
            EdgeEffect::ToController(message) if self.alone.is_some() => {
                self.with_alone(|alone, out| alone.request(now, message, out));
            }
            EdgeEffect::ToController(message) => {
                // A request is about hosts, so their reports are sent first.
                self.upstream.send(now, (vlan, &message), chassis);
            }
            EdgeEffect::Report(item) if self.alone.is_some() => {
                self.with_alone(|alone, out| alone.report(now, item, out));
            }
            EdgeEffect::Report(item) => self.upstream.push(vlan, item),
            EdgeEffect::Host { port, frame } => chassis.send_host(now, port, &frame),
            EdgeEffect::Release { ingress, key, route } => {
                for frame in self.waiting.take(ingress, key) {
                    let Chassis { plane, actions, .. } = &mut self.chassis;
                    plane.forward(now, ingress, &route, frame, actions);
                }
            }
            EdgeEffect::Spread { ingress, key } => self.spread(now, (ingress, key), out),
            EdgeEffect::Abandon { ingress, key } => {
                for frame in self.waiting.take(ingress, key) {
                    let action = self.chassis.ended(ingress, Drop::NoRoute, frame);
                    out.push(action);
                }
            }
            EdgeEffect::Route { ticket, change } => {
                // An immediate answer is handled before other effects.
                if let Some(result) = chassis.plane.change_route(now, ticket, change) {
                    self.route_changed(now, RouteAnswer { ticket, result }, out);
                }
            }
            EdgeEffect::Resynchronise => self.resynchronise(now),
            EdgeEffect::LinkLost { port, far } => self.link_lost(now, port, far),
            EdgeEffect::Note(note) => out.push(Action::Note(note)),
        }
    }
}

impl<D: Dataplane> Node for SwitchNode<D> {
    fn handle(&mut self, now: Time, input: Input, out: &mut Vec<Action>) {
        let link = if let Input::Link { port, up } = input { Some((port, up)) } else { None };
        let left = if self.is_quiet(now) { self.chassis.pass(now, input, out) } else { Err(input) };
        match left {
            Ok(true) => return,
            Ok(false) => {}
            Err(Input::Command(Command { id, request: Request::Policy(change) }))
                if self.alone.is_some() =>
            {
                self.chassis.feed(now, Input::Timeout);
                self.change_policy(now, (id, change), out);
            }
            Err(input) => self.chassis.feed(now, input),
        }
        if let Some(link) = link {
            let Chassis { plane, effects, .. } = &mut self.chassis;
            self.edge.with_all(now, plane, effects, |mut call| call.link(link));
        }
        let was_due = self.timeouts(now);
        if self.settle(now, out) || was_due || link.is_some() {
            if self.look_at.is_none() && self.edge.has_flows() {
                self.look_at = Some(now + ROUTE_LOOK);
            }
            let parts = [
                self.look_at,
                self.upstream.deadline(),
                self.edge.deadline(),
                self.alone().and_then(StaticControl::deadline),
            ];
            self.due = parts.into_iter().flatten().min();
        }
        self.wake = [self.chassis.control_deadline(), self.due].into_iter().flatten().min();
    }

    #[inline]
    fn deadline(&self) -> Option<Time> {
        match (self.chassis.plane.deadline(), self.wake) {
            (None, wake) => wake,
            (Some(plane), wake) => Some(wake.map_or(plane, |wake| wake.min(plane))),
        }
    }
}

impl<D: Dataplane + Shortcuts> Shortcuts for SwitchNode<D> {
    #[inline]
    fn pass(
        &mut self,
        now: Time,
        port: PortNo,
        frame: &mut FrameBuf,
        free_at: &[Time],
    ) -> Option<PortNo> {
        match self.is_quiet(now) {
            true => self.chassis.plane.pass(now, port, frame, free_at),
            false => None,
        }
    }

    #[inline]
    fn awaited(&mut self) -> Awaited {
        self.chassis.plane.awaited()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_edge::config::{ByteLimit, EdgeConfig, GroupConfig};
    use axon_link::config::{NodeConfig, ServerIdentity, Timers};
    use axon_node::{RouteChange, RouteTicket};
    use axon_plane::{Plane, PlaneConfig};
    use axon_wire::{MacAddr, NodeId};

    #[test]
    fn a_change_that_was_not_passed_on_when_the_tables_were_lost_is_not_made_after() {
        let (mac, port) = (MacAddr([2; 6]), PortNo(0));
        let node = NodeConfig {
            incarnation: Incarnation { node: NodeId(1), number: 1 },
            mac,
            keys: [0; 32].into(),
            seed: 1,
            timers: Timers::default(),
            server: ServerIdentity { mac, ip: core::net::Ipv4Addr::LOCALHOST },
        };
        let edge = EdgeConfig {
            node,
            waiting_bytes_max: 1_000,
            hosts_per_port_max: 4,
            host_control: ByteLimit::default(),
            groups: GroupConfig::default(),
            ports: Vec::new(),
            services: Default::default(),
            vlans: Vec::new(),
        };
        let mut switch = SwitchNode::new(
            SwitchConfig { edge, dcbx: None, alone: None },
            Plane::new(PlaneConfig::with_ports(1, mac)),
        );
        let change = RouteChange::Remove { port, key: mac.into() };
        let request = (VlanId::NONE, EdgeEffect::Route { ticket: RouteTicket(7), change });
        switch.chassis.effects.push(request.into());
        switch.resynchronise(Time::ZERO);
        let is_route = |effect: &SwitchEffect| {
            matches!(effect, SwitchEffect::Edge(_, EdgeEffect::Route { .. }))
        };
        assert!(!switch.chassis.effects.iter().any(is_route), "its answer would come to nobody");
    }
}
