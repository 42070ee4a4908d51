//! Content of a stream: bytes that somebody reads.
//!
//! A stream repeats [`FILL`] except where it has content. Only content is stored, in spans by their
//! place in the stream, so a stream that is only counted stores nothing.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Maximum length of a span that grows, in bytes: a span is forgotten as a whole.
const JOINED_MAX: usize = 4096;

/// Byte of a stream at every place without content.
pub const FILL: u8 = 0x61;

/// Content of one direction of a connection. Places are counted from the first byte, at 0.
#[derive(Clone, Debug, Default)]
pub(crate) struct Content {
    /// Disjoint spans by place.
    spans: BTreeMap<u64, Vec<u8>>,
}

impl Content {
    /// Adds bytes at a place. Where there is content already, it stays.
    pub(crate) fn put(&mut self, at: u64, bytes: &[u8]) {
        let is_content = |&byte: &u8| byte != FILL;
        let Some(first) = bytes.iter().position(is_content) else { return };
        let end = bytes.iter().rposition(is_content).map_or(first, |last| last + 1);
        let (mut at, mut bytes) = (at + first as u64, &bytes[first..end]);
        while !bytes.is_empty() {
            let before = self.spans.range(..=at).next_back();
            let known = before.map_or(0, |(from, span)| {
                (from + span.len() as u64).saturating_sub(at).min(bytes.len() as u64)
            });
            let next = self.spans.range(at..).next().map_or(u64::MAX, |(&next, _)| next);
            let count = if known > 0 { known } else { (next - at).min(bytes.len() as u64) };
            let (here, rest) = bytes.split_at(count as usize);
            if known == 0 {
                self.add(at, here);
            }
            (at, bytes) = (at + count, rest);
        }
    }

    /// Adds bytes at a place without content, to a short span that ends there or as a new one.
    fn add(&mut self, at: u64, bytes: &[u8]) {
        match self.spans.range_mut(..at).next_back() {
            Some((from, span))
                if from + span.len() as u64 == at && span.len() + bytes.len() <= JOINED_MAX =>
            {
                span.extend_from_slice(bytes);
            }
            _ => drop(self.spans.insert(at, bytes.to_vec())),
        }
    }

    /// Returns the content from one place to another, which must not be before it.
    fn within(&self, from: u64, to: u64) -> impl Iterator<Item = (u64, &[u8])> {
        let first = self.spans.range(..=from).next_back().map_or(from, |(&first, _)| first);
        self.spans.range(first..to).map(move |(&at, span)| {
            let place = |limit: u64| limit.saturating_sub(at).min(span.len() as u64);
            (at + place(from), &span[place(from) as usize..place(to) as usize])
        })
    }

    /// Returns the bytes from a place to the last content before another.
    pub(crate) fn copy(&self, from: u64, to: u64) -> Vec<u8> {
        let mut copy = Vec::new();
        for (at, bytes) in self.within(from, to).filter(|(_, bytes)| !bytes.is_empty()) {
            copy.resize((at - from) as usize, FILL);
            copy.extend_from_slice(bytes);
        }
        copy
    }

    /// Returns the number of bytes from a place to another that differ from [`FILL`].
    pub(crate) fn count(&self, from: u64, to: u64) -> u64 {
        let differ = |bytes: &[u8]| bytes.iter().filter(|&&byte| byte != FILL).count() as u64;
        self.within(from, to).map(|(_, bytes)| differ(bytes)).sum()
    }

    /// Removes the spans that end before a place.
    pub(crate) fn forget(&mut self, to: u64) {
        while let Some(first) = self.spans.first_entry() {
            if first.key() + first.get().len() as u64 > to {
                break;
            }
            first.remove();
        }
    }

    /// Returns the heap memory in bytes, without the free places in the map's nodes.
    pub(crate) fn memory(&self) -> usize {
        let heads = self.spans.len() * size_of::<(u64, Vec<u8>)>();
        heads + self.spans.values().map(Vec::capacity).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the spans with a stored stream.
    #[test]
    fn spans_are_those_of_a_stored_stream() {
        let mut random = oorandom::Rand32::new(11);
        for _ in 0..200 {
            let stream: Vec<u8> = (0..300).map(|_| FILL + random.rand_range(0..3) as u8).collect();
            let (mut content, mut known) = (Content::default(), [false; 300]);
            for _ in 0..30 {
                let from = random.rand_range(0..300) as usize;
                let to = from + random.rand_range(0..(301 - from as u32).min(40)) as usize;
                content.put(from as u64, &stream[from..to]);
                known[from..to].fill(true);
                let at = |place: usize| if known[place] { stream[place] } else { FILL };
                let from = random.rand_range(0..300) as usize;
                let to = from + random.rand_range(0..301 - from as u32) as usize;
                let mut copy = content.copy(from as u64, to as u64);
                copy.resize(to - from, FILL);
                assert_eq!(copy, (from..to).map(at).collect::<Vec<_>>());
                let other = copy.iter().filter(|&&byte| byte != FILL).count() as u64;
                assert_eq!(content.count(from as u64, to as u64), other);
            }
            content.forget(150);
            assert!(content.spans.iter().all(|(at, span)| at + span.len() as u64 > 150));
            content.forget(300);
            assert_eq!(content.memory(), 0);
        }
    }

    #[test]
    fn what_is_there_stays_and_a_stream_of_fill_stores_nothing() {
        let mut content = Content::default();
        content.put(0, &[FILL; 1000]);
        assert!(content.spans.is_empty());
        content.put(10, &[FILL, 1, 2, FILL]);
        content.put(8, &[9, 9, 9, 9, 9, 9, 9]);
        assert_eq!(content.copy(8, 15), [9, 9, 9, 1, 2, 9, 9]);
        assert_eq!((content.copy(12, 13), content.copy(15, 99)), ([2].to_vec(), Vec::new()));
    }
}
