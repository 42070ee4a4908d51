//! Node of a switch with static tables and no control plane.

use crate::multipath::{Multipath, MultipathConfig};
use alloc::vec::Vec;
use axon_node::{Action, Awaited, Input, Node, NodeKind, Shortcuts};
use axon_plane::{FrameMeta, Ports};
use axon_wire::Time;

/// Node of a switch with static tables.
#[derive(Clone, Debug)]
pub struct MultipathNode(Multipath);

impl MultipathNode {
    /// Creates a switch that has just been switched on.
    pub fn new(config: MultipathConfig) -> MultipathNode {
        MultipathNode(Multipath::new(config))
    }

    /// Returns the ports of the switch.
    pub fn ports(&self) -> &Ports {
        self.0.ports()
    }
}

impl Node for MultipathNode {
    fn handle(&mut self, now: Time, input: Input, out: &mut Vec<Action>) {
        match input {
            Input::Frame { port, frame, complete_at, intact } => {
                self.0.receive(now, FrameMeta::new(frame, port, complete_at, intact), out);
            }
            Input::TxDone { port } => self.0.ports_mut().tx_done(now, port, out),
            Input::Link { port, up } => self.0.ports_mut().link(now, port, up, out),
            Input::Timeout => {}
            Input::Command(command) => {
                out.push(Action::Reply(command.unsupported_by(NodeKind::Baseline)));
            }
        }
    }

    fn deadline(&self) -> Option<Time> {
        None
    }
}

impl Shortcuts for MultipathNode {
    #[inline]
    fn awaited(&mut self) -> Awaited {
        self.0.ports_mut().awaited()
    }
}
