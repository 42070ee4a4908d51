//! The switch's way to its controller: the path, the stream of reports, and the load reports.

use crate::chassis::Chassis;
use crate::load::LoadReports;
use alloc::vec::Vec;
use axon_link::config::Timers;
use axon_link::discovery::Discovery;
use axon_link::effect::Effect;
use axon_link::stream::Stream;
use axon_link::uplink::Uplink;
use axon_node::{Dataplane, Refusal};
use axon_wire::message::{ControllerHelloAck, Item, Message, Segment};
use axon_wire::vlan::VlanId;
use axon_wire::{Incarnation, PortNo, Span, Time};

/// Path and stream to the controller.
pub(super) struct Upstream {
    uplink: Uplink,
    stream: Option<Stream>,
    loads: LoadReports,
    /// Retry interval of the stream.
    retry: Span,
}

impl Upstream {
    /// Returns the state without a controller.
    pub fn new(timers: Timers) -> Upstream {
        let (uplink, loads) = (Uplink::new(timers), LoadReports::default());
        Upstream { uplink, stream: None, loads, retry: timers.retry }
    }

    /// Returns the uplink, with the path to the controller.
    pub fn uplink(&self) -> &Uplink {
        &self.uplink
    }

    /// Returns the number of unacknowledged reports, if there has been a controller.
    pub fn unacknowledged(&self) -> Option<usize> {
        self.stream.as_ref().map(Stream::unacknowledged)
    }

    /// Updates and advertises the path to the controller. Returns the controller that it leads to.
    pub fn update(
        &mut self,
        now: Time,
        discovery: &mut Discovery,
        out: &mut Vec<impl From<Effect>>,
    ) -> Option<Incarnation> {
        self.uplink.update(now, discovery, out);
        discovery.advertise(now, self.uplink.path().cloned(), out);
        let controller = self.uplink.path()?.controller;
        if self.stream.as_ref().is_none_or(|stream| stream.peer() != controller) {
            self.stream = Some(Stream::new(controller, self.retry));
            self.loads = LoadReports::default();
        }
        Some(controller)
    }

    /// Handles the controller's answer to the hello of this switch.
    pub fn acknowledged(
        &mut self,
        now: Time,
        from: Incarnation,
        ack: ControllerHelloAck,
        out: &mut Vec<impl From<Effect>>,
    ) {
        self.uplink.acknowledged(now, from, ack, out);
    }

    /// Sends a message to the controller, after the reports so far, if there is a path.
    pub fn send<D: Dataplane, E: From<Effect>>(
        &mut self,
        now: Time,
        message: (VlanId, &Message),
        chassis: &mut Chassis<D, E>,
    ) {
        self.report(now, chassis);
        if let Some(path) = self.uplink.path() {
            chassis.send_routed(now, &path.hops, path.controller, message);
        }
    }

    /// Sends the pending segments of the stream, if there is a path to the controller.
    pub fn report<D: Dataplane, E: From<Effect>>(
        &mut self,
        now: Time,
        chassis: &mut Chassis<D, E>,
    ) {
        let (Some(path), Some(stream)) = (self.uplink.path(), &mut self.stream) else { return };
        while let Some((vlan, segment)) = stream.poll(now) {
            let message = (vlan, &Message::Segment(segment));
            chassis.send_routed(now, &path.hops, path.controller, message);
        }
    }

    /// Adds a report about hosts of this VLAN to the stream.
    pub fn push(&mut self, vlan: VlanId, item: Item) {
        if let Some(stream) = &mut self.stream {
            stream.push(vlan, item);
        }
    }

    /// Returns the commands that came with a segment, in order.
    ///
    /// # Errors
    /// There has been no controller.
    pub fn receive(&mut self, now: Time, segment: Segment) -> Result<Vec<Item>, Refusal> {
        let stream = self.stream.as_mut().ok_or(Refusal::Unexpected)?;
        Ok(stream.receive(now, segment))
    }

    /// Begins load reports at an interval.
    pub fn ask_load(&mut self, now: Time, every_ms: u32, plane: &impl Dataplane) {
        self.loads.ask(now, every_ms, (plane.count(), |port| plane.sent_bytes(port)));
    }

    /// Returns whether a segment is to be sent now.
    pub fn wants(&self, now: Time) -> bool {
        let stream = self.stream.as_ref();
        self.uplink.path().is_some() && stream.is_some_and(|stream| stream.wants(now))
    }

    /// Returns when a timer expires next.
    pub fn deadline(&self) -> Option<Time> {
        let stream = self.stream.as_ref().filter(|_| self.uplink.path().is_some());
        let stream = stream.and_then(Stream::deadline);
        [self.uplink.deadline(), stream, self.loads.deadline()].into_iter().flatten().min()
    }

    /// Repeats or refreshes the port state of this switch if it is due.
    pub fn timeout(&mut self, now: Time, discovery: &Discovery, out: &mut Vec<impl From<Effect>>) {
        self.uplink.timeout(now, discovery, out);
    }

    /// Adds the load reports to `out` if they are due.
    pub fn report_loads(
        &mut self,
        now: Time,
        plane: &impl Dataplane,
        out: &mut Vec<impl From<(VlanId, axon_edge::Effect)>>,
    ) {
        self.loads.timeout(now, |port: PortNo| plane.sent_bytes(port), out);
    }
}
