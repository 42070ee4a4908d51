//! How what waits of one priority group changes, for whoever looks for deadlocks.

use axon_wire::Time;

/// How frames of one priority group have come and gone.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct QueueChange {
    /// Frames that have waited and wait no longer, since the start.
    pub(super) left: u64,
    /// When a frame last began to wait, or left.
    pub(super) last: Time,
}

impl QueueChange {
    /// A frame begins to wait.
    pub(crate) fn came(&mut self, now: Time) {
        self.last = now;
    }

    /// A frame waits no longer.
    pub(crate) fn left(&mut self, now: Time) {
        (self.left, self.last) = (self.left + 1, now);
    }
}
