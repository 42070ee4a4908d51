//! Ports of a switch, independent of the program that it runs: carrier, wire, buffers, counters.
//!
//! A program (the Axon plane, an Ethernet bridge, PortLand) decides where a frame goes; the ports
//! handle everything common to all programs. FCS errors are handled here too (thesis 000 §3.3.1):
//! an error is known only after a frame's last byte. A frame that is complete before it starts to
//! leave is dropped as [`Drop::BadFcs`]; one that starts earlier leaves with the error. A queued
//! frame is checked when it is scheduled, a punted one before it is read.

mod classes;
mod flow_control;

use super::egress_queues::EgressQueues;
use super::frame_meta::FrameMeta;
use super::hold::Hold;
use super::queued::Queued;
use super::shared_buffer::{Owner, Signal};
use super::wires::Wires;
use crate::probe::ProbeStamps;
use crate::qos::dcb_state::Dcb;
use alloc::boxed::Box;
use alloc::vec::Vec;
use axon_node::PortKind;
use axon_node::counters::Counters;
use axon_node::{Action, Awaited, Drop, Note, PortEvent, Punt};
use axon_wire::priority::{Priority, TrafficClass};
use axon_wire::probe::ProbeUnit;
use axon_wire::{Bytes, FrameBuf, PortNo, Time};

/// The ports of one switch: conducts wires, queues, and the decisions of DCB.
///
/// A frame goes to [`deliver`](Ports::deliver): it starts at once if its wire is idle, or
/// joins a queue. A free wire takes the next frame.
///
/// Every call takes the time, and appends its actions to `out`. None blocks, fails, or copies a
/// frame; only the queues allocate, when they grow.
#[derive(Clone, Debug)]
pub struct Ports {
    wires: Wires,
    counters: Counters,
    hold: Hold,
    queues: EgressQueues,
    /// Traffic classes, shared memory and flow control, if configured.
    dcb: Option<Box<Dcb>>,
    /// The priority of the control plane's frames without an Axon header.
    control_priority: Priority,
    probes: ProbeStamps,
}

impl Ports {
    /// Returns ports of unknown kind and without carrier. Each has one buffer for each ingress port
    /// and one for the control plane, of `queue_bytes_max` bytes.
    pub fn new(ports: u16, queue_bytes_max: Bytes) -> Ports {
        Ports {
            wires: Wires::new(ports),
            counters: Counters::new(ports),
            hold: Hold::new(),
            queues: EgressQueues::new(ports, queue_bytes_max),
            dcb: None,
            control_priority: Priority::ZERO,
            probes: ProbeStamps::default(),
        }
    }

    /// Sets the probe units, and the bytes of refused frames that each input port may keep;
    /// initially the units are beside the ports, and no frame is kept.
    pub(crate) fn set_options(&mut self, probes: ProbeStamps, nack_bytes_max: Bytes) {
        self.probes = probes;
        self.queues.set_nack_bytes_max(nack_bytes_max);
    }

    /// Returns the wires: kind and carrier of each port.
    #[inline]
    pub fn wires(&self) -> &Wires {
        &self.wires
    }

    /// Returns the queues of the egress ports.
    pub fn queues(&self) -> &EgressQueues {
        &self.queues
    }

    /// Returns traffic classes, shared memory and flow control, if configured.
    #[inline]
    pub fn dcb(&self) -> Option<&Dcb> {
        self.dcb.as_deref()
    }

    /// Returns traffic classes, shared memory and flow control, to change what needs no action.
    #[inline]
    pub fn dcb_mut(&mut self) -> Option<&mut Dcb> {
        self.dcb.as_deref_mut()
    }

    /// Returns the number of punted frames whose last byte has not arrived.
    pub fn held_frames(&self) -> u64 {
        self.hold.len() as u64
    }

    /// Returns the counters.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Counts an event of a program or of the control plane, so that all events of a switch are
    /// counted in one place: the drop or the copy of a punted frame, for example.
    #[inline]
    pub fn count(&mut self, port: PortNo, event: PortEvent) {
        self.counters.count(port, event);
    }

    /// Counts a received frame.
    ///
    /// # Errors
    /// The frame must be discarded: there is no such port, or its FCS is known to be bad.
    #[inline]
    pub fn receive(&mut self, now: Time, meta: &FrameMeta) -> Result<(), Drop> {
        self.counters.received(meta.ingress, meta.frame.length());
        if meta.is_known_bad(now) {
            return Err(Drop::BadFcs);
        }
        let known = meta.ingress.0 < self.wires.count();
        if known { Ok(()) } else { Err(Drop::NoSuchPort) }
    }

