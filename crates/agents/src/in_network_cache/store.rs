//! Least-recently-used store of a cache.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use axon_wire::{Span, Time};

/// Overhead of an entry, in bytes, for its nodes in the two maps.
const ENTRY_BYTES: usize = 128;

#[derive(Debug)]
struct Entry {
    value: Vec<u8>,
    stored_at: Time,
    /// Position in the order of use.
    used: u64,
}

/// Least-recently-used store, bounded in bytes.
#[derive(Debug)]
pub(super) struct Store {
    entries: BTreeMap<Vec<u8>, Entry>,
    order: BTreeMap<u64, Vec<u8>>,
    uses: u64,
    bytes: usize,
    bytes_max: usize,
    ttl: Option<Span>,
}

impl Store {
    /// Creates an empty store of `bytes_max` bytes with this time to live. If `ttl` is `None`, it
    /// is unlimited.
    pub(crate) fn new(bytes_max: usize, ttl: Option<Span>) -> Store {
        let (entries, order) = (BTreeMap::new(), BTreeMap::new());
        Store { entries, order, uses: 0, bytes: 0, bytes_max, ttl }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the value of a key and makes it the most recently used one.
    pub(crate) fn get(&mut self, now: Time, key: &[u8]) -> Option<&[u8]> {
        let (stored_at, used) = self.entries.get(key).map(|entry| (entry.stored_at, entry.used))?;
        if self.ttl.is_some_and(|ttl| now >= stored_at + ttl) {
            self.remove(key);
            return None;
        }
        let key = self.order.remove(&used)?;
        self.uses += 1;
        let entry = self.entries.get_mut(&key)?;
        entry.used = self.uses;
        self.order.insert(self.uses, key);
        Some(&entry.value)
    }

    /// Stores a value. Returns the number of evicted entries. A value that is larger than the whole
    /// store is not stored.
    pub(crate) fn put(&mut self, now: Time, key: &[u8], value: &[u8]) -> u64 {
        self.remove(key);
        let bytes = ENTRY_BYTES + 2 * key.len() + value.len();
        if bytes > self.bytes_max {
            return 0;
        }
        let mut evicted = 0;
        while self.bytes + bytes > self.bytes_max {
            let Some((_, oldest)) = self.order.pop_first() else { break };
            self.forget(&oldest);
            evicted += 1;
        }
        self.uses += 1;
        self.bytes += bytes;
        let entry = Entry { value: value.to_vec(), stored_at: now, used: self.uses };
        self.order.insert(self.uses, key.to_vec());
        self.entries.insert(key.to_vec(), entry);
        evicted
    }

    /// Removes a key. Returns whether the key was in the store.
    pub(crate) fn remove(&mut self, key: &[u8]) -> bool {
        let used = self.forget(key);
        used.is_some_and(|used| self.order.remove(&used).is_some())
    }

    /// Removes all keys. Returns their number.
    pub(crate) fn clear(&mut self) -> u64 {
        let count = self.entries.len() as u64;
        self.entries.clear();
        self.order.clear();
        self.bytes = 0;
        count
    }

    fn forget(&mut self, key: &[u8]) -> Option<u64> {
        let entry = self.entries.remove(key)?;
        self.bytes -= ENTRY_BYTES + 2 * key.len() + entry.value.len();
        Some(entry.used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use axon_node::random::Random;

    const NOW: Time = Time::ZERO;

    #[test]
    fn the_least_recently_used_is_given_up_and_the_bound_holds() {
        let value = [0; 1000];
        let each = ENTRY_BYTES + 2 + value.len();
        let mut store = Store::new(3 * each, None);
        for key in 1..=3 {
            assert_eq!(store.put(NOW, &[key], &value), 0);
        }
        assert!(store.get(NOW, &[1]).is_some());
        assert_eq!(store.put(NOW, &[4], &value), 1);
        let there = [1, 2, 3, 4].map(|key| store.get(NOW, &[key]).is_some());
        assert_eq!(there, [true, false, true, true]);
        assert_eq!(store.bytes(), 3 * each);
        assert_eq!(store.put(NOW, &[5], &vec![0; 3 * each]), 0, "too large for all of it");
        assert_eq!(store.len(), 3, "so nothing is given up for it");
    }

    #[test]
    fn an_entry_ends_with_its_time_to_live() {
        let mut store = Store::new(1 << 20, Some(Span::from_millis(5)));
        store.put(NOW, b"k", b"v");
        assert_eq!(store.get(NOW + Span::from_micros(4_999), b"k"), Some(&b"v"[..]));
        assert_eq!(store.get(NOW + Span::from_millis(5), b"k"), None);
        assert_eq!((store.len(), store.bytes()), (0, 0));
    }

    #[test]
    fn it_is_a_plain_list_in_order_of_use_whatever_is_done() {
        let mut random = Random::new(11);
        let (mut store, mut plain) = (Store::new(4_000, None), Vec::<(u8, usize)>::new());
        let size = |length: usize| ENTRY_BYTES + 2 + length;
        for step in 0..20_000 {
            let key = (random.next_u32() % 40) as u8;
            let at = plain.iter().position(|entry| entry.0 == key);
            match random.next_u32() % 3 {
                0 => {
                    let found = store.get(NOW, &[key]).map(|value| value.len());
                    let moved = at.map(|at| plain.remove(at));
                    assert_eq!(found, moved.map(|entry| entry.1), "step {step}");
                    plain.extend(moved);
                }
                1 => {
                    let length = (random.next_u32() % 900) as usize;
                    store.put(NOW, &[key], &vec![key; length]);
                    at.map(|at| plain.remove(at));
                    plain.push((key, length));
                    let sum =
                        |plain: &[(u8, usize)]| plain.iter().map(|e| size(e.1)).sum::<usize>();
                    while sum(&plain) > 4_000 {
                        plain.remove(0);
                    }
                    assert_eq!(store.bytes(), sum(&plain), "step {step}");
                }
                _ => {
                    assert_eq!(store.remove(&[key]), at.is_some(), "step {step}");
                    at.map(|at| plain.remove(at));
                }
            }
            assert_eq!(store.len(), plain.len());
        }
    }
}
