//! What is seen of a bottleneck.

use axon_wire::Span;

/// What has happened at the bottleneck since somebody looked.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Byte ticks in its queue.
    area: u128,
    /// The longest queue, in bytes.
    pub longest: u64,
    /// The shortest queue, in bytes; none if nothing has happened there.
    pub shortest: Option<u64>,
    /// Frames sampled, those that made no CNM included.
    pub samples: u64,
    /// CNMs sent.
    pub cnms: u64,
    /// Frames lost.
    pub lost: u64,
    /// What came out of the link, preamble, FCS and gap included.
    pub wire_bytes: u64,
}

impl Seen {
    /// Takes in that the queue was so long for so long, and is so long now, in bytes.
    pub fn queue(&mut self, queued: u64, span: Span, left: u64) {
        self.area += u128::from(queued) * u128::from(span.ticks());
        self.longest = self.longest.max(left);
        self.shortest = Some(self.shortest.map_or(left, |shortest| shortest.min(left)));
    }

    /// The mean length of the queue over `span`, in bytes.
    pub fn queue_mean(&self, span: Span) -> f64 {
        self.area as f64 / span.ticks() as f64
    }
}
