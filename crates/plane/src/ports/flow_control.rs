//! Flow control at the ports: received pauses, and transmitted XOFF and XON.
//!
//! When a wire is free, a due flow control frame precedes all others. Where the memory signals that
//! a sender is to be paused or resumed, its port sends XOFF or XON. The end of a pause and the
//! repetition of an XOFF are handled at their deadlines.

use super::core::Ports;
use super::frame_meta::FrameMeta;
use crate::ports::buffers::Egress;
use crate::ports::memory::{Memory, Signal};
use crate::qos::dcb::{Dcb, DcbConfig, DcbError};
use alloc::boxed::Box;
use alloc::vec::Vec;
use axon_node::{Action, Drop, PortEvent};
use axon_wire::mac_control::{MacControl, MacControlError, Pfc};
use axon_wire::priority::{PRIORITIES, Priority, PrioritySet, TrafficClass};
use axon_wire::{FrameBuf, PortNo, Time};

impl Ports {
    /// Configures traffic classes, shared memory and flow control of the ports. `control_priority`
    /// is that of the control plane's frames without an Axon header.
    ///
    /// # Errors
    /// An invalid schedule, congestion point, marker or watermark.
    ///
    /// # Panics
    /// If the configuration is for another number of ports, or frames are already queued.
    pub fn set_dcb(
        &mut self,
        config: DcbConfig,
        control_priority: Priority,
    ) -> Result<(), DcbError> {
        let ports = usize::from(self.ports());
        assert_eq!((config.rates.len(), config.memory.groups.len()), (ports, ports), "ports");
        let cn = config.cn.as_ref().map_or([ports; 2], |cn| [cn.points.len(), cn.treatments.len()]);
        assert_eq!((config.ecn.len(), cn), (ports, [ports; 2]), "ports");
        assert!(self.tx.iter().all(|tx| !tx.waiting), "nothing waits yet");
        let order = config.order;
        let dcb = Dcb::new(config)?;
        for (tx, port) in self.tx.iter_mut().zip(&dcb.ports) {
            tx.watched = port.watch.is_any();
        }
        self.dcb = Some(Box::new(dcb));
        self.control_priority = control_priority;
        for port in &mut self.ports {
            port.classes = (0..PRIORITIES).map(|_| Egress::ordered(order)).collect();
        }
        Ok(())
    }

    /// Returns the shared memory, if any.
    pub fn memory(&self) -> Option<&Memory> {
        self.dcb.as_ref().map(|dcb| &dcb.memory)
    }

    /// Returns the priorities that the peer of a port has paused now; none without flow control.
    pub fn paused(&self, now: Time, port: PortNo) -> PrioritySet {
        let port = self.dcb.as_ref().and_then(|dcb| dcb.ports.get(port.index()));
        port.map_or(PrioritySet::EMPTY, |port| port.pauses.paused(now))
    }

    /// Returns the priorities whose pause a port requests, for the memory or for a queue.
    pub fn pause_requests(&self, port: PortNo) -> PrioritySet {
        let port = self.dcb.as_ref().and_then(|dcb| dcb.ports.get(port.index()));
        port.map_or(PrioritySet::EMPTY, |port| port.requests.paused())
    }

    /// Returns the priorities for which a class of a port is paused now; none if it may send.
    pub fn paused_in_class(&self, now: Time, port: PortNo, class: TrafficClass) -> PrioritySet {
        let Some(dcb) = self.dcb.as_ref().filter(|dcb| port.index() < dcb.ports.len()) else {
            return PrioritySet::EMPTY;
        };
        if !dcb.paused_classes(port, now).contains(class) {
            return PrioritySet::EMPTY;
        }
        let port = &dcb.ports[port.index()];
        port.pauses.paused(now).iter().filter(|&of| port.class_of(of) == class).collect()
    }

