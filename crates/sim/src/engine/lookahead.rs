//! Lookahead: the minimum time in which one shard can affect another.

use axon_wire::Span;

/// Lookahead between shards without a link: they affect each other only through others.
const APART: Span = Span::from_secs(1);

/// Lookahead from each shard to each other shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lookahead {
    shards: usize,
    /// Lookahead matrix, row by row: from each shard to each.
    spans: Vec<Span>,
}

impl Lookahead {
    /// Returns the lookahead of `shards` shards without any link between them.
    pub(crate) fn new(shards: usize) -> Lookahead {
        Lookahead { shards, spans: vec![APART; shards * shards] }
    }

    /// Adds a link from one shard to another with this delay.
    pub(crate) fn add(&mut self, from: u32, to: u32, span: Span) {
        let known = &mut self.spans[from as usize * self.shards + to as usize];
        *known = span.min(*known);
    }

    /// Returns the lookahead from one shard to another.
    pub(crate) fn between(&self, from: usize, to: usize) -> Span {
        self.spans[from * self.shards + to]
    }

    /// Returns the lookahead from one shard to any other.
    pub(crate) fn after(&self, from: usize) -> Span {
        let others = (0..self.shards).filter(|&to| to != from);
        others.map(|to| self.between(from, to)).min().unwrap_or(APART)
    }

    /// Returns the lookahead from any shard to any other.
    pub(crate) fn least(&self) -> Span {
        (0..self.shards).map(|from| self.after(from)).min().unwrap_or(APART)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_ways_the_shortest_counts_and_within_a_shard_none_does() {
        let mut lookahead = Lookahead::new(3);
        assert_eq!(lookahead.least(), APART);
        let span = Span::from_nanos;
        for (from, to, nanos) in [(0, 1, 9), (0, 1, 7), (1, 0, 8), (2, 1, 5), (1, 1, 1)] {
            lookahead.add(from, to, span(nanos));
        }
        assert_eq!(lookahead.between(0, 1), span(7));
        assert_eq!([0, 1, 2].map(|from| lookahead.after(from)), [7, 8, 5].map(span));
        assert_eq!(lookahead.least(), span(5));
    }
}