    /// Counts a frame that the control plane sends, and returns its descriptor, with the priority
    /// configured for such frames until a header sets another one.
    #[inline]
    pub fn originate(&mut self, now: Time, frame: FrameBuf) -> FrameMeta {
        self.counters.received(PortNo::CONTROL, frame.length());
        let priority = self.control_priority;
        FrameMeta { priority, ..FrameMeta::from_control(frame, now) }
    }

    /// Sends a frame on the wire of `port` if that is free, and queues it otherwise. With a `kind`,
    /// it leaves only if the port is of that kind when it is scheduled.
    #[inline(always)]
    pub fn deliver(
        &mut self,
        now: Time,
        meta: FrameMeta,
        port: PortNo,
        kind: Option<PortKind>,
        out: &mut Vec<Action>,
    ) {
        if self.wires.is_idle(port) && !meta.kind.is_probe() && !meta.is_known_bad(now) {
            return self.start(meta, port, out);
        }
        self.deliver_in_full(now, meta.elsewhere(), (port, kind), out);
    }

    /// Delivers a frame that cannot start at once; see [`Ports::deliver`].
    #[inline(never)]
    fn deliver_in_full(
        &mut self,
        now: Time,
        meta: FrameMeta,
        (port, kind): (PortNo, Option<PortKind>),
        out: &mut Vec<Action>,
    ) {
        let reason = match self.wires.is_up(port) {
            true if !self.wires.is_idle(port) => return self.enqueue(now, meta, (port, kind), out),
            true if meta.is_known_bad(now) => Drop::BadFcs,
            true => return self.transmit(now, meta, port, out),
            false if port.0 < self.wires.count() => Drop::PortDown,
            false => Drop::NoSuchPort,
        };
        self.discard(meta, reason, out);
    }

    /// Queues a frame for `port`, if there is room. Senders to that queue may have to be paused
    /// then, and the queue may be able to send.
    ///
    /// A frame waits in the traffic class of its priority. It takes room in the shared memory, from
    /// the priority group of its ingress, and in its queue, which keeps the frames of each ingress
    /// apart. A switch without DCB has one class that is never paused and no shared memory: the
    /// limit of each ingress at each egress applies alone. A frame that does not fit stays with its
    /// input, if that may keep refused frames (thesis 000 §3.2.1).
    fn enqueue(
        &mut self,
        now: Time,
        meta: FrameMeta,
        (port, kind): (PortNo, Option<PortKind>),
        out: &mut Vec<Action>,
    ) {
        let ingress = meta.ingress;
        let (group, class, admitted) = match self.dcb.as_deref_mut() {
            None => (meta.priority, TrafficClass::ZERO, Ok(None)),
            Some(dcb) => {
                let owner = dcb.owner_of(&meta, port);
                (owner.priority, owner.class, dcb.admit(now, &meta, owner))
            }
        };
        let signal = match admitted {
            Ok(signal) => signal,
            Err(reason) => return self.discard(meta, reason, out),
        };
        let bytes = meta.frame.length() as u32;
        let item = Queued { meta, bytes, kind, group };
        // Shared memory, if any, decides; frames of the control plane have their own buffer.
        if let Err(item) = self.queues.push(item, (port, class), signal.is_none()) {
            return match self.queues.keep(item, (port, class)) {
                Ok(()) => self.counters.count(ingress, PortEvent::Nack),
                Err(item) => self.discard(item.meta, Drop::QueueFull, out),
            };
        }
        self.wires.wait_for(port);
        let Some(dcb) = self.dcb.as_deref_mut() else { return };
        let owner = Owner { ingress, priority: group, egress: port, class };
        dcb.joined(now, owner, signal.unwrap_or(Signal::None), bytes.into());
        self.signal_senders(now, out);
        if self.wires.is_held(port) {
            self.check_storms(now, port, out);
        }
        if !self.wires.is_busy(port) {
            self.send_next(now, port, out);
        }
    }

    /// Punts a frame to the control plane when it is complete: a bad one is dropped, and one whose
    /// tail is missing waits for [`Ports::timeout`].
    pub fn punt(&mut self, now: Time, meta: FrameMeta, punt: Punt, out: &mut Vec<Action>) {
        if !self.hold.concerns(now, &meta) {
            return self.complete(now, meta, Some(punt), out);
        }
        if let Err(meta) = self.hold.push(meta, Some(punt), self.queues.bytes_max()) {
            self.discard(meta, Drop::QueueFull, out);
        }
    }

    /// Receives a MAC control frame when it is complete: it is not forwarded, and applies to
    /// priorities with flow control.
    pub fn mac_control(&mut self, now: Time, meta: FrameMeta, out: &mut Vec<Action>) {
        if self.dcb.is_none() || !self.hold.concerns(now, &meta) {
            return self.complete(now, meta, None, out);
        }
        if let Err(meta) = self.hold.push(meta, None, self.queues.bytes_max()) {
            self.discard(meta, Drop::QueueFull, out);
        }
    }

