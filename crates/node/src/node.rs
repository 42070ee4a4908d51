//! Interface of a node to its runtime.

use crate::contract::{Action, Input};
use alloc::vec::Vec;
use axon_wire::{FrameBuf, PortNo, Time};

/// A switch or a controller, as seen by its runtime.
pub trait Node {
    /// Handles one input at `now` and appends its actions to `out`.
    ///
    /// Never blocks, never fails, never reads a clock. `now` never goes back.
    fn handle(&mut self, now: Time, input: Input, out: &mut Vec<Action>);

    /// Forwards a valid frame received on `port` that may leave at once, and returns its egress
    /// port, on which the runtime transmits it with its original `complete_at`, and intact. `None`
    /// if the frame must be handled as [`Input::Frame`]; then nothing has changed but what that
    /// also changes (a route is marked as used).
    ///
    /// The result equals that of [`Node::handle`], which a runtime may always call instead. The
    /// awaited ports and the deadline of the node do not change. `free_at` is the time at which the
    /// wire of each busy port is free: where the port is not [awaited](Node::awaited), its `TxDone`
    /// may be due and not delivered. The forwarded frame then replaces it.
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

    /// Handles a valid frame whose only effect is that it is counted: no action, no other deadline,
    /// nothing to wait for. Returns `false` if the frame must be handled as [`Input::Frame`]; then
    /// nothing has changed.
    ///
    /// The result equals that of [`Node::handle`], which a runtime may always call instead, and
    /// must call if a deadline of the node is due by `now`.
    fn absorb(&mut self, now: Time, frame: &mut FrameBuf, complete_at: Time) -> bool {
        let _ = (now, frame, complete_at);
        false
    }

    /// Reports that the wire of `port` is free since `now`, like [`Input::TxDone`]; that may be
    /// before the time of frames that were [passed](Node::pass). Returns `true` if this was
    /// sufficient, `false` if nothing has changed and that input must be handled.
    fn freed(&mut self, now: Time, port: PortNo) -> bool {
        let _ = (now, port);
        false
    }

    /// Returns the time of the next [`Input::Timeout`]. Early or repeated calls are harmless.
    fn deadline(&self) -> Option<Time>;

    /// Returns the ports whose `TxDone` the node waits for, one per call: each port where a frame
    /// was queued behind a frame on the wire since the last call. A port is returned at least once
    /// for every frame on its wire that another one waits behind.
    ///
    /// A runtime may delay the `TxDone` of a port that is not awaited until the next input that
    /// this node handles, and must deliver it before that input if the wire is free by then. A
    /// frame that is passed is not such an input. A runtime that delays none need not call this.
    fn awaited(&mut self) -> Awaited {
        Awaited::Every
    }

    /// Returns the bytes queued for the wire of a port now, as read by the agents of a switch;
    /// `None` if the node does not count them, or there is no such port.
    fn queue_bytes(&self, port: PortNo) -> Option<u64> {
        let _ = port;
        None
    }
}

/// Wire that a node waits for; see [`Node::awaited`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// No further wire.
    None,
    /// The wire of this port. Call again.
    Port(PortNo),
    /// Every wire: the node does not track them.
    Every,
}
