//! Ports of a switch, independent of the program that it runs: carrier, wire, buffers, counters.
//!
//! A program (the Axon plane, an Ethernet bridge, PortLand) decides where a frame goes; the ports
//! handle everything common to all programs. FCS errors are handled here too (thesis 000 §3.3.1):
//! an error is known only after a frame's last byte. A frame that is complete before it starts to
//! leave is dropped as [`Drop::BadFcs`]; one that starts earlier leaves with the error. A queued
//! frame is checked when it is scheduled, a punted one before it is read.

use super::frame_meta::FrameMeta;
use crate::ports::buffers::Egress;
use crate::ports::hold::Hold;
use crate::probe::{self, ProbeUnits};
use crate::qos::dcb::Dcb;
use alloc::boxed::Box;
use alloc::vec::Vec;
use axon_node::PortKind;
use axon_node::counters::Counters;
use axon_node::{Action, Awaited, Drop, PortEvent, Punt};
use axon_wire::priority::Priority;
use axon_wire::probe::ProbeUnit;
use axon_wire::{Bytes, FrameBuf, PortNo, Time};

/// The ports of one switch.
///
/// Every call takes the time, and appends its actions to `out`. None blocks, fails, or copies a
/// frame; only the queues allocate, when they grow.
#[derive(Clone, Debug)]
pub struct Ports {
    pub(super) tx: Vec<TxState>,
    pub(super) counters: Counters,
    /// Ports whose wire a frame has begun to wait for since the last query, each once.
    pub(super) awaited: Vec<PortNo>,
    pub(super) hold: Hold,
    pub(super) ports: Vec<Port>,
    pub(super) queue_bytes_max: u64,
    pub(super) nack_bytes_max: u64,
    /// Traffic classes, shared memory and flow control, if configured.
    pub(super) dcb: Option<Box<Dcb>>,
    /// The priority of the control plane's frames without an Axon header.
    pub(super) control_priority: Priority,
    pub(super) units: ProbeUnits,
    /// Maximum length of a probe, in bytes.
    pub(super) probe_bytes_max: usize,
}

/// Transmit state that every frame to a port reads; small, so that the state of all ports of a
/// switch fits a few cache lines.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TxState {
    pub(super) kind: PortKind,
    /// True if the port has carrier.
    pub(super) up: bool,
    /// True if a frame is on the wire.
    pub(super) busy: bool,
    /// True if a frame waits for the wire.
    pub(super) waiting: bool,
    /// True if the peer has paused some of the traffic.
    pub(super) held: bool,
    /// True if some queues have a congestion point or a marker.
    pub(super) watched: bool,
    /// True if the port is in the list of awaited ports.
    pub(super) awaited: bool,
}

impl TxState {
    /// Returns whether a frame may start at once.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.up && !self.busy && !self.held
    }
}

/// Remaining state of a port.
#[derive(Clone, Debug)]
pub(super) struct Port {
    /// Buffers by traffic class; one without traffic classes.
    pub(super) classes: Vec<Egress>,
    /// Bytes of frames received here that outputs refused and that are kept.
    pub(super) nacked_bytes: u64,
}

impl Ports {
    /// Returns ports of unknown kind and without carrier. Each has one buffer for each ingress port
    /// and one for the control plane, of `queue_bytes_max` bytes.
    pub fn new(ports: u16, queue_bytes_max: Bytes) -> Ports {
        let port = || Port { classes: alloc::vec![Egress::new()], nacked_bytes: 0 };
        Ports {
            tx: alloc::vec![TxState::default(); usize::from(ports)],
            ports: (0..ports).map(|_| port()).collect(),
            awaited: Vec::new(),
            counters: Counters::new(ports),
            hold: Hold::new(),
            queue_bytes_max: queue_bytes_max.0,
            nack_bytes_max: 0,
            dcb: None,
            control_priority: Priority::ZERO,
            units: ProbeUnits::default(),
            probe_bytes_max: usize::MAX,
        }
    }

