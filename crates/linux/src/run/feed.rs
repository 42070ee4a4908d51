//! Single entry point for inputs to the node of a run loop, and exit point for its actions.

use super::Runtime;
use crate::inspect::Inspect;
use axon_capture::pcap::Direction;
use axon_node::{Action, Awaited, Input};
use axon_wire::{FrameBuf, PortNo, Time};

impl<N: Inspect> Runtime<N> {
    /// Feeds a frame that a port has received.
    pub(super) fn arrived(&mut self, index: usize, frame: FrameBuf) {
        let now = self.clock.now();
        self.record(now, index, Direction::Inbound, &frame);
        let port = PortNo(index as u16);
        self.feed(now, Input::Frame { port, frame, complete_at: now, intact: true });
        // Otherwise, all frames of a burst except the first would need room in a queue.
        self.free_wires(now);
    }

    /// Feeds `TxDone` for every free wire, until all wires are busy or have nothing to send. If the
    /// far end of a port accepts no frames, its wire is busy.
    pub(super) fn free_wires(&mut self, now: Time) {
        let mut at = 0;
        while let Some(port) = self.ports.free_wire(now, &mut at) {
            self.feed(now, Input::TxDone { port });
        }
    }

    /// Passes one input to the node, executes its actions and records the awaited wires.
    pub(super) fn feed(&mut self, now: Time, input: Input) {
        let mut actions = std::mem::take(&mut self.actions);
        self.recording.input(now, &input);
        self.node.handle(now, input, &mut actions);
        self.recording.answer(&actions);
        // Store the changes before any frame of these actions leaves.
        self.store.iter_mut().for_each(|store| store.keep(&actions));
        for action in actions.drain(..) {
            match action {
                Action::Transmit { port, frame, .. } => self.transmit(now, port, frame),
                Action::Punt { frame, .. } | Action::Dropped { frame, .. } => {
                    self.ports.pool().recycle(frame);
                }
                Action::Note(note) => self.notes.note(now, &self.name, note),
                Action::Reply(reply) => self.replies.push(reply),
                // Whole nodes handle the first two internally, and the last one is already in the
                // store.
                Action::RouteChanged(_) | Action::Lost | Action::Store(_) => {}
            }
        }
        self.actions = actions;
        loop {
            match self.node.awaited() {
                Awaited::None => break,
                Awaited::Port(port) => self.ports.await_wire(port),
                Awaited::Every => {
                    self.ports.await_all();
                    break;
                }
            }
        }
    }

    fn transmit(&mut self, now: Time, port: PortNo, frame: FrameBuf) {
        self.record(now, port.index(), Direction::Outbound, &frame);
        self.ports.transmit(now, port, frame);
    }
}
