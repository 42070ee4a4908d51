//! A switch: plane, discovery, uplink and edge agent in one node.

use super::chassis::{Arrival, Chassis, Refusals};
use super::load::LoadReports;
use super::prober::ProbeRefusal;
use super::report::{ProbeId, ProbePlan, ProbeReport};
use crate::config::{SwitchConfig, Timers};
use crate::discovery::Discovery;
use crate::edge::Edge;
use crate::effect::Effect;
use crate::seal::Opened;
use crate::stream::Stream;
use crate::uplink::Uplink;
use alloc::vec::Vec;
use axon_dcbx::DcbPort;
use axon_node::{Action, Awaited, Drop, Input, Node, PortKind, Refusal};
use axon_plane::Plane;
use axon_wire::message::{Item, Message, Role};
use axon_wire::{Frame, Life, PortNo, Time};

/// A whole switch.
pub struct SwitchNode<B> {
    /// When anything but the plane has something to do next: before it, a frame that the plane
    /// has dealt with concerns nobody else.
    wake: Option<Time>,
    chassis: Chassis<B>,
    uplink: Uplink,
    edge: Edge,
    stream: Option<Stream>,
    loads: LoadReports,
    /// The controller that the edge has been told of.
    controller: Option<Life>,
    timers: Timers,
    /// When uplink, edge or stream have something to do next. Found anew after each input
    /// that may have moved it, which a frame in transit does not.
    due: Option<Time>,
    /// Hosts' frames that the edge had taken over, and that went on or were dropped.
    released: u64,
}

impl<B: Frame> SwitchNode<B> {
    /// A switch that has just been switched on.
    pub fn new(config: SwitchConfig, _now: Time) -> SwitchNode<B> {
        let chassis = Chassis::new(&config.node, Role::Switch);
        SwitchNode {
            wake: chassis.control_deadline(),
            chassis,
            uplink: Uplink::new(config.node.timers),
            edge: Edge::new(&config),
            stream: None,
            loads: LoadReports::default(),
            controller: None,
            timers: config.node.timers,
            due: None,
            released: 0,
        }
    }

    /// Which life of which switch this is.
    pub fn life(&self) -> Life {
        self.chassis.life
    }

    /// Ports, queues, route tables and counters.
    pub fn plane(&self) -> &Plane<B> {
        &self.chassis.plane
    }

    /// Neighbours.
    pub fn discovery(&self) -> &Discovery {
        &self.chassis.discovery
    }

    /// What LLDP and DCBX have found out at a port: what it says, what its neighbours say, what is
    /// in force. `None` if there is no such port, or the switch does not speak them.
    pub fn dcbx(&self, port: PortNo) -> Option<&DcbPort> {
        self.chassis.dcbx.as_ref()?.port(port)
    }

    /// The way to the controller.
    pub fn uplink(&self) -> &Uplink {
        &self.uplink
    }

    /// Hosts, flows and frames that wait.
    pub fn edge(&self) -> &Edge {
        &self.edge
    }

    /// Hosts' frames that the edge has taken over so far, with or without a wait for a route;
    /// those that went on or were dropped since; those that still wait. The first is the sum
    /// of the others.
    pub fn taken_over(&self) -> (u64, u64, u64) {
        (self.edge.taken_over(), self.released, self.edge.waiting_frames())
    }

    /// Control messages that were refused.
    pub fn refusals(&self) -> &Refusals {
        &self.chassis.refusals
    }

    /// Reports that the controller has not acknowledged yet.
    pub fn unacknowledged(&self) -> usize {
        self.stream.as_ref().map_or(0, Stream::unacknowledged)
    }

    /// Sends probes as the plan says, the first at the next timeout: the deadline is now.
    ///
    /// # Errors
    /// What is wrong with the plan.
    pub fn probe(&mut self, now: Time, plan: ProbePlan) -> Result<ProbeId, ProbeRefusal> {
        self.wake = Some(now);
        self.chassis.prober.begin(now, plan, &self.chassis.plane)
    }

    /// The plans of this life, oldest first; the finished ones are forgotten in time.
    pub fn probes(&self) -> impl Iterator<Item = &ProbeReport> {
        self.chassis.prober.reports()
    }

