//! What became of streams when a link that they crossed was cut.

use super::gap::Outage;
use crate::table1::Flow;
use serde::Serialize;

/// The cut link.
#[derive(Clone, Debug, Serialize)]
pub struct Cut {
    /// The port that was set down: `s1-p0`.
    pub port: String,
    /// Each flow's stream of probes.
    pub streams: Vec<Stream>,
    /// All six TCP flows in the last second of the load that ran through the cut, Mb/s.
    pub tcp_after_mbps: f64,
}

/// The probes beside one flow.
#[derive(Clone, Debug, Serialize)]
pub struct Stream {
    /// From which host to which.
    #[serde(flatten)]
    pub flow: Flow,
    /// Whether the flow crossed the link that was cut.
    pub crossed: bool,
    /// What became of it.
    #[serde(flatten)]
    pub outage: Outage,
}

impl Cut {
    /// The longest gap of the streams that crossed the link, ms.
    pub fn gap_ms(&self) -> f64 {
        let crossed = self.streams.iter().filter(|stream| stream.crossed);
        crossed.map(|stream| stream.outage.gap_ms).fold(0.0, f64::max)
    }

    /// The longest silence of any stream before the cut, ms.
    pub fn jitter_ms(&self) -> f64 {
        self.streams.iter().map(|stream| stream.outage.jitter_ms).fold(0.0, f64::max)
    }

    /// The least fraction of the last second's probes that arrived, over all streams.
    pub fn at_the_end(&self) -> f64 {
        self.streams.iter().map(|stream| stream.outage.at_the_end).fold(1.0, f64::min)
    }
}
