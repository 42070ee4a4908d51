//! TCAM: values and masks; among matching entries the highest index wins.
//!
//! Each entry has one bit. For every half byte of a key and every value of it, a row of bits
//! contains the entries that would match; the entries that match a key are the bits set in all its
//! rows (T. V. Lakshman, D. Stiliadis, "High-speed policy-based packet forwarding using efficient
//! multi-dimensional range matching", SIGCOMM 1998). The rows of 512 entries are adjacent, each one
//! cache line, so that they are compared in a few steps without a branch. The entries with the
//! highest indexes come first, and the first 512 that contain a match end the search.

use crate::key::KeyBytes;
use alloc::vec::Vec;

/// Number of values of half a byte.
const VALUES: usize = 16;
/// Entries per word of a row.
const WORD: usize = 64;
/// Words per row.
const WORDS: usize = 8;
/// Entries per row.
const BLOCK: usize = WORD * WORDS;

/// One bit for each entry of a block: one cache line.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Row([u64; WORDS]);

/// Rows of one byte of the key: those of its high half, then those of its low half.
type Rows = [[Row; VALUES]; 2];

/// Entries of one lookup key.
#[derive(Clone, Debug, Default)]
pub(super) struct Tcam {
    /// Bytes of the key.
    bytes: usize,
    /// Existing entries, by block.
    present: Vec<Row>,
    /// Entries that decide the target of a frame, by block.
    deciding: Vec<Row>,
    /// Number of entries, by block.
    counts: Vec<u16>,
    /// Matching entries, by block and byte.
    rows: Vec<Rows>,
}

impl Row {
    #[inline(always)]
    fn and(&mut self, other: &Row) {
        for (bits, other) in self.0.iter_mut().zip(&other.0) {
            *bits &= other;
        }
    }

    /// Returns the highest bit. It does not branch until the word is known, since that differs for
    /// each key.
    #[inline(always)]
    fn highest(&self) -> Option<usize> {
        let last = (0..WORDS).fold(0, |last, word| if self.0[word] != 0 { word } else { last });
        let bits = self.0[last];
        (bits != 0).then(|| last * WORD + WORD - 1 - bits.leading_zeros() as usize)
    }
}

impl Tcam {
    /// Returns a TCAM without entries, for a key of this many bytes.
    pub(super) fn new(bytes: usize) -> Tcam {
        Tcam { bytes, ..Tcam::default() }
    }

    /// Adds an entry with `value` and `mask` at `index`, which must be unused. Both have as many
    /// bytes as the key. An entry that does not decide is skipped by [`Tcam::lookup_deciding`].
    pub(super) fn set(&mut self, index: u16, value: &[u8], mask: &[u8], decides: bool) {
        let (block, word, bit) = place_of(index);
        if block >= self.present.len() {
            self.present.resize(block + 1, Row::default());
            self.deciding.resize(block + 1, Row::default());
            self.counts.resize(block + 1, 0);
            self.rows.resize((block + 1) * self.bytes, Rows::default());
        }
        self.present[block].0[word] |= bit;
        if decides {
            self.deciding[block].0[word] |= bit;
        }
        self.counts[block] += 1;
        self.change(block, (value, mask), |row| row.0[word] |= bit);
    }

    /// Removes the entry at `index` with this value and mask.
    pub(super) fn clear(&mut self, index: u16, value: &[u8], mask: &[u8]) {
        let (block, word, bit) = place_of(index);
        self.present[block].0[word] &= !bit;
        self.deciding[block].0[word] &= !bit;
        self.counts[block] -= 1;
        self.change(block, (value, mask), |row| row.0[word] &= !bit);
    }

    /// Changes the rows of all values that have these bits under the mask.
    #[inline(always)]
    fn change(&mut self, block: usize, (value, mask): (&[u8], &[u8]), change: impl Fn(&mut Row)) {
        let rows = &mut self.rows[block * self.bytes..];
        for (rows, (value, mask)) in rows.iter_mut().zip(value.iter().zip(mask)) {
            for (rows, shift) in rows.iter_mut().zip([4, 0]) {
                let (value, free) = (value & mask, !mask >> shift & 0xf);
                // Iterate over all subsets of the bits outside the mask, from none to all.
                let mut part = 0;
                loop {
                    change(&mut rows[usize::from(value >> shift & 0xf | part)]);
                    if part == free {
                        break;
                    }
                    part = part.wrapping_sub(free) & free;
                }
            }
        }
    }

    /// Returns the highest index of a matching entry.
    #[inline]
    pub(super) fn lookup(&self, key: &KeyBytes) -> Option<u16> {
        self.highest_of(&self.present, key)
    }

    /// Returns the highest index of a matching entry that decides the target of the frame.
    pub(super) fn lookup_deciding(&self, key: &KeyBytes) -> Option<u16> {
        self.highest_of(&self.deciding, key)
    }

    /// Returns the highest index of a matching entry among `candidates`.
    #[inline(always)]
    fn highest_of(&self, candidates: &[Row], key: &KeyBytes) -> Option<u16> {
        for block in (0..candidates.len()).rev() {
            if self.counts[block] == 0 {
                continue;
            }
            let mut bits = candidates[block];
            let rows = &self.rows[block * self.bytes..][..self.bytes];
            for ([high, low], byte) in rows.iter().zip(key) {
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

/// Returns the block of an index, its word in a row and its bit.
const fn place_of(index: u16) -> (usize, usize, u64) {
    let index = index as usize;
    (index / BLOCK, index % BLOCK / WORD, 1 << (index % WORD))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::KEY_BYTES;
    use alloc::collections::BTreeMap;
    use proptest::prelude::*;

    /// Keys of three bytes with few values, so that entries overlap.
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
            changes in proptest::collection::vec(
                (0_u16..9000, bytes(), bytes(), any::<bool>(), any::<bool>()), 0..80
            ),
            keys in proptest::collection::vec(bytes(), 40),
        ) {
            let mut tcam = Tcam::new(3);
            let mut plain: BTreeMap<u16, (KeyBytes, KeyBytes, bool)> = BTreeMap::new();
            for (index, value, mask, is_set, decides) in changes {
                let indices: Vec<u16> = plain.keys().copied().collect();
                if is_set || indices.is_empty() {
                    if let Some((value, mask, _)) = plain.insert(index, (value, mask, decides)) {
                        tcam.clear(index, &value[..3], &mask[..3]);
                    }
                    tcam.set(index, &value[..3], &mask[..3], decides);
                } else {
                    let index = indices[usize::from(index) % indices.len()];
                    let (value, mask, _) = plain.remove(&index).unwrap();
                    tcam.clear(index, &value[..3], &mask[..3]);
                }
            }
            for key in keys {
                let matches = |(value, mask, _): &(KeyBytes, KeyBytes, bool)| {
                    (0..KEY_BYTES).all(|at| key[at] & mask[at] == value[at] & mask[at])
                };
                let highest = plain.iter().rev().find(|(_, entry)| matches(entry));
                prop_assert_eq!(tcam.lookup(&key), highest.map(|(&index, _)| index));
                let mut deciding = plain.iter().rev().filter(|(_, entry)| entry.2);
                let highest = deciding.find(|(_, entry)| matches(entry));
                prop_assert_eq!(tcam.lookup_deciding(&key), highest.map(|(&index, _)| index));
            }
        }
    }

    #[test]
    fn a_tcam_without_entries_matches_nothing() {
        assert_eq!(Tcam::new(KEY_BYTES).lookup(&[0; KEY_BYTES]), None);
    }
}
