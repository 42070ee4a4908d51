//! Tuple space search (V. Srinivasan, S. Suri, G. Varghese, "Packet classification using tuple
//! space search", SIGCOMM 1999), for comparison with the TCAM's method. It has one hash table for
//! each mask, and searches the mask with the highest index first. It stops at masks that have only
//! lower indexes than the match.

use axon_pipeline::{KEY_BYTES, KeyBytes};
use hashbrown::HashMap;
use std::collections::BTreeSet;
use std::hash::{BuildHasherDefault, Hasher};

/// Key as words.
type Words = [u64; 3];

#[derive(Default)]
pub struct TupleSpace {
    /// Tuples, the one with the highest index first.
    tuples: Vec<Tuple>,
}

struct Tuple {
    mask: Words,
    /// Highest of `indexes`.
    highest: u16,
    /// All indexes with this mask.
    indexes: BTreeSet<u16>,
    /// Indexes by value, the highest last.
    values: HashMap<Words, Vec<u16>, BuildHasherDefault<Multiply>>,
}

impl TupleSpace {
    pub fn set(&mut self, index: u16, value: &KeyBytes, mask: &KeyBytes) {
        let (value, mask) = (words(value), words(mask));
        let found = self.tuples.iter().position(|tuple| tuple.mask == mask);
        let place = found.unwrap_or_else(|| {
            let (indexes, values) = (BTreeSet::new(), HashMap::default());
            self.tuples.push(Tuple { mask, highest: 0, indexes, values });
            self.tuples.len() - 1
        });
        let tuple = &mut self.tuples[place];
        tuple.indexes.insert(index);
        let same = tuple.values.entry(value).or_default();
        let at = same.partition_point(|&other| other < index);
        same.insert(at, index);
        self.order(place);
    }

    pub fn clear(&mut self, index: u16, value: &KeyBytes, mask: &KeyBytes) {
        let (value, mask) = (words(value), words(mask));
        let Some(place) = self.tuples.iter().position(|tuple| tuple.mask == mask) else { return };
        let tuple = &mut self.tuples[place];
        tuple.indexes.remove(&index);
        if let Some(same) = tuple.values.get_mut(&value) {
            same.retain(|&other| other != index);
            if same.is_empty() {
                tuple.values.remove(&value);
            }
        }
        if tuple.indexes.is_empty() {
            self.tuples.remove(place);
        } else {
            self.order(place);
        }
    }

    /// Restores the order after a change of one tuple.
    fn order(&mut self, place: usize) {
        let tuple = &mut self.tuples[place];
        tuple.highest = tuple.indexes.last().copied().unwrap_or(0);
        self.tuples.sort_by_key(|tuple| std::cmp::Reverse(tuple.highest));
    }

    #[inline]
    pub fn lookup(&self, key: &KeyBytes) -> Option<u16> {
        let key = words(key);
        let mut best: Option<u16> = None;
        for tuple in &self.tuples {
            if best.is_some_and(|best| best > tuple.highest) {
                break;
            }
            let masked = std::array::from_fn(|at| key[at] & tuple.mask[at]);
            if let Some(same) = tuple.values.get(&masked) {
                best = best.max(same.last().copied());
            }
        }
        best
    }

    pub fn tuples(&self) -> usize {
        self.tuples.len()
    }

    /// Returns the approximate memory in bytes.
    pub fn bytes(&self) -> usize {
        let of = |tuple: &Tuple| {
            let slot = size_of::<(Words, Vec<u16>)>() + 1;
            size_of::<Tuple>() + tuple.values.capacity() * slot * 8 / 7 + tuple.indexes.len() * 4
        };
        self.tuples.iter().map(of).sum()
    }
}

fn words(key: &KeyBytes) -> Words {
    let mut padded = [0; 24];
    padded[..KEY_BYTES].copy_from_slice(key);
    std::array::from_fn(|at| u64::from_le_bytes(padded[at * 8..at * 8 + 8].try_into().unwrap()))
}

/// Hasher with one multiplication for each word of a key.
#[derive(Default)]
struct Multiply(u64);

impl Hasher for Multiply {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks_exact(8) {
            self.write_u64(u64::from_le_bytes(chunk.try_into().unwrap()));
        }
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93;
        self.0 = product as u64 ^ (product >> 64) as u64;
    }

    #[inline]
    fn write_usize(&mut self, _length: usize) {}
}
