//! Optional shortcuts past [`Node::handle`].

use crate::node::Node;
use axon_wire::{FrameBuf, PortNo, Time};

/// Shortcuts of a node for a runtime that must be fast. All are optional: a node may implement
/// none, and a runtime may call none.
///
/// **The law: the same as [`Node::handle`], or nothing has happened.** A shortcut has the effect of
/// `handle` with the input that it stands for: the same actions, counters, deadline and telemetry,
/// then and after every later input. If it refuses, handling the input has the same effect as if
/// the shortcut had not been tried.
pub trait Shortcuts: Node {
    /// Forwards a valid frame received on `port` that may leave at once. Returns its egress port,
    /// on which the runtime transmits it with its original `complete_at`, and intact; `None` if the
    /// frame must be handled as [`Input::Frame`](crate::Input::Frame).
    ///
    /// The awaited ports and the deadline of the node do not change. `free_at` is the time at which
    /// the wire of each busy port is free: where the port is not [awaited](Shortcuts::awaited), its
    /// `TxDone` may be due and not delivered. The forwarded frame then replaces it.
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
    /// nothing to wait for. Returns `false` if it must be handled as
    /// [`Input::Frame`](crate::Input::Frame). Must not be called if a deadline of the node is due
    /// by `now`.
    fn absorb(&mut self, now: Time, frame: &mut FrameBuf, complete_at: Time) -> bool {
        let _ = (now, frame, complete_at);
        false
    }

    /// Returns the ports whose `TxDone` the node waits for, one per call: each port where a frame
    /// was queued behind a frame on the wire since the last call. A port is returned at least once
    /// for every frame on its wire that another one waits behind.
    ///
    /// A runtime may delay the `TxDone` of a port that is not awaited until the next input that
    /// this node handles, and must deliver it before that input if the wire is free by then, with
    /// the time at which it was due; frames may have been passed since. A frame that is passed is
    /// not such an input. A runtime that delays none need not call this.
    fn awaited(&mut self) -> Awaited {
        Awaited::Every
    }
}

/// Wire that a node waits for; see [`Shortcuts::awaited`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// No further wire.
    None,
    /// The wire of this port. Call again.
    Port(PortNo),
    /// Every wire: the node does not track them.
    Every,
}
