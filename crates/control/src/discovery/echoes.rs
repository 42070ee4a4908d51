//! What is known of the [echoes](super::echo) that a silent neighbour was sent.

use axon_wire::Time;

/// The echoes of one silence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Echoes {
    /// The number before that of the first echo, random.
    pub(super) before: u64,
    /// How many were sent.
    pub(super) sent: u64,
    /// Which of them returned last, from 1; 0: none.
    pub(super) returned: u64,
    pub(super) returned_at: Option<Time>,
    pub(super) next_at: Time,
    /// Whether the operator was informed.
    pub(super) noted: bool,
}