    /// Returns the number of flow control frames with this priority: sent by a port (requests), and
    /// received by it (indications).
    pub fn pfc_counts(&self, port: PortNo, priority: Priority) -> (u64, u64) {
        let port = self.dcb.as_ref().and_then(|dcb| dcb.ports.get(port.index()));
        let index = priority.index();
        port.map_or((0, 0), |port| (port.requests.requests[index], port.pauses.indications[index]))
    }

    /// Sends XOFF or XON to the sender of a priority group at `port`, according to `signal`.
    pub(super) fn signal_sender(
        &mut self,
        now: Time,
        port: PortNo,
        priority: Priority,
        signal: Signal,
        out: &mut Vec<Action>,
    ) {
        let Some(dcb) = &mut self.dcb else { return };
        if signal == Signal::None {
            return;
        }
        let state = &mut dcb.ports[port.index()];
        for known in state.known_as(priority) {
            state.requests.set(known, signal == Signal::Xoff);
        }
        self.send_flow_control_soon(now, port, out);
    }

    /// Sends XOFF or XON to the senders to queues, according to the watermarks.
    pub(super) fn signal_queue_senders(&mut self, now: Time, out: &mut Vec<Action>) {
        while let Some(port) = self.dcb.as_mut().and_then(|dcb| dcb.next_request()) {
            self.send_flow_control_soon(now, port, out);
        }
    }

    /// Sends the flow control frame of `port` as soon as its wire is free.
    pub(super) fn send_flow_control_soon(
        &mut self,
        now: Time,
        port: PortNo,
        out: &mut Vec<Action>,
    ) {
        if self.tx[port.index()].busy {
            self.wait_for(port);
        } else {
            self.send_flow_control(now, port, out);
        }
    }

    /// Sends a flow control frame on the free wire of `port`, if one is due.
    pub(super) fn send_flow_control(
        &mut self,
        now: Time,
        port: PortNo,
        out: &mut Vec<Action>,
    ) -> bool {
        let Some(dcb) = &mut self.dcb else { return false };
        let state = &mut dcb.ports[port.index()];
        if !self.tx[port.index()].up || !state.requests.is_due(now) {
            return false;
        }
        let pfc = state.requests.next_pfc(now, state.rate, dcb.config.pfc_quanta);
        let control = if state.uses_pause() {
            MacControl::Pause(pfc.longest())
        } else {
            MacControl::Pfc(pfc)
        };
        let frame = control.emit(dcb.config.mac);
        dcb.plan(now);
        let meta = self.originate(now, FrameBuf::with_headroom(0, &frame));
        self.transmit(now, meta, port, out);
        true
    }

    /// Receives a MAC control frame when it is complete: it is not forwarded, and applies to
    /// priorities with flow control.
    pub fn mac_control(&mut self, now: Time, meta: FrameMeta, out: &mut Vec<Action>) {
        if self.dcb.is_none() || !self.hold.concerns(now, &meta) {
            return self.process_mac_control(now, meta, out);
        }
        if let Err(meta) = self.hold.push(meta, None, self.queue_bytes_max) {
            self.discard(meta, Drop::QueueFull, out);
        }
    }

    /// Processes a complete MAC control frame.
    pub(super) fn process_mac_control(
        &mut self,
        now: Time,
        meta: FrameMeta,
        out: &mut Vec<Action>,
    ) {
        if meta.is_known_bad(now) {
            return self.discard(meta, Drop::BadFcs, out);
        }
        let Some(dcb) = &self.dcb else {
            return self.discard(meta, Drop::MacControl, out);
        };
        let (ingress, enabled) = (meta.ingress, self.pfc(meta.ingress));
        let (frame, own) = (meta.frame.bytes(), dcb.config.mac);
        let reason = match MacControl::parse_as(frame, own, dcb.config.pfc_reserved) {
            Ok(MacControl::Pfc(pfc)) => {
                self.receive_pause(now, ingress, &pfc, enabled, out);
                Drop::MacControl
            }
            // PAUSE is not used together with PFC (IEEE 802.1Q clause 36.1.1).
            Ok(MacControl::Pause(time)) => {
                let all = if enabled.is_empty() { PrioritySet::ALL } else { PrioritySet::EMPTY };
                self.receive_pause(now, ingress, &Pfc::of(PrioritySet::ALL, time), all, out);
                Drop::MacControl
            }
            Err(MacControlError::Opcode(_)) => Drop::MacControl,
            Err(_) => Drop::Malformed,
        };
        self.discard(meta, reason, out);
    }

