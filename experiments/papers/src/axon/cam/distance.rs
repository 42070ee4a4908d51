//! Reuse distances of a sequence of addresses, and from them the hit rate of a CAM of any size
//! (thesis §4.5, paper 001 §5.3).
//!
//! There are two interpretations of "distance", the state that a CAM must hold between two packets
//! to one address:
//!
//! - **packets**: the number of packets in between, plus one. So the thesis counts. A CAM
//!   that keeps the address of each of the last *n* packets, repetitions and all, hits when
//!   the distance is at most *n*: an upper bound of what is needed.
//! - **entries**: the number of *different* addresses in between, plus one (the LRU stack
//!   distance of Mattson et al., 1970). A CAM with *n* entries that evicts the least recently
//!   used one hits exactly when this distance is at most *n*.
//!
//! The first packet to an address hits in no CAM: its route has to be set up.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// Slots of the first tree; it grows with the number of addresses.
const SLOTS_MIN: usize = 1 << 12;

/// Reuse distances of one sequence of addresses, computed packet by packet.
///
/// Every address is in the slot of its last packet, and slots are allocated in order, so the
/// addresses seen since a packet are those in later slots. A tree of partial sums (Fenwick 1994)
/// counts them in logarithmic time. When the slots run out, the addresses are compacted in order,
/// so memory grows with addresses and not packets.
#[derive(Clone, Debug)]
pub struct Distances<K> {
    last: HashMap<K, Last>,
    tree: Vec<u32>,
    next: usize,
    packets: u64,
    by_entries: BTreeMap<u64, u64>,
    by_packets: BTreeMap<u64, u64>,
}

#[derive(Clone, Copy, Debug)]
struct Last {
    slot: usize,
    packet: u64,
}

impl<K: Hash + Eq> Default for Distances<K> {
    fn default() -> Distances<K> {
        Distances {
            last: HashMap::new(),
            tree: vec![0; SLOTS_MIN + 1],
            next: 0,
            packets: 0,
            by_entries: BTreeMap::new(),
            by_packets: BTreeMap::new(),
        }
    }
}

impl<K: Hash + Eq> Distances<K> {
    /// Adds the next packet, to `key`.
    pub(crate) fn packet(&mut self, key: K) {
        if self.next + 1 == self.tree.len() {
            self.move_together();
        }
        self.packets += 1;
        let now = Last { slot: self.next, packet: self.packets };
        self.next += 1;
        if let Some(before) = self.last.insert(key, now) {
            let since = self.last.len() as u64 - self.up_to(before.slot);
            *self.by_entries.entry(since + 1).or_default() += 1;
            *self.by_packets.entry(now.packet - before.packet).or_default() += 1;
            self.add(before.slot, false);
        }
        self.add(now.slot, true);
    }

    /// Returns the number of addresses whose last packet has a slot up to and including `slot`.
    fn up_to(&self, slot: usize) -> u64 {
        let (mut at, mut sum) = (slot + 1, 0);
        while at > 0 {
            sum += u64::from(self.tree[at]);
            at &= at - 1;
        }
        sum
    }

    fn add(&mut self, slot: usize, comes: bool) {
        let mut at = slot + 1;
        while at < self.tree.len() {
            if comes {
                self.tree[at] += 1;
            } else {
                self.tree[at] -= 1;
            }
            at += at & at.wrapping_neg();
        }
    }

    fn move_together(&mut self) {
        let mut kept: Vec<&mut Last> = self.last.values_mut().collect();
        kept.sort_unstable_by_key(|last| last.slot);
        for (slot, last) in kept.iter_mut().enumerate() {
            last.slot = slot;
        }
        self.next = kept.len();
        let slots = (4 * self.next).max(SLOTS_MIN);
        self.tree = vec![0; slots + 1];
        (0..self.next).for_each(|slot| self.add(slot, true));
    }

    /// Returns the resulting curve.
    pub(crate) fn curve(&self) -> Curve {
        let sums = |of: &BTreeMap<u64, u64>| {
            let mut sum = 0;
            let add = |(&distance, &count): (&u64, &u64)| {
                sum += count;
                (distance, sum)
            };
            of.iter().map(add).collect()
        };
        Curve {
            packets: self.packets,
            addresses: self.last.len() as u64,
            by_entries: sums(&self.by_entries),
            by_packets: sums(&self.by_packets),
        }
    }
}

/// Interpretation of the distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Different addresses in between, plus one: a CAM that evicts the least recently used.
    Entries,
    /// Packets in between, plus one: as the thesis counts.
    Packets,
}

/// Hit counts of a CAM by size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Curve {
    /// Total number of look-ups.
    pub packets: u64,
    /// Number of different addresses: this many lookups miss in any CAM.
    pub addresses: u64,
    by_entries: Vec<(u64, u64)>,
    by_packets: Vec<(u64, u64)>,
}

