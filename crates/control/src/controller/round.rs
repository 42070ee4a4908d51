//! The state of a round of looking for better paths.

use axon_wire::Time;

/// A round of looking for better paths, and how far it has come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Round {
    /// When to look at the next batch.
    pub(super) next: Time,
    /// The next route to look at.
    pub(super) at: u32,
    /// Routes moved in this round so far.
    pub(super) moved: u32,
}

impl Round {
    /// A round whose first batch is due at `next`.
    pub(super) const fn begin(next: Time) -> Round {
        Round { next, at: 0, moved: 0 }
    }
}
