//! State of the [echoes](super::echo) sent to a silent neighbour.

use axon_wire::Time;

/// Echoes of one silence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Echoes {
    /// Random number that the echo numbers count up from.
    pub(super) before: u64,
    /// Number of echoes sent.
    pub(super) sent: u64,
    /// Position of the last echo returned, from 1; 0 if none.
    pub(super) returned: u64,
    pub(super) returned_at: Option<Time>,
    pub(super) next_at: Time,
    /// True if the operator was notified.
    pub(super) noted: bool,
}
