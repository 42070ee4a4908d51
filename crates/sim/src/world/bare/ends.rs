//! Sources and sinks at the ends of a world.

use super::plan::{Event, MAC, OVERHEAD_BYTES, Source, Storm};
use axon_node::{Action, Input, Node, Shortcuts};
use axon_plane::flow_control::PauseState;
use axon_plane::qcn::RateLimiter;
use axon_wire::cn::{CnmFormat, CnmFrame};
use axon_wire::header::{self, HeaderView, PacketType};
use axon_wire::mac_control::{MacControl, Pfc, Quanta};
use axon_wire::priority::PrioritySet;
use axon_wire::{Bytes, FrameBuf, HopWidth, MacAddr, PortNo, Rate, Span, Time};
use std::sync::mpsc;

/// Source that sends by its phases, and honours flow control and congestion notification.
pub(super) struct Sender {
    source: Source,
    rate: Rate,
    mac: MacAddr,
    pauses: PauseState,
    limiter: Option<RateLimiter>,
    /// Time at which the rate permits the next frame.
    ready: Time,
    busy: bool,
    /// Index of the current phase.
    phase: usize,
    /// Time of the next frame; the end of time if there is none.
    due: Time,
    now: Time,
}

impl Sender {
    pub(super) fn new(
        source: Source,
        rate: Rate,
        mac: MacAddr,
        limiter: Option<RateLimiter>,
    ) -> Sender {
        let due = source.phases.first().map_or(Time::MAX, |phase| phase.from);
        let (pauses, ready, now) = (PauseState::default(), Time::ZERO, Time::ZERO);
        Sender { source, rate, mac, pauses, limiter, ready, busy: false, phase: 0, due, now }
    }

    /// Computes the time of the frame after the current one.
    fn advance(&mut self) {
        let phase = self.source.phases[self.phase];
        self.due = if phase.interval == Span::ZERO { self.now } else { self.due + phase.interval };
        while self.source.phases.get(self.phase).is_some_and(|phase| self.due >= phase.until) {
            self.phase += 1;
            let next = self.source.phases.get(self.phase);
            self.due = next.map_or(Time::MAX, |next| next.from);
        }
    }

    fn packet(&self) -> FrameBuf {
        let mut packet = vec![0; self.source.frame_bytes];
        let route = &self.source.route;
        header::emit(&mut packet, HopWidth::Eight, PacketType::Ethernet, route, &[])
            .expect("a frame has room for its header");
        header::set_priority(&mut packet, HopWidth::Eight, self.source.priority);
        let frame = &mut packet[HopWidth::Eight.header_bytes(route.len())..];
        frame[..6].copy_from_slice(&MAC.0);
        frame[6..12].copy_from_slice(&self.mac.0);
        FrameBuf::new(&packet)
    }

    /// Handles PFC frames and CNMs of a switch.
    fn receive(&mut self, now: Time, frame: &[u8]) {
        if let Ok(MacControl::Pfc(pfc)) = MacControl::parse(frame, MAC) {
            self.pauses.receive(now, &pfc, self.rate, PrioritySet::ALL);
        }
        let Some(limiter) = &mut self.limiter else { return };
        let Ok(view) = HeaderView::parse(frame, HopWidth::Eight) else { return };
        if let Ok(answer) = CnmFrame::parse(view.payload(), &CnmFormat::default()) {
            limiter.notified(now, answer.cnm.feedback);
        }
    }
}

impl Node for Sender {
    fn handle(&mut self, now: Time, input: Input, out: &mut Vec<Action>) {
        self.now = now;
        match input {
            Input::Frame { frame, .. } => self.receive(now, frame.bytes()),
            Input::TxDone { .. } => self.busy = false,
            Input::Link { .. } | Input::Timeout | Input::Command(_) => {}
        }
        self.ready = self.limiter.as_mut().map_or(now, |limiter| limiter.ready_at(now));
        let stopped = self.pauses.paused(now).contains(self.source.priority);
        if self.busy || stopped || now < self.due.max(self.ready) {
            return;
        }
        self.busy = true;
        let (port, frame) = (PortNo(0), self.packet());
        self.advance();
        if let Some(limiter) = &mut self.limiter {
            limiter.sent(now, Bytes(frame.bytes().len() as u64 + OVERHEAD_BYTES));
        }
        out.push(Action::Transmit { port, frame, complete_at: now, intact: true });
    }

    fn deadline(&self) -> Option<Time> {
        let resumes = self.pauses.next_end(self.now).unwrap_or(self.due);
        let next = self.due.max(resumes).max(self.ready);
        // The rate may rise before.
        let timer = self.limiter.as_ref().and_then(RateLimiter::deadline);
        let next = timer.map_or(next, |timer| timer.min(next));
        (!self.busy && self.due < Time::MAX).then_some(next)
    }
}

impl Shortcuts for Sender {}

/// Sink, which sends XOFF repeatedly during a storm.
pub(super) struct Taker {
    index: usize,
    storm: Option<Storm>,
    /// Time of the last break of the storm, or of its start.
    let_go: Time,
    busy: bool,
    log: mpsc::Sender<Event>,
}

impl Taker {
    pub(super) fn new(index: usize, storm: Option<Storm>, log: mpsc::Sender<Event>) -> Taker {
        let let_go = storm.map_or(Time::ZERO, |storm| storm.from);
        Taker { index, storm, let_go, busy: false, log }
    }
}

impl Node for Taker {
    fn handle(&mut self, now: Time, input: Input, out: &mut Vec<Action>) {
        match input {
            Input::Frame { frame, .. } if header::is_axon(frame.bytes()) => {
                let passed = (now, frame.bytes().len() as u64 + OVERHEAD_BYTES);
                // The receiver is gone once the world has ended.
                let _ = self.log.send(Event::To(self.index, passed));
            }
            Input::TxDone { .. } => self.busy = false,
            _ => {}
        }
        self.storm = self.storm.filter(|storm| now < storm.until);
        let Some(storm) = self.storm else { return };
        if self.busy || now < storm.from {
            return;
        }
        self.busy = true;
        let lets_go = storm.breaks.is_some_and(|breaks| now >= self.let_go + breaks);
        let time = if lets_go { Quanta::ZERO } else { Quanta::MAX };
        self.let_go = if lets_go { now } else { self.let_go };
        let stop = Pfc::of(PrioritySet::only(storm.priority), time);
        let (port, frame) = (PortNo(0), FrameBuf::new(&MacControl::Pfc(stop).emit(MAC)));
        out.push(Action::Transmit { port, frame, complete_at: now, intact: true });
    }

    fn deadline(&self) -> Option<Time> {
        (!self.busy).then_some(self.storm?.from)
    }
}

impl Shortcuts for Taker {}