impl Curve {
    fn sums(&self, reading: Reading) -> &[(u64, u64)] {
        match reading {
            Reading::Entries => &self.by_entries,
            Reading::Packets => &self.by_packets,
        }
    }

    /// Returns the number of hits with `entries` entries.
    pub(crate) fn hits(&self, reading: Reading, entries: u64) -> u64 {
        let sums = self.sums(reading);
        let within = sums.partition_point(|&(distance, _)| distance <= entries);
        within.checked_sub(1).map_or(0, |at| sums[at].1)
    }

    /// Returns the hit rate of all lookups, 0 to 1; 0 if there were none.
    pub(crate) fn hit_rate(&self, reading: Reading, entries: u64) -> f64 {
        self.hits(reading, entries) as f64 / self.packets.max(1) as f64
    }

    /// Returns the hit rate of repeated lookups (all but the first of each address), 0 to 1; 0 if
    /// there were none.
    pub(crate) fn reuse_hit_rate(&self, reading: Reading, entries: u64) -> f64 {
        let could = self.packets - self.addresses;
        self.hits(reading, entries) as f64 / could.max(1) as f64
    }

    /// Returns the fewest entries with which `per_mille` thousandths of the repeated lookups hit;
    /// `None` if there were none.
    pub(crate) fn entries_for(&self, reading: Reading, per_mille: u64) -> Option<u64> {
        let wanted = ((self.packets - self.addresses) * per_mille).div_ceil(1000).max(1);
        let sums = self.sums(reading);
        let at = sums.partition_point(|&(_, hits)| hits < wanted);
        sums.get(at).map(|&(distance, _)| distance)
    }

    /// Returns the longest distance: with this many entries all repeated lookups hit.
    pub(crate) fn distance_max(&self, reading: Reading) -> u64 {
        self.sums(reading).last().map_or(0, |&(distance, _)| distance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oorandom::Rand64;

    /// A CAM that evicts the least recently used entry, as simple as can be.
    fn lru_hits(keys: &[u64], entries: usize) -> u64 {
        let mut cam: Vec<u64> = Vec::new();
        let mut hits = 0;
        for &key in keys {
            match cam.iter().position(|&kept| kept == key) {
                Some(at) => {
                    cam.remove(at);
                    hits += 1;
                }
                None if cam.len() == entries => drop(cam.remove(0)),
                None => {}
            }
            cam.push(key);
        }
        hits
    }

    fn curve(keys: &[u64]) -> Curve {
        let mut distances = Distances::default();
        keys.iter().for_each(|&key| distances.packet(key));
        distances.curve()
    }

    #[test]
    fn the_two_distances_of_a_short_sequence_are_what_one_counts_by_hand() {
        let curve = curve(&[1, 2, 2, 3, 1]);
        assert_eq!((curve.packets, curve.addresses), (5, 3));
        // 2 comes back at once; 1 comes back after 2, 2, 3: two addresses, three packets.
        assert_eq!(curve.by_entries, [(1, 1), (3, 2)]);
        assert_eq!(curve.by_packets, [(1, 1), (4, 2)]);
        assert_eq!(curve.hits(Reading::Entries, 2), 1);
        assert_eq!(curve.hits(Reading::Entries, 3), 2);
        assert_eq!(curve.entries_for(Reading::Entries, 500), Some(1));
        assert_eq!(curve.entries_for(Reading::Packets, 1000), Some(4));
        assert_eq!(curve.reuse_hit_rate(Reading::Packets, 3), 0.5);
    }

    #[test]
    fn hits_are_those_of_a_cam_that_evicts_the_least_recently_used() {
        for seed in 0..20 {
            let mut dice = Rand64::new(seed);
            // Products make some addresses frequent; long enough to move together often.
            let mut key = || dice.rand_range(0..60) * dice.rand_range(0..60);
            let keys: Vec<u64> = (0..20_000).map(|_| key()).collect();
            let curve = curve(&keys);
            for entries in [1, 2, 7, 50, 300, 2000] {
                let hits = curve.hits(Reading::Entries, entries);
                assert_eq!(hits, lru_hits(&keys, entries as usize), "seed {seed}, {entries}");
                assert!(curve.hits(Reading::Packets, entries) <= hits, "seed {seed}, {entries}");
            }
        }
    }

    #[test]
    fn a_sequence_without_a_repetition_hits_nothing() {
        let curve = curve(&(0..10_000).collect::<Vec<_>>());
        assert_eq!(curve.hits(Reading::Entries, 1 << 40), 0);
        assert_eq!(curve.entries_for(Reading::Entries, 990), None);
        assert_eq!(curve.distance_max(Reading::Packets), 0);
    }
}
