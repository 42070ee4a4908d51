//! An acknowledgement, as congestion control sees it: bytes, round trips, and where the round ends.

use crate::segment::Seq;
use axon_wire::{Span, Time};

/// What an acknowledgement says to the algorithm.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acked {
    pub(crate) now: Time,
    /// Bytes that it acknowledges anew.
    pub(crate) bytes: u32,
    /// The smoothed round trip.
    pub(crate) rtt: Span,
    /// The window, and nothing else, held the sender back since the last one (RFC 7661, §4.1).
    pub(crate) limited: bool,
    /// The sender is repairing after a timeout: one segment per acknowledgement (RFC 3465 §2.3).
    pub(crate) after_timeout: bool,
    /// The round trip that it shows.
    pub(crate) sample: Option<Span>,
    /// The number that it acknowledges up to, and the next one to send.
    pub(crate) ack: Seq,
    pub(crate) next: Seq,
}
