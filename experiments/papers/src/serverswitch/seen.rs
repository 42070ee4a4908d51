//! Measurements of a bottleneck.

use axon_wire::Span;

/// Events at the bottleneck since the last reading.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Queue length integrated over time, in byte ticks.
    area: u128,
    /// Longest queue in bytes.
    pub longest: u64,
    /// Shortest queue in bytes; `None` if nothing has happened there.
    pub shortest: Option<u64>,
    /// Number of sampled frames, including those without a CNM.
    pub samples: u64,
    /// Number of CNMs sent.
    pub cnms: u64,
    /// Number of lost frames.
    pub lost: u64,
    /// Bytes sent by the link, preamble, FCS and gap included.
    pub wire_bytes: u64,
}

impl Seen {
    /// Records a queue of `queued` bytes for `span`, and of `left` bytes now.
    pub(crate) fn queue(&mut self, queued: u64, span: Span, left: u64) {
        self.area += u128::from(queued) * u128::from(span.ticks());
        self.longest = self.longest.max(left);
        self.shortest = Some(self.shortest.map_or(left, |shortest| shortest.min(left)));
    }

    /// Returns the mean queue length over `span` in bytes.
    pub(crate) fn queue_mean(&self, span: Span) -> f64 {
        self.area as f64 / span.ticks() as f64
    }
}
