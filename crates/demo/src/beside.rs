//! What Linux bridges did on the ring of the demo, beside what Axon did there.

use super::cut::Cut;
use serde::Serialize;

/// The spanning tree of the bridges.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Spanning {
    /// The switch whose bridge is the root.
    pub root: String,
    /// The ports that are blocked: `s3-p1`.
    pub blocked: Vec<String>,
}

/// What was measured at the bridges.
#[derive(Clone, Debug)]
pub struct Bridges {
    /// Their spanning tree before the cut.
    pub spanning: Spanning,
    /// Goodput of each flow over UDP, Mb/s.
    pub udp: [f64; 6],
    /// Goodput of each flow over TCP, Mb/s.
    pub tcp: [f64; 6],
    /// The cut.
    pub cut: Cut,
}

/// The bridges in the summary; the goodputs stand with the transports.
#[derive(Clone, Debug, Serialize)]
pub struct BridgesResult {
    /// Their spanning tree before the cut.
    pub spanning: Spanning,
    /// The longest silence of a stream whose link was cut, ms.
    pub cut_gap_ms: f64,
    /// The cut.
    pub cut: Cut,
}

impl BridgesResult {
    /// For the summary.
    pub fn new(bridges: Bridges) -> BridgesResult {
        let Bridges { spanning, cut, .. } = bridges;
        BridgesResult { spanning, cut_gap_ms: cut.gap_ms(), cut }
    }
}
