//! Longest prefix match.
//!
//! Prefixes are nested or disjoint, so they divide all addresses into ranges, each with the longest
//! prefix that covers it. The ranges are in a sorted list. The first 12 bits of an address select a
//! part of the list, and a binary search finds its range there (M. Zec, L. Rizzo, M. Mikuc, "DXR:
//! towards a billion routing lookups per second in software", CCR 2012).

use super::entry::{Prefix, mask};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Bits of an address used in the first step.
const FIRST_BITS: u32 = 12;
/// Slot of a range that no prefix covers.
const NONE: u32 = u32::MAX;

/// Ranges of a set of prefixes.
#[derive(Clone, Debug, Default)]
pub(super) struct Lpm {
    /// By the first bits of an address: the last range that begins at or before them, and one more
    /// element for the end. Empty without prefixes.
    first: Vec<u32>,
    /// The first address of each range, ascending.
    starts: Vec<u32>,
    /// The slot of each range's prefix, or `NONE`.
    slots: Vec<u32>,
}

impl Lpm {
    /// Returns the ranges of these prefixes, each with the number of its slot.
    pub(super) fn new(prefixes: &BTreeMap<Prefix, u32>) -> Lpm {
        let mut lpm = Lpm::default();
        if prefixes.is_empty() {
            return lpm;
        }
        lpm.begin(0, NONE);
        // Prefixes that cover the current address: the last address and the slot of each.
        let mut open: Vec<(u32, u32)> = Vec::new();
        // By address, and for one address the shortest first.
        for (prefix, &slot) in prefixes {
            let start = prefix.address.to_bits();
            lpm.close(&mut open, Some(start));
            lpm.begin(start, slot);
            open.push((start | !mask(prefix.length), slot));
        }
        lpm.close(&mut open, None);
        let ranges = |number: u32| {
            let address = (number as u64) << (32 - FIRST_BITS);
            lpm.starts.partition_point(|&start| u64::from(start) <= address) as u32 - 1
        };
        lpm.first = (0..=1 << FIRST_BITS).map(ranges).collect();
        lpm
    }

    /// Ends the open prefixes that end before `next`; the addresses behind one belong to the prefix
    /// around it.
    fn close(&mut self, open: &mut Vec<(u32, u32)>, next: Option<u32>) {
        while let Some(&(last, _)) = open.last() {
            if next.is_some_and(|next| next <= last) {
                break;
            }
            open.pop();
            if let Some(after) = last.checked_add(1) {
                self.begin(after, open.last().map_or(NONE, |&(_, slot)| slot));
            }
        }
    }

    /// Begins a range; an empty range is replaced.
    fn begin(&mut self, start: u32, slot: u32) {
        if self.starts.last() == Some(&start) {
            self.starts.pop();
            self.slots.pop();
        }
        self.starts.push(start);
        self.slots.push(slot);
    }

    /// Returns the slot of the longest prefix of an address.
    #[inline]
    pub(super) fn lookup(&self, address: u32) -> Option<u32> {
        let part = (address >> (32 - FIRST_BITS)) as usize;
        let &[low, high] = self.first.get(part..part + 2)? else { return None };
        let (mut low, mut high) = (low as usize, high as usize + 1);
        // The range is the last of `low..high` that begins at or before the address.
        while high - low > 1 {
            let middle = low.midpoint(high);
            if *self.starts.get(middle)? <= address { low = middle } else { high = middle }
        }
        self.slots.get(low).copied().filter(|&slot| slot != NONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;
    use proptest::prelude::*;

    fn prefix(address: u32, length: u8) -> Prefix {
        Prefix { address: Ipv4Addr::from_bits(address & mask(length)), length }
    }

    fn longest(prefixes: &BTreeMap<Prefix, u32>, address: u32) -> Option<u32> {
        let covers = |prefix: &Prefix| address & mask(prefix.length) == prefix.address.to_bits();
        let matching = prefixes.iter().filter(|(prefix, _)| covers(prefix));
        matching.max_by_key(|(prefix, _)| prefix.length).map(|(_, &slot)| slot)
    }

    proptest! {
        #[test]
        fn the_longest_prefix_wins(
            all in proptest::collection::vec((any::<u32>(), 0_u8..=32), 0..60),
            near in proptest::collection::vec((0_u32..1024, 22_u8..=32), 0..60),
            others in proptest::collection::vec(any::<u32>(), 20),
        ) {
            let all = all.into_iter().chain(near).map(|(address, length)| prefix(address, length));
            let prefixes: BTreeMap<Prefix, u32> = all.zip(0..).collect();
            let lpm = Lpm::new(&prefixes);
            let edges = prefixes.keys().flat_map(|prefix| {
                let first = prefix.address.to_bits();
                let last = first | !mask(prefix.length);
                [first, last, first.wrapping_sub(1), last.wrapping_add(1)]
            });
            for address in edges.chain(others) {
                prop_assert_eq!(lpm.lookup(address), longest(&prefixes, address));
            }
        }
    }
}