    /// Applies a pause received from the peer of `port`.
    pub(super) fn receive_pause(
        &mut self,
        now: Time,
        port: PortNo,
        pfc: &Pfc,
        enabled: PrioritySet,
        out: &mut Vec<Action>,
    ) {
        let Some(dcb) = &mut self.dcb else { return };
        let Some(state) = dcb.ports.get_mut(port.index()) else { return };
        let ignored = state.pauses.receive(now, pfc, state.rate, enabled);
        dcb.plan(now);
        self.counters.count_many(port, PortEvent::PfcIgnored, ignored.len() as u64);
        self.check_storms(now, port, out);
        self.tx[port.index()].held = self.holds(now, port);
        self.resume(now, port, out);
    }

    /// Returns whether a frame to `port` has to be checked for pauses when the wire is free.
    pub(super) fn holds(&self, now: Time, port: PortNo) -> bool {
        self.dcb.as_ref().is_some_and(|dcb| dcb.holds(port, now))
    }

    /// Resumes transmission on `port` after a change.
    pub(super) fn resume(&mut self, now: Time, port: PortNo, out: &mut Vec<Action>) {
        let tx = &self.tx[port.index()];
        if tx.up && !tx.busy {
            self.send_next(now, port, out);
        }
    }

    /// Handles expired pauses, and requests due for repetition.
    pub(super) fn flow_control_timeout(&mut self, now: Time, out: &mut Vec<Action>) {
        let Some(dcb) = &self.dcb else { return };
        if dcb.next.is_none_or(|at| at > now) {
            return;
        }
        for port in (0..self.ports()).map(PortNo) {
            self.check_storms(now, port, out);
            let held = self.holds(now, port);
            let Some(dcb) = &mut self.dcb else { return };
            let state = &mut dcb.ports[port.index()];
            state.schedule.adapt(now);
            let due = state.requests.is_due(now);
            let ended = core::mem::replace(&mut self.tx[port.index()].held, held) && !held;
            if due && self.tx[port.index()].busy {
                state.requests.defer();
                self.wait_for(port);
            } else if due || ended || held {
                self.resume(now, port, out);
            }
        }
        if let Some(dcb) = &mut self.dcb {
            dcb.next = None;
            dcb.plan(now);
        }
    }

    /// Handles the arrival of the carrier of `port`: XOFF is sent for priorities still paused, and
    /// adaptive weights start.
    pub(super) fn link_up_classes(&mut self, now: Time, port: PortNo, out: &mut Vec<Action>) {
        if let Some(dcb) = &mut self.dcb {
            dcb.ports[port.index()].schedule.adapt(now);
            dcb.plan(now);
            self.resume(now, port, out);
        }
    }

    /// Handles the loss of the carrier of `port`: queued frames are dropped, received pauses end,
    /// and the state of its peer is unknown.
    pub(super) fn link_down_classes(&mut self, now: Time, port: PortNo, out: &mut Vec<Action>) {
        for class in TrafficClass::ALL.into_iter().take(self.ports[port.index()].classes.len()) {
            self.end_queue(now, (port, class), Drop::PortDown, out);
        }
        self.clear_storms(port, out);
        if let Some(dcb) = &mut self.dcb {
            let state = &mut dcb.ports[port.index()];
            state.pauses.clear();
            state.requests.resend();
            dcb.plan(now);
        }
        self.tx[port.index()].held = false;
    }
}
