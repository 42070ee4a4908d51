//! A bare plane as a node: for worlds without a control plane, to which what is punted goes out.

use super::lookups::Lookups;
use super::plane::Plane;
use alloc::vec::Vec;
use axon_node::{Action, Awaited, Input, Node, NodeKind};
use axon_wire::{Frame, Time};

impl<B: Frame, T: Lookups> Node<B> for Plane<B, T> {
    #[inline]
    fn handle(&mut self, now: Time, input: Input<B>, out: &mut Vec<Action<B>>) {
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

    #[inline]
    fn awaited(&mut self) -> Awaited {
        Plane::awaited(self)
    }
}
