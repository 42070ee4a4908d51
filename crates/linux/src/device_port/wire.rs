//! Wire of a port: until when it is busy, and whether the node waits for that.

use crate::pacer::Pacer;
use axon_wire::{Rate, Time};

/// Wire of a port.
pub(super) struct Wire {
    pacer: Pacer,
    /// Time at which the wire is free. `None` once the node has its `TxDone`.
    busy_until: Option<Time>,
    /// True if the node waits for the `TxDone`, because frames are queued behind the one on the
    /// wire.
    awaited: bool,
}

impl Wire {
    /// Creates a free wire; the rate is unlimited if `None`.
    pub(super) fn new(rate: Option<Rate>) -> Wire {
        Wire { pacer: Pacer::new(rate), busy_until: None, awaited: false }
    }

    /// Puts a frame of `bytes` bytes on the wire at `now`.
    pub(super) fn send(&mut self, now: Time, bytes: usize) {
        self.busy_until = Some(self.pacer.send(now, bytes));
    }

    /// Returns the time at which the wire is free, or `None` once the node has its `TxDone`.
    pub(super) const fn busy_until(&self) -> Option<Time> {
        self.busy_until
    }

    /// Returns [`busy_until`](Wire::busy_until) if the node waits for it.
    pub(super) fn awaited_until(&self) -> Option<Time> {
        self.busy_until.filter(|_| self.awaited)
    }

    /// Records that the node waits for the wire.
    pub(super) fn wait(&mut self) {
        self.awaited = true;
    }

    /// Frees the wire, so that it has no frame and the node does not await it. Returns whether it
    /// had a frame.
    pub(super) fn free(&mut self) -> bool {
        self.awaited = false;
        self.busy_until.take().is_some()
    }
}
