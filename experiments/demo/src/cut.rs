//! Effect of a cut link on the streams that crossed it.

use super::gap::Outage;
use crate::table1::Flow;
use serde::Serialize;

/// Result of a cut.
#[derive(Clone, Debug, Serialize)]
pub struct Cut {
    /// Port that was set down: `s1-p0`.
    pub port: String,
    /// Probe streams of the flows.
    pub streams: Vec<Stream>,
    /// Goodput of all six TCP flows in the last second of the load during the cut, in Mb/s.
    pub tcp_after_mbps: f64,
}

/// Probe stream of one flow.
#[derive(Clone, Debug, Serialize)]
pub struct Stream {
    /// Sending and receiving host.
    #[serde(flatten)]
    pub flow: Flow,
    /// True if the flow crossed the link that was cut.
    pub crossed: bool,
    /// Outage of the stream.
    #[serde(flatten)]
    pub outage: Outage,
}

impl Cut {
    /// Returns the longest gap in the streams that crossed the link, in ms.
    pub(crate) fn gap_ms(&self) -> f64 {
        let crossed = self.streams.iter().filter(|stream| stream.crossed);
        crossed.map(|stream| stream.outage.gap_ms).fold(0.0, f64::max)
    }

    /// Returns the longest gap in any stream before the cut, in ms.
    pub(crate) fn jitter_ms(&self) -> f64 {
        self.streams.iter().map(|stream| stream.outage.jitter_ms).fold(0.0, f64::max)
    }

    /// Returns the fraction of the probes in the last second that arrived. The stream with the
    /// least counts.
    pub(crate) fn at_the_end(&self) -> f64 {
        self.streams.iter().map(|stream| stream.outage.at_the_end).fold(1.0, f64::min)
    }
}