    /// Does what is due; says whether uplink, edge or stream were.
    fn timeouts(&mut self, now: Time) -> bool {
        self.chassis.probe(now);
        self.chassis.dcbx_timeout(now);
        let Chassis { plane, discovery, effects, .. } = &mut self.chassis;
        let due = |deadline: Option<Time>| deadline.is_some_and(|at| at <= now);
        if due(discovery.deadline()) {
            discovery.timeout(now, effects);
        }
        if !due(self.due) {
            return false;
        }
        if due(self.uplink.deadline()) {
            self.uplink.timeout(now, discovery, effects);
        }
        if due(self.edge.deadline()) {
            self.edge.timeout(now, plane.tables_mut(), effects);
        }
        if due(self.loads.deadline()) {
            self.loads.timeout(now, plane.counters(), effects);
        }
        true
    }

    /// Goes round until neither the plane nor the control plane has anything more to say;
    /// says whether the control plane had something.
    fn settle(&mut self, now: Time, out: &mut Vec<Action<B>>) -> bool {
        let mut worked = false;
        loop {
            let mut control = false;
            let mut round = self.chassis.take_actions();
            for action in round.drain(..) {
                match action {
                    Action::Punt { ingress, frame, punt } => {
                        control = true;
                        let arrival = self.chassis.arrival(now, ingress, frame, punt, out);
                        self.arrival(now, arrival, out);
                    }
                    action => out.push(action),
                }
            }
            self.chassis.keep_for_next_round(round);
            if !control && self.chassis.effects.is_empty() && !self.stream_wants(now) {
                return worked;
            }
            worked = true;
            self.housekeeping(now);
            for effect in core::mem::take(&mut self.chassis.effects) {
                self.apply(now, effect, out);
            }
        }
    }

    /// What may follow from any change: a new way to the controller, a new controller,
    /// reports to send.
    fn housekeeping(&mut self, now: Time) {
        let Chassis { plane, discovery, effects, .. } = &mut self.chassis;
        self.uplink.update(now, discovery, effects);
        discovery.advertise(now, self.uplink.path().cloned(), effects);
        let controller = self.uplink.path().map(|path| path.controller);
        if self.controller != controller {
            self.controller = controller;
            if let Some(life) = controller
                && self.stream.as_ref().is_none_or(|stream| stream.peer() != life)
            {
                self.stream = Some(Stream::new(life, self.timers.retry));
                self.loads = LoadReports::default();
            }
            self.edge.controller_changed(now, controller, plane.tables_mut(), effects);
        }
        self.report(now);
    }

    /// Sends what the stream has to say, if there is a way to the controller.
    fn report(&mut self, now: Time) {
        let (Some(path), Some(stream)) = (self.uplink.path(), &mut self.stream) else {
            return;
        };
        while let Some(segment) = stream.poll(now) {
            let message = Message::Segment(segment);
            self.chassis.send_routed(now, &path.hops, path.controller, &message);
        }
    }

    fn stream_wants(&self, now: Time) -> bool {
        let stream = self.stream.as_ref();
        self.uplink.path().is_some() && stream.is_some_and(|stream| stream.wants(now))
    }

    fn stream_deadline(&self) -> Option<Time> {
        self.uplink.path()?;
        self.stream.as_ref()?.deadline()
    }

    fn arrival(&mut self, now: Time, arrival: Arrival<B>, out: &mut Vec<Action<B>>) {
        match arrival {
            Arrival::HostFrame { port, frame } => {
                let Chassis { plane, effects, .. } = &mut self.chassis;
                let tables = plane.tables_mut();
                let served = self.edge.host_frame(now, port, frame.bytes(), tables, effects);
                let reason = served.err().unwrap_or(Drop::Consumed);
                out.push(self.chassis.ended(port, reason, frame));
            }
            Arrival::Message { ingress, opened, .. } => {
                if let Err(refusal) = self.message(now, opened) {
                    self.chassis.refuse(ingress, refusal, out);
                }
            }
            Arrival::Done => {}
        }
    }