    /// Hands a complete frame over to the control plane; without a `punt` it is MAC control, and
    /// ends here.
    fn complete(&mut self, now: Time, meta: FrameMeta, punt: Option<Punt>, out: &mut Vec<Action>) {
        if meta.is_known_bad(now) {
            return self.discard(meta, Drop::BadFcs, out);
        }
        let FrameMeta { ingress, header_bytes, .. } = meta;
        if let Some(punt) = punt {
            let mut frame = meta.frame;
            frame.make_whole();
            self.counters.count(ingress, PortEvent::Punt(punt));
            return out.push(Action::Punt { ingress, frame, punt, header_bytes });
        }
        let Some(dcb) = self.dcb.as_deref_mut() else {
            return self.discard(meta, Drop::MacControl, out);
        };
        let (reason, ignored) = dcb.receive(now, ingress, meta.frame.bytes());
        if let Some(ignored) = ignored {
            self.counters.count_many(ingress, PortEvent::PfcIgnored, ignored);
            self.check_storms(now, ingress, out);
            self.resume(now, ingress, out);
        }
        self.discard(meta, reason, out);
    }

    /// Drops a frame, counted at its ingress.
    #[cold]
    pub fn discard(&mut self, meta: FrameMeta, reason: Drop, out: &mut Vec<Action>) {
        let FrameMeta { frame, ingress, .. } = meta;
        self.counters.count(ingress, PortEvent::Drop(reason));
        out.push(Action::Dropped { ingress, reason, frame });
    }

    /// Reports that the wire of `port` is free: the next scheduled frame is sent.
    #[inline]
    pub fn tx_done(&mut self, now: Time, port: PortNo, out: &mut Vec<Action>) {
        if self.wires.release(port) {
            self.send_next(now, port, out);
        }
    }

    /// Sends a due flow control frame or the next frame on the free wire of `port`.
    fn send_next(&mut self, now: Time, port: PortNo, out: &mut Vec<Action>) {
        if !self.send_flow_control(now, port, out) {
            let kind = self.wires.kind(port);
            while let Some(item) = self.take_next(now, port, out) {
                let reason = if item.kind.is_some() && item.kind != kind {
                    Drop::KindChanged
                } else if item.meta.is_known_bad(now) {
                    Drop::BadFcs
                } else {
                    self.transmit(now, item.meta, port, out);
                    break;
                };
                self.discard(item.meta, reason, out);
            }
            if !self.wires.is_busy(port) {
                self.send_flow_control(now, port, out);
            }
        }
        let news = |dcb: &Dcb| dcb.is_pending(port);
        let waits = !self.queues.is_empty(port) || self.dcb.as_deref().is_some_and(news);
        self.wires.set_waiting(port, waits);
    }

    /// Takes the next frame of `port`, of a class that is not paused, and releases its room.
    fn take_next(&mut self, now: Time, port: PortNo, out: &mut Vec<Action>) -> Option<Queued> {
        let queues = &self.queues;
        let class = match self.dcb.as_deref_mut() {
            None => TrafficClass::ZERO,
            Some(dcb) => {
                let head_bytes = |class| queues.of((port, class)).head_bytes().unwrap_or(0);
                dcb.next_class(now, port, queues.occupied(port), head_bytes)?
            }
        };
        // Reserve the wire for this frame: flow control frames of this port follow it.
        self.wires.occupy(port);
        let item = self.take(now, (port, class), out);
        self.wires.release(port);
        if let (Some(dcb), Some(item)) = (self.dcb.as_deref_mut(), &item) {
            dcb.sent((port, class), item.bytes);
            if self.queues.of((port, class)).frames() == 0 {
                dcb.emptied(now, (port, class));
            }
        }
        item
    }

    /// Takes the next frame of a queue, and releases its room: for frames that its input keeps, and
    /// in the shared memory.
    fn take(
        &mut self,
        now: Time,
        (egress, class): (PortNo, TrafficClass),
        out: &mut Vec<Action>,
    ) -> Option<Queued> {
        let item = self.queues.pop((egress, class))?;
        if let Some(dcb) = self.dcb.as_deref_mut() {
            let (ingress, priority) = (item.meta.ingress, item.group);
            let owner = Owner { ingress, priority, egress, class };
            dcb.left(now, owner, (item.meta.came_bytes.into(), item.bytes.into()));
            self.signal_senders(now, out);
        }
        Some(item)
    }

    /// Drops the frames of a queue.
    fn end_queue(
        &mut self,
        now: Time,
        queue: (PortNo, TrafficClass),
        reason: Drop,
        out: &mut Vec<Action>,
    ) {
        while let Some(item) = self.take(now, queue, out) {
            self.discard(item.meta, reason, out);
        }
        if let Some(dcb) = self.dcb.as_deref_mut() {
            dcb.emptied(now, queue);
        }
    }

