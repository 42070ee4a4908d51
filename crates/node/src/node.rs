//! A node as its runtime sees it.

use crate::contract::{Action, Input};
use alloc::vec::Vec;
use axon_wire::{FrameBuf, PortNo, Time};

/// A switch or a controller, as its runtime sees it.
pub trait Node {
    /// Handles one input at `now` and appends its actions to `out`.
    ///
    /// Never blocks, never fails, never reads a clock. `now` never goes back.
    fn handle(&mut self, now: Time, input: Input, out: &mut Vec<Action>);

    /// Passes a sound frame on that has come in by `port` and may leave at once, and says by which
    /// port the runtime is to transmit it: with the `complete_at` that it came with, and intact.
    /// `None`: nothing has changed but what handling the frame changes too (a route is in use), and
    /// it is to be handled as [`Input::Frame`].
    ///
    /// It comes to what [`Node::handle`] would come to, which a runtime may always call instead.
    /// What the node waits for, and its deadline, stay as they were. `free_at` says when the wire
    /// of each port that is busy is free: where the port is not [awaited](Node::awaited), its
    /// `TxDone` may be due and not delivered. The frame that is passed then takes its place.
    fn pass(
        &mut self,
        now: Time,
        port: PortNo,
        frame: &mut FrameBuf,
        free_at: &[Time],
    ) -> Option<PortNo> {
        let _ = (now, port, frame, free_at);
        None
    }

    /// Takes a sound frame of which nothing comes but that it is counted: no action, no other
    /// deadline, nothing to wait for. `false`: nothing has changed, and it is to be handled as
    /// [`Input::Frame`].
    ///
    /// It comes to what [`Node::handle`] would come to, which a runtime may always call instead,
    /// and has to if something of the node is due by `now`.
    fn absorb(&mut self, now: Time, frame: &mut FrameBuf, complete_at: Time) -> bool {
        let _ = (now, frame, complete_at);
        false
    }

    /// The wire of `port` is free since `now`, as [`Input::TxDone`] says, which may be before the
    /// time of frames that were [passed](Node::pass). `true`: nothing more is to be done. `false`:
    /// nothing has changed, and that input is to be handled.
    fn freed(&mut self, now: Time, port: PortNo) -> bool {
        let _ = (now, port);
        false
    }

    /// When to call with [`Input::Timeout`] next. Early or repeated calls are harmless.
    fn deadline(&self) -> Option<Time>;

    /// Returns the ports whose `TxDone` the node waits for, one per call: each port where a frame
    /// was queued behind a frame on the wire since the last call. A port is returned at least once
    /// for every frame on its wire that another one waits behind.
    ///
    /// A runtime may hold back the `TxDone` of a port that is not awaited until the next input that
    /// this node handles, and must deliver it before that input if the wire is free by then. A
    /// frame that is passed is no such input. A runtime that holds back none need not call this.
    fn awaited(&mut self) -> Awaited {
        Awaited::Every
    }

    /// What waits for the wire of a port now, in bytes, as the agents of a switch read it; `None`
    /// if the node has no account of it, or no such port.
    fn queue_bytes(&self, port: PortNo) -> Option<u64> {
        let _ = port;
        None
    }
}

/// What a node waits for; see [`Node::awaited`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// Nothing more.
    None,
    /// The wire of this port. Call again.
    Port(PortNo),
    /// Every wire: the node keeps no account.
    Every,
}
