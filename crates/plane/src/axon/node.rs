//! Adapter of a bare plane as a node, for use without a control plane; punts are output.

use super::lookups::Lookups;
use super::plane::Plane;
use alloc::vec::Vec;
use axon_node::{Action, Awaited, Input, Node, NodeKind, Shortcuts};
use axon_wire::{FrameBuf, PortNo, Time};

impl<T: Lookups> Node for Plane<T> {
    #[inline]
    fn handle(&mut self, now: Time, input: Input, out: &mut Vec<Action>) {
        match input {
            Input::Frame { port, frame, complete_at, intact } => {
                self.receive(now, port, frame, complete_at, intact, out);
            }
            Input::TxDone { port } => self.tx_done(now, port, out),
            Input::Link { port, up } => self.link(now, port, up, out),
            Input::Timeout => self.timeout(now, out),
            Input::Command(command) => {
                out.push(Action::Reply(command.unsupported_by(NodeKind::Switch)));
            }
        }
    }

    #[inline]
    fn deadline(&self) -> Option<Time> {
        Plane::deadline(self)
    }
}

impl<T: Lookups> Shortcuts for Plane<T> {
    /// Takes the fast path only if nothing is due before the frame.
    #[inline]
    fn pass(
        &mut self,
        now: Time,
        port: PortNo,
        frame: &mut FrameBuf,
        free_at: &[Time],
    ) -> Option<PortNo> {
        match Plane::deadline(self) {
            None => Plane::pass(self, port, frame, |port| {
                free_at.get(port.index()).is_some_and(|&at| at <= now)
            }),
            Some(_) => None,
        }
    }

    #[inline]
    fn awaited(&mut self) -> Awaited {
        Plane::awaited(self)
    }
}
