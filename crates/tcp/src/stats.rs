//! Statistics of a connection.

use axon_wire::Span;

/// Statistics of one end of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Sent segments with payload or FIN, retransmissions included.
    pub segments: u64,
    /// Retransmitted segments.
    pub retransmits: u64,
    /// Retransmission timeouts.
    pub timeouts: u32,
    /// Tail loss probes.
    pub probes: u32,
    /// Recoveries from losses detected without a timeout.
    pub recoveries: u32,
    /// Window reductions by ECE, or by a probe that repaired a loss.
    pub reductions: u32,
    /// Current congestion window, in bytes.
    pub window: u32,
    /// Current slow start threshold, in bytes; `u32::MAX` before the first congestion.
    pub threshold: u32,
    /// Smoothed round-trip time.
    pub rtt: Option<Span>,
    /// Minimum round-trip time.
    pub rtt_min: Option<Span>,
    /// DCTCP's share of marked bytes, in units of 1 / 2^20.
    pub alpha: Option<u32>,
}
