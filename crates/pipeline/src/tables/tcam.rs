//! The TCAM: values and masks; of several that match the highest index wins.
//!
//! In plain English: one bit stands for each entry. For every half byte of a key and every value
//! that it can have, a row of bits says which entries would match; the entries that match a key are
//! the bits that stand in all its rows (T. V. Lakshman, D. Stiliadis, "High-speed policy-based
//! packet forwarding using efficient multi-dimensional range matching", SIGCOMM 1998). The rows of
//! 512 entries lie side by side, each one line of the cache, so that they are compared in a few
//! steps without a branch. The entries with the highest indexes come first, and the first 512 that
//! have a match end the search.

use crate::key::{KEY_BYTES, KeyBytes};
use alloc::vec::Vec;

/// Values of half a byte.
const VALUES: usize = 16;
/// Entries of one word of a row.
const WORD: usize = 64;
/// Words of a row.
const WORDS: usize = 8;
/// Entries of a row.
const BLOCK: usize = WORD * WORDS;

/// One bit for each entry of a block: one line of the cache.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Row([u64; WORDS]);

/// The rows of one byte of the key: those of its high half, then those of its low half.
type Rows = [[Row; VALUES]; 2];

/// The entries of one lookup key.
#[derive(Clone, Debug, Default)]
pub(super) struct Tcam {
    /// The places of the bytes that the key uses.
    bytes: Vec<u8>,
    /// By block: its entries.
    present: Vec<Row>,
    /// By block: how many entries it has.
    counts: Vec<u16>,
    /// By block and byte: the entries that match.
    rows: Vec<Rows>,
}

impl Row {
    #[inline(always)]
    fn and(&mut self, other: &Row) {
        for (bits, other) in self.0.iter_mut().zip(&other.0) {
            *bits &= other;
        }
    }

    /// The highest bit. Without a branch until the word is known, as it is another for each key.
    #[inline(always)]
    fn highest(&self) -> Option<usize> {
        let last = (0..WORDS).fold(0, |last, word| if self.0[word] != 0 { word } else { last });
        let bits = self.0[last];
        (bits != 0).then(|| last * WORD + WORD - 1 - bits.leading_zeros() as usize)
    }
}

impl Tcam {
    /// No entries, of a key that uses these bits.
    pub(super) fn new(used: &KeyBytes) -> Tcam {
        let used = (0..).zip(used).filter(|(_, used)| **used != 0);
        Tcam { bytes: used.map(|(place, _)| place).collect(), ..Tcam::default() }
    }

    /// Enters what matches `value` under `mask` at `index`, where nothing is.
    pub(super) fn set(&mut self, index: u16, value: &KeyBytes, mask: &KeyBytes) {
        let (block, word, bit) = place_of(index);
        let bytes = self.bytes.len();
        if block >= self.present.len() {
            self.present.resize(block + 1, Row::default());
            self.counts.resize(block + 1, 0);
            self.rows.resize((block + 1) * bytes, Rows::default());
        }
        self.present[block].0[word] |= bit;
        self.counts[block] += 1;
        for (&place, rows) in self.bytes.iter().zip(&mut self.rows[block * bytes..]) {
            let (value, mask) = (value[usize::from(place)], mask[usize::from(place)]);
            for (rows, shift) in rows.iter_mut().zip([4, 0]) {
                let (value, mask) = (value >> shift & 0xf, mask >> shift & 0xf);
                for (of, row) in (0..).zip(rows) {
                    row.0[word] |= if of & mask == value & mask { bit } else { 0 };
                }
            }
        }
    }

    /// Takes out what is at `index`.
    pub(super) fn clear(&mut self, index: u16) {
        let (block, word, bit) = place_of(index);
        let Some(present) = self.present.get_mut(block) else { return };
        if present.0[word] & bit == 0 {
            return;
        }
        present.0[word] &= !bit;
        self.counts[block] -= 1;
        let bytes = self.bytes.len();
        for row in self.rows[block * bytes..][..bytes].as_flattened_mut().as_flattened_mut() {
            row.0[word] &= !bit;
        }
    }

    /// The highest index of an entry that matches.
    #[inline]
    pub(super) fn lookup(&self, key: &KeyBytes) -> Option<u16> {
        let mut picked = [0; KEY_BYTES];
        for (byte, &place) in picked.iter_mut().zip(&self.bytes) {
            *byte = key[usize::from(place)];
        }
        let blocks = self.present.iter().zip(self.rows.chunks_exact(self.bytes.len().max(1)));
        for (block, ((present, rows), &count)) in blocks.zip(&self.counts).enumerate().rev() {
            if count == 0 {
                continue;
            }
            let mut bits = *present;
            for ([high, low], byte) in rows.iter().zip(picked) {
                bits.and(&high[usize::from(byte >> 4)]);
                bits.and(&low[usize::from(byte & 0xf)]);
            }
            if let Some(highest) = bits.highest() {
                return Some((block * BLOCK + highest) as u16);
            }
        }
        None
    }
}

/// The block of an index, its word in a row and its bit.
const fn place_of(index: u16) -> (usize, usize, u64) {
    let index = index as usize;
    (index / BLOCK, index % BLOCK / WORD, 1 << (index % WORD))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use proptest::prelude::*;

    /// Keys of three bytes of few values, so that entries overlap.
    fn bytes() -> impl Strategy<Value = KeyBytes> {
        let byte = prop_oneof![Just(0_u8), Just(0xff), Just(0xf0), 0_u8..4];
        proptest::collection::vec(byte, 3).prop_map(|few| {
            let mut key = [0; KEY_BYTES];
            key[..3].copy_from_slice(&few);
            key
        })
    }

    proptest! {
        #[test]
        fn the_highest_index_that_matches_wins(
            changes in proptest::collection::vec((0_u16..9000, bytes(), bytes(), any::<bool>()), 0..80),
            keys in proptest::collection::vec(bytes(), 40),
        ) {
            let mut used = [0; KEY_BYTES];
            used[..3].fill(0xff);
            let mut tcam = Tcam::new(&used);
            let mut plain: BTreeMap<u16, (KeyBytes, KeyBytes)> = BTreeMap::new();
            for (index, value, mask, is_set) in changes {
                let indices: Vec<u16> = plain.keys().copied().collect();
                if is_set || indices.is_empty() {
                    if plain.insert(index, (value, mask)).is_some() {
                        tcam.clear(index);
                    }
                    tcam.set(index, &value, &mask);
                } else {
                    let index = indices[usize::from(index) % indices.len()];
                    plain.remove(&index);
                    tcam.clear(index);
                }
            }
            for key in keys {
                let matches = |(value, mask): &(KeyBytes, KeyBytes)| {
                    (0..KEY_BYTES).all(|at| key[at] & mask[at] == value[at] & mask[at])
                };
                let highest = plain.iter().rev().find(|(_, entry)| matches(entry));
                prop_assert_eq!(tcam.lookup(&key), highest.map(|(&index, _)| index));
            }
        }
    }

    #[test]
    fn a_tcam_without_entries_matches_nothing() {
        assert_eq!(Tcam::new(&[0xff; KEY_BYTES]).lookup(&[0; KEY_BYTES]), None);
    }
}
