//! Exact match: a hash table of fixed size.

use super::entry::Entry;
use core::hash::{BuildHasher, Hasher};
use hashbrown::HashMap;

/// Entries by keys of up to 64 bits.
#[derive(Clone, Debug)]
pub(super) struct Exact {
    entries: HashMap<u64, Entry, Seeded>,
    size: u32,
}

impl Exact {
    /// Returns an empty table; `seed` determines which keys collide.
    pub(super) fn new(size: u32, seed: u64) -> Exact {
        Exact { entries: HashMap::with_hasher(Seeded(seed)), size }
    }

    #[inline]
    pub(super) fn get_mut(&mut self, key: u64) -> Option<&mut Entry> {
        self.entries.get_mut(&key)
    }

    pub(super) fn get(&self, key: u64) -> Option<&Entry> {
        self.entries.get(&key)
    }

    pub(super) fn insert(&mut self, key: u64, entry: Entry) {
        self.entries.insert(key, entry);
    }

    pub(super) fn remove(&mut self, key: u64) -> Option<Entry> {
        self.entries.remove(&key)
    }

    /// Returns the number of entries, and its maximum.
    pub(super) fn count(&self) -> (u32, u32) {
        (self.entries.len() as u32, self.size)
    }

    /// Iterates over all entries, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &Entry)> {
        self.entries.iter().map(|(&key, entry)| (key, entry))
    }
}

/// Builder of seeded hashers: hosts choose the addresses that a bridge learns, and must not be able
/// to predict collisions.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seeded(u64);

impl BuildHasher for Seeded {
    type Hasher = Folded;

    #[inline]
    fn build_hasher(&self) -> Folded {
        Folded(self.0)
    }
}

/// Hasher of 64 bits by one multiplication, with both halves of the product.
#[derive(Clone, Copy, Default)]
pub(super) struct Folded(u64);

impl Hasher for Folded {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    #[inline]
    fn write_u64(&mut self, value: u64) {
        let mixed = self.0 ^ value ^ 0x9e37_79b9_7f4a_7c15;
        let product = u128::from(mixed) * 0xd6e8_feb8_6659_fd93_u128;
        self.0 = product as u64 ^ (product >> 64) as u64;
    }
}
