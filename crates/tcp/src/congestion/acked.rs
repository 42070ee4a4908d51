//! An acknowledgement as the input of congestion control: bytes, round trips, sequence numbers.

use crate::segment::Seq;
use axon_wire::{Span, Time};

/// Acknowledgement passed to the congestion control algorithm.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acked {
    pub(crate) now: Time,
    /// Newly acknowledged bytes.
    pub(crate) bytes: u32,
    /// Smoothed round-trip time.
    pub(crate) rtt: Span,
    /// True if the congestion window alone limited the sender since the last acknowledgement (RFC
    /// 7661 §4.1).
    pub(crate) limited: bool,
    /// True if the sender is recovering from a timeout: one segment per acknowledgement (RFC 3465
    /// §2.3).
    pub(crate) after_timeout: bool,
    /// Round-trip sample of this acknowledgement, if any.
    pub(crate) sample: Option<Span>,
    /// Acknowledgement number, followed by the next number to send.
    pub(crate) ack: Seq,
    pub(crate) next: Seq,
}
