//! Results of Linux bridges on the ring in the demo, for comparison with Axon.

use super::cut::Cut;
use serde::Serialize;

/// Spanning tree of the bridges.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Spanning {
    /// Switch whose bridge is the root.
    pub root: String,
    /// Blocked ports: `s3-p1`.
    pub blocked: Vec<String>,
}

/// Measurements with the bridges.
#[derive(Clone, Debug)]
pub struct Bridges {
    /// Spanning tree before the cut.
    pub spanning: Spanning,
    /// Goodput of each flow over UDP, in Mb/s.
    pub udp: [f64; 6],
    /// Goodput of each flow over TCP, in Mb/s.
    pub tcp: [f64; 6],
    /// Result of the link cut.
    pub cut: Cut,
}

/// Bridges in the summary; their goodputs are with the transports.
#[derive(Clone, Debug, Serialize)]
pub struct BridgesResult {
    /// Spanning tree before the cut.
    pub spanning: Spanning,
    /// Longest outage of a stream whose link was cut, in ms.
    pub cut_gap_ms: f64,
    /// Result of the cut.
    pub cut: Cut,
}

impl BridgesResult {
    /// Creates the bridges' part of the summary.
    pub(crate) fn new(bridges: Bridges) -> BridgesResult {
        let Bridges { spanning, cut, .. } = bridges;
        BridgesResult { spanning, cut_gap_ms: cut.gap_ms(), cut }
    }
}
