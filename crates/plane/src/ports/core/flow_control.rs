//! Flow control at the ports: received pauses, transmitted XOFF and XON, storms of pauses.
//!
//! When a wire is free, a due flow control frame precedes all others. Where the memory signals that
//! a sender is to be paused or resumed, its port sends XOFF or XON. The end of a pause and the
//! repetition of an XOFF are handled at their deadlines.

use super::Ports;
use crate::qos::dcb::{DcbConfig, DcbError};
use crate::qos::dcb_state::Dcb;
use crate::qos::watchdog::{StormAction, StormChange};
use alloc::boxed::Box;
use alloc::vec::Vec;
use axon_node::{Action, Drop, Note, PortEvent};
use axon_wire::priority::{Priority, TrafficClass};
use axon_wire::{PortNo, Time};

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
        let ports = usize::from(self.wires.count());
        assert_eq!((config.rates.len(), config.memory.groups.len()), (ports, ports), "ports");
        let cn = config.cn.as_ref().map_or([ports; 2], |cn| [cn.points.len(), cn.treatments.len()]);
        assert_eq!((config.ecn.len(), cn), (ports, [ports; 2]), "ports");
        let all = || (0..self.wires.count()).map(PortNo);
        assert!(all().all(|port| !self.wires.is_waiting(port)), "nothing waits yet");
        let order = config.order;
        let dcb = Dcb::new(config)?;
        for port in (0..self.wires.count()).map(PortNo) {
            self.wires.watch(port, dcb.is_watched(port));
        }
        self.dcb = Some(Box::new(dcb));
        self.control_priority = control_priority;
        self.queues.set_classes(order);
        Ok(())
    }

    /// Sends XOFF or XON to the senders that memory or watermarks pause or resume, as soon as their
    /// wires are free.
    pub(super) fn signal_senders(&mut self, now: Time, out: &mut Vec<Action>) {
        while let Some(port) = self.dcb.as_deref_mut().and_then(Dcb::next_signal) {
            if self.wires.is_busy(port) {
                self.wires.wait_for(port);
            } else {
                self.send_flow_control(now, port, out);
            }
        }
    }

    /// Sends a flow control frame on the free wire of `port`, if one is due.
    pub(super) fn send_flow_control(
        &mut self,
        now: Time,
        port: PortNo,
        out: &mut Vec<Action>,
    ) -> bool {
        let Some(dcb) = self.dcb.as_deref_mut().filter(|_| self.wires.is_up(port)) else {
            return false;
        };
        let Some(frame) = dcb.next_frame(now, port) else { return false };
        let meta = self.originate(now, frame);
        self.start(meta, port, out);
        true
    }

    /// Resumes transmission on `port` after a change of its pauses.
    pub(super) fn resume(&mut self, now: Time, port: PortNo, out: &mut Vec<Action>) {
        let Some(dcb) = &self.dcb else { return };
        self.wires.hold(port, dcb.holds(now, port));
        if self.wires.is_free(port) {
            self.send_next(now, port, out);
        }
    }

    /// Handles an expired deadline: punted frames whose tail has arrived are passed on, expired
    /// pauses end, and due requests are repeated.
    pub fn timeout(&mut self, now: Time, out: &mut Vec<Action>) {
        while let Some((meta, punt)) = self.hold.pop(now) {
            self.complete(now, meta, punt, out);
        }
        if self.dcb().and_then(Dcb::deadline).is_none_or(|at| at > now) {
            return;
        }
        for port in (0..self.wires.count()).map(PortNo) {
            self.check_storms(now, port, out);
            let Some(dcb) = self.dcb.as_deref_mut() else { return };
            let (held, busy) = (dcb.holds(now, port), self.wires.is_busy(port));
            let due = dcb.refresh(now, port, busy);
            let ended = self.wires.hold(port, held) && !held;
            if due && busy {
                self.wires.wait_for(port);
            } else if due || ended || held {
                self.resume(now, port, out);
            }
        }
        if let Some(dcb) = self.dcb.as_deref_mut() {
            dcb.refreshed(now);
        }
    }

    /// Checks the queues of `port` for storms. Called when a pause starts or ends, when a frame is
    /// queued behind one, and at a queue's deadline.
    pub(super) fn check_storms(&mut self, now: Time, port: PortNo, out: &mut Vec<Action>) {
        let paused = self.dcb().and_then(|dcb| dcb.watched_pauses(now, port));
        let Some(paused) = paused else { return };
        for class in TrafficClass::ALL {
            let waits = self.queues.of((port, class)).frames() > 0;
            let Some(dcb) = self.dcb.as_deref_mut() else { return };
            match dcb.check_storm(now, (port, class), (paused.contains(class), waits)) {
                None => {}
                Some((StormChange::Begins, action)) => {
                    self.counters.count(port, PortEvent::Storm);
                    out.push(Action::Note(Note::PauseStorm { port, class }));
                    if action == StormAction::Drop {
                        self.end_queue(now, (port, class), Drop::Watchdog, out);
                    }
                }
                Some((StormChange::Ends, _)) => {
                    out.push(Action::Note(Note::PauseStormOver { port, class }));
                }
            }
        }
    }
}
