//! The controller as a node: it sits on ports of switches like any other, sends and
//! receives Axon packets, and is never a transit hop.

use super::chassis::{Arrival, Chassis, Refusals};
use crate::config::{ControllerConfig, Timers};
use crate::controller::Controller;
use crate::controller::bounds::COMMANDS_PER_SWITCH_MAX;
use crate::discovery::Discovery;
use crate::effect::Effect;
use crate::seal::Opened;
use crate::stream::Stream;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use axon_node::probe::ProbeReport;
use axon_node::telemetry::RefusedSetting;
use axon_node::{
    Action, Awaited, Dataplane, Drop, Input, Node, Note, PortSetting, PortSnapshot, Refusal,
    Snapshot, Stored,
};
use axon_wire::message::{ControllerPath, Message, Role};
use axon_wire::{Frame, Hops, Incarnation, NodeId, PortNo, Time};

/// A whole controller, on any data plane.
pub struct ControllerNode<B, D> {
    chassis: Chassis<B, D>,
    controller: Controller,
    streams: BTreeMap<NodeId, Stream>,
    /// Streams that may have something to send.
    busy: BTreeSet<NodeId>,
    /// When streams want to send again; holds exactly their deadlines.
    resends: BTreeSet<(Time, NodeId)>,
    timers: Timers,
}

impl<B: Frame, D: Dataplane<B>> ControllerNode<B, D> {
    /// A controller with an empty state: no switches, no hosts, no flows.
    pub fn new(config: ControllerConfig, plane: D, now: Time) -> ControllerNode<B, D> {
        ControllerNode::restored(config, plane, now, &[])
    }

    /// A controller that has these hosts and leases from the store of an earlier incarnation; they
    /// are provisional until their switches are heard.
    pub fn restored(
        config: ControllerConfig,
        plane: D,
        now: Time,
        stored: &[Stored],
    ) -> ControllerNode<B, D> {
        let mut chassis = Chassis::new(&config.node, plane, Role::Controller);
        let own = ControllerPath { controller: config.node.incarnation, hops: Hops::to_control() };
        chassis.discovery.advertise(now, Some(own), &mut chassis.effects);
        let mut controller = Controller::new(&config, chassis.has.hops_max());
        controller.restore(now, stored, &mut chassis.effects);
        ControllerNode {
            controller,
            chassis,
            streams: BTreeMap::new(),
            busy: BTreeSet::new(),
            resends: BTreeSet::new(),
            timers: config.node.timers,
        }
    }

    /// Which incarnation of which controller this is.
    pub fn incarnation(&self) -> Incarnation {
        self.chassis.incarnation
    }

    /// Its data plane, to read.
    pub fn plane(&self) -> &D {
        &self.chassis.plane
    }

    /// Its neighbours.
    pub fn discovery(&self) -> &Discovery {
        &self.chassis.discovery
    }

    /// Topology, hosts, flows, leases.
    pub fn controller(&self) -> &Controller {
        &self.controller
    }

    /// Control messages that were refused.
    pub fn refusals(&self) -> &Refusals {
        &self.chassis.refusals
    }

    /// Commands that switches have not acknowledged yet.
    pub fn unacknowledged(&self) -> usize {
        self.streams.values().map(Stream::unacknowledged).sum()
    }

    /// Settings of ports that the data plane has refused and that are not made yet.
    pub fn refused_settings(&self) -> Vec<RefusedSetting> {
        self.chassis.settings.telemetry()
    }

    /// How often the data plane has refused a setting.
    pub fn settings_refused(&self) -> u64 {
        self.chassis.settings.refusals()
    }

    /// The plans of this incarnation, oldest first; the finished ones are forgotten in time.
    pub fn probes(&self) -> impl Iterator<Item = &ProbeReport> {
        self.chassis.prober.reports()
    }

    fn timeouts(&mut self, now: Time) {
        self.chassis.probe(now);
        self.chassis.dcbx_timeout(now);
        self.chassis.set_ports_again(now);
        let Chassis { discovery, effects, .. } = &mut self.chassis;
        if discovery.deadline().is_some_and(|at| at <= now) {
            discovery.timeout(now, effects);
        }
        if self.controller.deadline().is_some_and(|at| at <= now) {
            self.controller.timeout(now, effects);
        }
        for &(at, node) in &self.resends {
            if at > now {
                break;
            }
            self.busy.insert(node);
        }
    }

    fn settle(&mut self, now: Time, out: &mut Vec<Action<B>>) {
        loop {
            let mut round = self.chassis.take_actions();
            for action in round.drain(..) {
                match action {
                    Action::Punt { ingress, frame, punt, header_bytes } => {
                        let arrival =
                            self.chassis.arrival(now, ingress, frame, (punt, header_bytes), out);
                        self.arrival(now, arrival, out);
                    }
                    // It has no routes of its own.
                    Action::RouteChanged(_) => {}
                    Action::Lost => self.resynchronise(now),
                    action => out.push(action),
                }
            }
            self.chassis.keep_for_next_round(round);
            self.controller.keep(&mut self.chassis.effects);
            for effect in core::mem::take(&mut self.chassis.effects) {
                self.apply(now, effect, out);
            }
            self.flush(now);
            if self.chassis.actions.is_empty() && self.chassis.effects.is_empty() {
                return;
            }
        }
    }

