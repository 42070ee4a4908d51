//! A switch with static tables and nothing else: no control plane at all.

use alloc::vec::Vec;
use axon_plane::multipath::{Multipath, MultipathConfig};
use axon_plane::{Action, Awaited, Input, Moving, Node, PortBank};
use axon_wire::{Frame, Time};

/// A whole switch with static tables.
#[derive(Clone, Debug)]
pub struct MultipathNode<B>(Multipath<B>);

impl<B: Frame> MultipathNode<B> {
    /// A switch that has just been switched on.
    pub fn new(config: MultipathConfig) -> MultipathNode<B> {
        MultipathNode(Multipath::new(config))
    }

    /// Its ports.
    pub fn bank(&self) -> &PortBank<B> {
        self.0.bank()
    }
}

impl<B: Frame> Node<B> for MultipathNode<B> {
    fn handle(&mut self, now: Time, input: Input<B>, out: &mut Vec<Action<B>>) {
        match input {
            Input::Frame { port, frame, complete_at, intact } => {
                self.0.receive(now, Moving::new(frame, port, complete_at, intact), out);
            }
            Input::TxDone { port } => self.0.bank_mut().tx_done(now, port, out),
            Input::Link { port, up } => self.0.bank_mut().link(now, port, up, out),
            Input::Timeout => {}
        }
    }

    fn deadline(&self) -> Option<Time> {
        None
    }

    #[inline]
    fn awaited(&mut self) -> Awaited {
        self.0.bank_mut().awaited()
    }
}