    /// Sets the position of the probe units, and the maximum length of a probe with its records.
    pub fn set_probe_units(&mut self, units: ProbeUnits, probe_bytes_max: usize) {
        self.units = units;
        self.probe_bytes_max = probe_bytes_max;
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
        let known = meta.ingress.index() < self.tx.len();
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

    /// Returns a copy of a frame, for a program that floods; counted at its ingress.
    pub fn copy(&mut self, meta: &FrameMeta) -> FrameMeta {
        debug_assert_eq!(meta.frame.length(), meta.frame.bytes().len(), "a light frame is copied");
        self.counters.count(meta.ingress, PortEvent::Copy);
        FrameMeta {
            frame: FrameBuf::with_headroom(FrameBuf::HEADROOM, meta.frame.bytes()),
            ..*meta
        }
    }

    /// Delivers a frame to all of `ports`: copies, and last the frame itself. Without any port it
    /// is dropped as [`Drop::Filtered`].
    pub fn flood(
        &mut self,
        now: Time,
        meta: FrameMeta,
        ports: &[PortNo],
        kind: Option<PortKind>,
        out: &mut Vec<Action>,
    ) {
        let Some((&last, others)) = ports.split_last() else {
            return self.discard(meta, Drop::Filtered, out);
        };
        for &port in others {
            let copy = self.copy(&meta);
            self.deliver(now, copy, port, kind, out);
        }
        self.deliver(now, meta, last, kind, out);
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
        let tx = self.tx.get(port.index());
        if tx.is_some_and(TxState::is_idle) && !meta.kind.is_probe() && !meta.is_known_bad(now) {
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
        let Some(tx) = self.tx.get(port.index()) else {
            return self.discard(meta, Drop::NoSuchPort, out);
        };
        if !tx.up {
            return self.discard(meta, Drop::PortDown, out);
        }
        if !tx.is_idle() {
            return self.enqueue(now, meta, (port, kind), out);
        }
        if meta.is_known_bad(now) {
            return self.discard(meta, Drop::BadFcs, out);
        }
        self.transmit(now, meta, port, out);
    }

    /// Records that a frame waits for the wire of `port`.
    pub(super) fn wait_for(&mut self, port: PortNo) {
        let tx = &mut self.tx[port.index()];
        tx.waiting = true;
        if !core::mem::replace(&mut tx.awaited, true) {
            self.awaited.push(port);
        }
    }

    /// Takes one of the ports whose wire a frame has begun to wait for; see
    /// [`Node::awaited`](axon_node::Node::awaited).
    #[inline]
    pub fn awaited(&mut self) -> Awaited {
        let Some(port) = self.awaited.pop() else {
            return Awaited::None;
        };
        self.tx[port.index()].awaited = false;
        Awaited::Port(port)
    }

    /// Returns whether the buffer of `port` is full for a frame of `bytes` bytes from `ingress`.
    pub fn is_full(&self, port: PortNo, ingress: PortNo, bytes: usize) -> bool {
        let taken = self.tx.get(port.index()).is_some_and(|tx| tx.up && tx.busy);
        let refuses = |egress: &Egress| egress.refuses(ingress, bytes as u64, self.queue_bytes_max);
        taken && refuses(&self.ports[port.index()].classes[0])
    }

    /// Sets the bytes of refused frames that each input port may keep; initially none.
    pub fn set_nack_bytes_max(&mut self, nack_bytes_max: Bytes) {
        self.nack_bytes_max = nack_bytes_max.0;
    }

    /// Punts a frame to the control plane when it is complete: a bad one is dropped, and one whose
    /// tail is missing waits for [`Ports::timeout`].
    pub fn punt(&mut self, now: Time, meta: FrameMeta, punt: Punt, out: &mut Vec<Action>) {
        if self.hold.concerns(now, &meta) {
            if let Err(meta) = self.hold.push(meta, Some(punt), self.queue_bytes_max) {
                self.discard(meta, Drop::QueueFull, out);
            }
            return;
        }
        self.hand_over(now, meta, punt, out);
    }

    pub(super) fn hand_over(
        &mut self,
        now: Time,
        meta: FrameMeta,
        punt: Punt,
        out: &mut Vec<Action>,
    ) {
        if meta.is_known_bad(now) {
            return self.discard(meta, Drop::BadFcs, out);
        }
        let FrameMeta { mut frame, ingress, header_bytes, .. } = meta;
        frame.make_whole();
        self.counters.count(ingress, PortEvent::Punt(punt));
        out.push(Action::Punt { ingress, frame, punt, header_bytes });
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
        let Some(tx) = self.tx.get_mut(port.index()) else {
            return;
        };
        tx.busy = false;
        if tx.waiting && tx.up {
            self.send_next(now, port, out);
        }
    }

    /// Sends a due flow control frame or the next frame on the free wire of `port`.
    pub(super) fn send_next(&mut self, now: Time, port: PortNo, out: &mut Vec<Action>) {
        if self.send_flow_control(now, port, out) {
            return self.wait_on(port);
        }
        let kind = self.tx[port.index()].kind;
        while let Some(item) = self.take(now, port, out) {
            let reason = if item.kind.is_some_and(|wanted| wanted != kind) {
                Drop::KindChanged
            } else if item.meta.is_known_bad(now) {
                Drop::BadFcs
            } else {
                self.transmit(now, item.meta, port, out);
                break;
            };
            self.discard(item.meta, reason, out);
        }
        if !self.tx[port.index()].busy {
            self.send_flow_control(now, port, out);
        }
        self.wait_on(port);
    }

    /// Recomputes whether anything is pending on `port`, flow control frames included.
    pub(super) fn wait_on(&mut self, port: PortNo) {
        let frames = self.ports[port.index()].classes.iter().any(|class| class.frames() > 0);
        let news = |dcb: &Dcb| dcb.ports[port.index()].requests.is_pending();
        let waits = frames || self.dcb.as_deref().is_some_and(news);
        self.tx[port.index()].waiting = waits;
        if waits && self.tx[port.index()].busy {
            self.wait_for(port);
        }
    }

    /// Sets the carrier of `port`. Without carrier its queues are emptied and its wire counts as
    /// free: no `TxDone` follows for a frame that was on it. A frame that was still arriving is
    /// broken.
    pub fn link(&mut self, now: Time, port: PortNo, up: bool, out: &mut Vec<Action>) {
        let Some(tx) = self.tx.get_mut(port.index()) else {
            return;
        };
        tx.up = up;
        if up {
            return self.link_up_classes(now, port, out);
        }
        (tx.busy, tx.waiting) = (false, false);
        self.link_down_classes(now, port, out);
        self.hold.break_off(now, port);
        for state in &mut self.ports {
            state.classes.iter_mut().for_each(|class| class.break_off(now, port));
        }
    }

    /// Handles an expired deadline: punted frames whose tail has arrived are passed on.
    #[inline]
    pub fn timeout(&mut self, now: Time, out: &mut Vec<Action>) {
        while let Some((meta, punt)) = self.hold.pop(now) {
            match punt {
                Some(punt) => self.hand_over(now, meta, punt, out),
                None => self.process_mac_control(now, meta, out),
            }
        }
        self.flow_control_timeout(now, out);
    }

    /// Returns the time of the next call of [`Ports::timeout`].
    #[inline]
    pub fn deadline(&self) -> Option<Time> {
        let held = self.hold.deadline();
        match self.dcb.as_ref().and_then(|dcb| dcb.next) {
            None => held,
            Some(next) => Some(held.map_or(next, |held| held.min(next))),
        }
    }

    /// Sends a frame on the wire of `port`, with the record of the probe unit there if it is a
    /// probe.
    pub(super) fn transmit(
        &mut self,
        now: Time,
        mut meta: FrameMeta,
        port: PortNo,
        out: &mut Vec<Action>,
    ) {
        if meta.kind.is_probe() {
            self.stamp(now, &mut meta, ProbeUnit::Egress, port);
        }
        self.start(meta, port, out);
    }

    /// Starts a frame that needs no further changes.
    #[inline(always)]
    fn start(&mut self, meta: FrameMeta, port: PortNo, out: &mut Vec<Action>) {
        let FrameMeta { frame, complete_at, intact, .. } = meta;
        self.tx[port.index()].busy = true;
        self.counters.sent(port, frame.length());
        out.push(Action::Transmit { port, frame, complete_at, intact });
    }

    /// Appends the record of the ingress probe unit to a probe.
    #[cold]
    pub fn stamp_ingress(&mut self, now: Time, meta: &mut FrameMeta) {
        self.stamp(now, meta, ProbeUnit::Ingress, meta.ingress);
    }

    #[cold]
    pub(super) fn stamp(&mut self, now: Time, meta: &mut FrameMeta, unit: ProbeUnit, port: PortNo) {
        let time = self.units.time(unit, now, meta.frame.length());
        let queued = self.queued_bytes(port);
        if !probe::stamp(meta, (unit, port), (time, queued), self.probe_bytes_max) {
            self.counters.count(port, PortEvent::Unstamped);
        }
    }

    /// Prefetches data; see [`Plane::prefetch`](crate::Plane::prefetch).
    #[inline]
    pub fn prefetch(&self) -> u64 {
        self.tx.len() as u64 ^ self.awaited.len() as u64 ^ self.hold.len() as u64
    }

    /// Prefetches data of a port; see [`Plane::prefetch_port`](crate::Plane::prefetch_port).
    #[inline]
    pub fn prefetch_port(&self, port: PortNo) -> u64 {
        u64::from(self.is_up(port)) ^ self.counters.prefetch(port)
    }

    /// Returns the number of ports.
    pub fn ports(&self) -> u16 {
        self.ports.len() as u16
    }

    /// Sets the kind of `port`. Frames queued there that do not suit the new kind are dropped as
    /// [`Drop::KindChanged`] when they are scheduled. Hosts may have to be paused at once for all
    /// layers of a priority: [`Ports::timeout`] is due then, or the wire is awaited.
    pub fn set_kind(&mut self, port: PortNo, kind: PortKind) {
        let Some(tx) = self.tx.get_mut(port.index()) else { return };
        tx.kind = kind;
        let (up, busy) = (tx.up, tx.busy);
        let Some(dcb) = &mut self.dcb else { return };
        match dcb.set_hosts(port, kind == PortKind::Host) && up {
            true if busy => self.wait_for(port),
            true => dcb.next = Some(Time::ZERO),
            false => {}
        }
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