    fn message(&mut self, now: Time, opened: Opened) -> Result<(), Refusal> {
        let Chassis { plane, effects, .. } = &mut self.chassis;
        let ours = self.uplink.controller() == Some(opened.from);
        match opened.message {
            Message::ControllerHelloAck(ack) => {
                self.uplink.acknowledged(now, opened.from, ack, effects);
            }
            Message::ArpReply(reply) => {
                self.edge.arp_reply(now, reply, plane.tables_mut(), effects);
            }
            Message::ArpTarget(target) if ours => {
                self.edge.arp_target(now, target, plane.tables_mut(), effects);
            }
            Message::HostFrame(frame) if ours => self.edge.host_frame_out(now, frame, effects),
            Message::Segment(segment) if ours => {
                let stream = self.stream.as_mut().ok_or(Refusal::Unexpected)?;
                for item in stream.receive(now, segment) {
                    match item {
                        Item::AskLoad { every_ms } => {
                            self.loads.ask(now, every_ms, plane.counters());
                        }
                        item => self.edge.item(now, item, plane.tables_mut(), effects),
                    }
                }
            }
            Message::ArpTarget(_) | Message::HostFrame(_) | Message::Segment(_) => {
                return Err(Refusal::Unexpected);
            }
            _ => return Err(Refusal::Misplaced),
        }
        Ok(())
    }

    fn apply(&mut self, now: Time, effect: Effect, out: &mut Vec<Action<B>>) {
        let chassis = &mut self.chassis;
        match effect {
            Effect::Link { port, to, message } => chassis.send_link(now, port, to, &message),
            // Source and target host on one switch: nobody seals a message for himself.
            Effect::Routed { to, message, .. } if to == chassis.life => {
                let opened = Opened { from: to, message, addressed: true };
                if let Err(refusal) = self.message(now, opened) {
                    self.chassis.refuse(PortNo::CONTROL, refusal, out);
                }
            }
            Effect::Routed { hops, to, message } => {
                chassis.send_routed(now, &hops, to, &message);
            }
            Effect::ToController(message) => {
                // A request speaks of hosts: the report of them goes first.
                self.report(now);
                let chassis = &mut self.chassis;
                if let Some(path) = self.uplink.path() {
                    chassis.send_routed(now, &path.hops, path.controller, &message);
                }
            }
            Effect::Report(item) => {
                if let Some(stream) = &mut self.stream {
                    stream.push(item);
                }
            }
            Effect::Host { port, frame } => chassis.send_host(now, port, &frame),
            Effect::Forward { ingress, route, mut frame } => {
                self.released += 1;
                chassis.forward(now, ingress, &route, &mut frame);
            }
            Effect::Drop { ingress, reason, frame } => {
                self.released += 1;
                let frame = B::with_headroom(0, &frame);
                let action = chassis.ended_unsent(ingress, reason, frame);
                out.push(action);
            }
            Effect::PortKind { port, kind } => self.port_kind(now, port, kind),
            Effect::Refuse { port, refusal } => chassis.refuse(port, refusal, out),
            Effect::Note(note) => out.push(Action::Note(note)),
            Effect::Command { .. } => {}
        }
    }

    fn port_kind(&mut self, now: Time, port: PortNo, kind: PortKind) {
        let Chassis { plane, effects, .. } = &mut self.chassis;
        plane.set_kind(port, kind);
        let known = (kind != PortKind::Unknown).then_some(kind);
        self.edge.port_changed(now, port, known, plane.tables_mut(), effects);
    }
}

impl<B: Frame> Node<B> for SwitchNode<B> {
    fn handle(&mut self, now: Time, input: Input<B>, out: &mut Vec<Action<B>>) {
        let link = matches!(input, Input::Link { .. });
        let quiet = self.wake.is_none_or(|at| at > now) && self.chassis.plane.deadline().is_none();
        if quiet && !link {
            if self.chassis.pass(now, input, out) {
                return;
            }
        } else {
            self.chassis.feed(now, input);
        }
        let was_due = self.timeouts(now);
        if self.settle(now, out) || was_due || link {
            let parts = [
                self.uplink.deadline(),
                self.edge.deadline(),
                self.stream_deadline(),
                self.loads.deadline(),
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

    #[inline]
    fn awaited(&mut self) -> Awaited {
        self.chassis.plane.awaited()
    }
}
