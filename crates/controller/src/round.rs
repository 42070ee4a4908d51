//! State of a round that looks for better paths.

use axon_wire::Time;

/// Progress of a round that looks for better paths.
#[derive(Clone, Copy, Debug)]
pub(super) struct Round {
    /// Time of the next batch.
    pub(super) next: Time,
    /// Index of the next route to check.
    pub(super) at: u32,
    /// Number of routes moved in this round.
    pub(super) moved: u32,
}

impl Round {
    /// Creates a round whose first batch is due at `next`.
    pub(super) const fn begin(next: Time) -> Round {
        Round { next, at: 0, moved: 0 }
    }
}
