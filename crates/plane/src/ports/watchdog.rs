//! Watchdog at the ports: start and end of pause storms (`watchdog.rs`).

use super::core::Ports;
use crate::qos::watchdog::{StormAction, StormChange};
use alloc::vec::Vec;
use axon_node::{Action, Drop, Note, PortEvent};
use axon_wire::priority::TrafficClass;
use axon_wire::{PortNo, Time};

impl Ports {
    /// Checks the queues of `port` for storms. Called when a pause starts or ends, when a frame is
    /// queued behind one, and at a queue's deadline.
    pub(super) fn check_storms(&mut self, now: Time, port: PortNo, out: &mut Vec<Action>) {
        let Some(dcb) = &self.dcb else { return };
        let Some(config) = dcb.config.watchdog else { return };
        let stopped = dcb.peer_paused_classes(port, now);
        for class in TrafficClass::ALL {
            let Some(dcb) = &mut self.dcb else { return };
            let stopped = stopped.contains(class);
            let waits = self.ports[port.index()].classes[class.index()].frames() > 0;
            let watch = &mut dcb.ports[port.index()].storms[class.index()];
            let before = *watch;
            let turn = watch.look(now, &config, (stopped, waits));
            if *watch != before {
                dcb.plan(now);
            }
            match turn {
                None => {}
                Some(StormChange::Begins) => {
                    self.counters.count(port, PortEvent::Storm);
                    out.push(Action::Note(Note::PauseStorm { port, class }));
                    if config.action == StormAction::Drop {
                        self.end_queue(now, (port, class), Drop::Watchdog, out);
                    }
                }
                Some(StormChange::Ends) => {
                    out.push(Action::Note(Note::PauseStormOver { port, class }))
                }
            }
        }
    }

    /// Ends every storm of `port`, whose carrier is lost.
    pub(super) fn clear_storms(&mut self, port: PortNo, out: &mut Vec<Action>) {
        let Some(dcb) = &mut self.dcb else { return };
        let storms = core::mem::take(&mut dcb.ports[port.index()].storms);
        for (class, watch) in TrafficClass::ALL.into_iter().zip(storms) {
            if watch.is_storm() {
                out.push(Action::Note(Note::PauseStormOver { port, class }));
            }
        }
    }

    /// Drops the frames of a queue.
    pub(super) fn end_queue(
        &mut self,
        now: Time,
        (port, class): (PortNo, TrafficClass),
        reason: Drop,
        out: &mut Vec<Action>,
    ) {
        while let Some(item) = self.ports[port.index()].classes[class.index()].pop() {
            self.give_back(now, &item, (port, class), out);
            self.discard(item.meta, reason, out);
        }
        if let Some(dcb) = &mut self.dcb {
            dcb.ports[port.index()].watch.emptied(now, class);
        }
    }
}
