//! Changes in the queues of one priority group, for deadlock detection.

use axon_wire::Time;

/// Record of changes in the queues of one priority group.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct QueueChange {
    /// Frames that have left their queue since the start.
    pub(crate) left: u64,
    /// Time at which a frame last joined a queue or left it.
    pub(crate) last: Time,
}

impl QueueChange {
    /// Records that a frame joins a queue.
    pub(crate) fn came(&mut self, now: Time) {
        self.last = now;
    }

    /// Records that a frame leaves its queue.
    pub(crate) fn left(&mut self, now: Time) {
        (self.left, self.last) = (self.left + 1, now);
    }
}