    /// Sends the pending segments of all streams and keeps their deadlines sorted.
    fn flush(&mut self, now: Time) {
        for node in core::mem::take(&mut self.busy) {
            let Some(stream) = self.streams.get_mut(&node) else {
                continue;
            };
            if let Some(at) = stream.deadline() {
                self.resends.remove(&(at, node));
            }
            let (to, path) = (stream.peer(), self.controller.path_to(node));
            while let Some(segment) = stream.poll(now) {
                if let Some(hops) = &path {
                    self.chassis.send_routed(now, hops, to, &Message::Segment(segment));
                }
            }
            if let Some(at) = stream.deadline() {
                self.resends.insert((at, node));
            }
        }
    }

    fn arrival(&mut self, now: Time, arrival: Arrival<B>, out: &mut Vec<Action<B>>) {
        match arrival {
            Arrival::HostFrame { port, frame } => {
                out.push(self.chassis.ended(port, Drop::Refused, frame));
            }
            Arrival::Message { ingress, reverse, opened } => {
                if let Err(refusal) = self.message(now, reverse, opened) {
                    self.chassis.refuse(ingress, refusal, out);
                }
            }
            Arrival::Done => {}
        }
    }

    /// Re-synchronises a data plane that has lost the kinds of its ports: all are set again.
    fn resynchronise(&mut self, now: Time) {
        let discovery = &self.chassis.discovery;
        let port = |port| PortSnapshot { kind: discovery.kind(port), ..PortSnapshot::default() };
        let ports = (0..self.chassis.has.ports).map(PortNo).map(port).collect();
        self.chassis.settings_resynchronised(now, &Snapshot { ports });
    }

    fn message(&mut self, now: Time, reverse: Hops, opened: Opened) -> Result<(), Refusal> {
        let Opened { from, message, .. } = opened;
        let effects = &mut self.chassis.effects;
        if let Message::ControllerHello(hello) = message {
            if self.streams.get(&from.node).is_none_or(|stream| stream.peer() != from) {
                self.forget_stream(from.node);
                self.streams.insert(from.node, Stream::new(from, self.timers.retry));
            }
            let effects = &mut self.chassis.effects;
            self.controller.controller_hello(now, from, reverse, hello, effects);
            return Ok(());
        }
        // Everything else is for switches that have introduced themselves.
        let stream = self.streams.get_mut(&from.node).filter(|stream| stream.peer() == from);
        let stream = stream.ok_or(Refusal::Unexpected)?;
        match message {
            Message::ArpRequest(request) => {
                self.controller.arp_request(now, from, request, effects);
            }
            Message::DhcpRelay(relay) => self.controller.dhcp_relay(now, from, relay, effects),
            Message::Segment(segment) => {
                if let Some(at) = stream.deadline() {
                    self.resends.remove(&(at, from.node));
                }
                for item in stream.receive(now, segment) {
                    self.controller.item(now, from, item, effects);
                }
                if let Some(at) = stream.deadline() {
                    self.resends.insert((at, from.node));
                }
                self.busy.insert(from.node);
            }
            _ => return Err(Refusal::Misplaced),
        }
        Ok(())
    }

    fn forget_stream(&mut self, node: NodeId) {
        if let Some(at) = self.streams.remove(&node).and_then(|stream| stream.deadline()) {
            self.resends.remove(&(at, node));
        }
    }

    fn apply(&mut self, now: Time, effect: Effect, out: &mut Vec<Action<B>>) {
        let chassis = &mut self.chassis;
        match effect {
            Effect::Link { port, to, message } => chassis.send_link(now, port, to, &message),
            Effect::Routed { hops, to, mut message } => {
                if let Message::ArpTarget(target) = &mut message {
                    chassis.grant(target);
                }
                chassis.send_routed(now, &hops, to, &message);
            }
            Effect::Command { to, item } => {
                let stream = self.streams.get_mut(&to);
                if let Some(stream) = stream {
                    if stream.has_room_for(&item, COMMANDS_PER_SWITCH_MAX) {
                        stream.push(item);
                        self.busy.insert(to);
                    } else {
                        self.controller.command_refused(now, to, &mut self.chassis.effects);
                    }
                }
            }
            Effect::PortKind { port, kind } => chassis.set_port(now, port, PortSetting::Kind(kind)),
            Effect::Store(change) => out.push(Action::Store(Box::new(change))),
            Effect::Refuse { port, refusal } => chassis.refuse(port, refusal, out),
            Effect::Note(note) => {
                if let Note::NeighbourUp { port, .. } | Note::NeighbourDown { port, .. } = note {
                    self.attachment(port);
                }
                out.push(Action::Note(note));
            }
            // Only a switch's edge asks for these.
            Effect::ToController(_)
            | Effect::Report(_)
            | Effect::Host { .. }
            | Effect::Release { .. }
            | Effect::Abandon { .. }
            | Effect::Resynchronise
            | Effect::Route { .. } => {}
        }
    }

    /// Reports to the controller which switch is on one of its own ports now.
    fn attachment(&mut self, port: PortNo) {
        let peer = self
            .chassis
            .discovery
            .neighbour(port)
            .filter(|neighbour| neighbour.role == Role::Switch)
            .map(|neighbour| (neighbour.incarnation.node, neighbour.port));
        self.controller.attached(port, peer);
    }
}

impl<B: Frame, D: Dataplane<B>> Node<B> for ControllerNode<B, D> {
    fn handle(&mut self, now: Time, input: Input<B>, out: &mut Vec<Action<B>>) {
        self.chassis.feed(now, input);
        self.timeouts(now);
        self.settle(now, out);
    }

    fn deadline(&self) -> Option<Time> {
        let resend = self.resends.first().map(|&(at, _)| at);
        [self.chassis.deadline(), self.controller.deadline(), resend].into_iter().flatten().min()
    }

    #[inline]
    fn awaited(&mut self) -> Awaited {
        self.chassis.plane.awaited()
    }
}