    /// Sends a frame on the wire of `port`, with the record of the probe unit there if it is a
    /// probe.
    fn transmit(&mut self, now: Time, mut meta: FrameMeta, port: PortNo, out: &mut Vec<Action>) {
        if meta.kind.is_probe() {
            self.stamp(now, &mut meta, (ProbeUnit::Egress, port));
        }
        self.start(meta, port, out);
    }

    /// Appends the record of a probe unit to a probe.
    #[cold]
    pub(crate) fn stamp(
        &mut self,
        now: Time,
        meta: &mut FrameMeta,
        (unit, port): (ProbeUnit, PortNo),
    ) {
        let queued = self.queues.bytes(port);
        if !self.probes.stamp(meta, (unit, port), (now, queued)) {
            self.counters.count(port, PortEvent::Unstamped);
        }
    }

    /// Starts a frame that needs no further changes.
    #[inline(always)]
    fn start(&mut self, meta: FrameMeta, port: PortNo, out: &mut Vec<Action>) {
        let FrameMeta { frame, complete_at, intact, .. } = meta;
        self.wires.occupy(port);
        self.counters.sent(port, frame.length());
        out.push(Action::Transmit { port, frame, complete_at, intact });
    }

    /// Sets the carrier of `port`. Without carrier its queues are emptied and its wire counts as
    /// free: no `TxDone` follows for a frame that was on it. A frame that was still arriving is
    /// broken. With carrier XOFF is sent for priorities still paused.
    pub fn link(&mut self, now: Time, port: PortNo, up: bool, out: &mut Vec<Action>) {
        if !self.wires.set_up(port, up) {
            return;
        }
        if up {
            if let Some(dcb) = self.dcb.as_deref_mut() {
                dcb.link_up(now, port);
                if !self.wires.is_busy(port) {
                    self.send_next(now, port, out);
                }
            }
            return;
        }
        for class in TrafficClass::ALL.into_iter().take(self.queues.classes_of(port)) {
            self.end_queue(now, (port, class), Drop::PortDown, out);
        }
        if let Some(dcb) = self.dcb.as_deref_mut() {
            let over = |class| Action::Note(Note::PauseStormOver { port, class });
            out.extend(dcb.link_down(now, port).iter().map(over));
        }
        self.wires.hold(port, false);
        self.hold.break_off(now, port);
        self.queues.break_off(now, port);
    }

    /// Returns the time of the next call of [`Ports::timeout`].
    #[inline]
    pub fn deadline(&self) -> Option<Time> {
        let held = self.hold.deadline();
        match self.dcb().and_then(Dcb::deadline) {
            None => held,
            Some(next) => Some(held.map_or(next, |held| held.min(next))),
        }
    }

    /// Counts a frame that was received on one port and is sent on another, open one: ports and
    /// bytes.
    #[inline]
    pub(crate) fn passed(&mut self, came: (PortNo, usize), leaves: (PortNo, usize)) {
        self.counters.received(came.0, came.1);
        self.counters.sent(leaves.0, leaves.1);
        self.wires.occupy(leaves.0);
    }

    /// Takes one of the ports whose wire a frame has begun to wait for; see
    /// [`Shortcuts::awaited`](axon_node::Shortcuts::awaited).
    #[inline]
    pub fn awaited(&mut self) -> Awaited {
        self.wires.awaited()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qos::dcb::DcbConfig;
    use axon_wire::priority::PrioritySet;
    use axon_wire::{FrameBuf, MacAddr, Rate};

    #[test]
    fn a_frame_that_leaves_by_its_ingress_and_its_xon_alternate_on_the_wire() {
        let mut config = DcbConfig::lossy(alloc::vec![Rate::gbps(10)], MacAddr([2; 6]));
        (config.memory.lossless, config.pfc) = (PrioritySet::ALL, PrioritySet::ALL);
        config.memory.groups[0][0].headroom = Bytes(1_000);
        let mut ports = Ports::new(1, Bytes(10_000));
        ports.set_dcb(config, Priority::MAX).unwrap();
        let (now, port, mut out) = (Time::ZERO, PortNo(0), Vec::new());
        ports.link(now, port, true, &mut out);
        // One frame is on the wire; each of the others takes headroom, the only memory.
        for _ in 0..4 {
            let meta = FrameMeta::new(FrameBuf::new(&[0; 100]), port, now, true);
            ports.deliver(now, meta, port, None, &mut out);
        }
        let mut sent = Vec::new();
        for _ in 0..6 {
            for action in out.drain(..) {
                let Action::Transmit { frame, .. } = action else { panic!("{action:?}") };
                sent.push(frame.length());
            }
            ports.tx_done(now, port, &mut out);
            assert!(out.len() <= 1, "{out:?}");
        }
        assert_eq!(sent, [100, 60, 100, 100, 100, 60], "stop, and go on, between frames");
    }
}
