//! The TCAM: values and masks; of several that match the highest index wins.
//!
//! In plain English: one bit stands for each entry. For every half byte of a key and every value
//! that it can have, a row of bits says which entries would match; the entries that match a key are
//! the bits that stand in all its rows (T. V. Lakshman, D. Stiliadis, "High-speed policy-based
//! packet forwarding using efficient multi-dimensional range matching", SIGCOMM 1998). One more bit
//! for each 64 of a row says whether any of them is set, so nearly all of a row is never read
//! (F. Baboescu, G. Varghese, "Scalable packet classification", SIGCOMM 2001).

use crate::key::{KEY_BYTES, KeyBytes};
use alloc::vec::Vec;

/// Values of half a byte.
const VALUES: usize = 16;
/// Entries of one word of a row.
const WORD: usize = 64;

/// The entries of one lookup key.
#[derive(Clone, Debug, Default)]
pub(super) struct Tcam {
    /// The half bytes that the key uses, by their place in it, the high half of byte 0 first.
    halves: Vec<u8>,
    /// Words of a row.
    words: usize,
    /// By half, value and word: the entries that match.
    rows: Vec<u64>,
    /// By half, value and 64 words: the words that are not zero.
    summaries: Vec<u64>,
}

impl Tcam {
    /// No entries, of a key that uses these bits.
    pub(super) fn new(used: &KeyBytes) -> Tcam {
        let halves = (0..2 * KEY_BYTES as u8).filter(|&half| half_of(used, half) != 0);
        Tcam { halves: halves.collect(), ..Tcam::default() }
    }

    /// Enters what matches `value` under `mask` at `index`, where nothing is.
    pub(super) fn set(&mut self, index: u16, value: &KeyBytes, mask: &KeyBytes) {
        self.grow(usize::from(index) / WORD + 1);
        let (word, bit) = (usize::from(index) / WORD, 1 << (usize::from(index) % WORD));
        for place in 0..self.halves.len() {
            let half = self.halves[place];
            let (value, mask) = (half_of(value, half), half_of(mask, half));
            for of in 0..VALUES {
                if of as u8 & mask == value & mask {
                    self.rows[(place * VALUES + of) * self.words + word] |= bit;
                    let summaries = self.words.div_ceil(WORD);
                    let at = (place * VALUES + of) * summaries + word / WORD;
                    self.summaries[at] |= 1 << (word % WORD);
                }
            }
        }
    }

    /// Takes out what is at `index`.
    pub(super) fn clear(&mut self, index: u16) {
        let (word, bit) = (usize::from(index) / WORD, 1 << (usize::from(index) % WORD));
        if word >= self.words {
            return;
        }
        let summaries = self.words.div_ceil(WORD);
        for row in 0..self.halves.len() * VALUES {
            let bits = &mut self.rows[row * self.words + word];
            *bits &= !bit;
            if *bits == 0 {
                self.summaries[row * summaries + word / WORD] &= !(1 << (word % WORD));
            }
        }
    }

    /// The highest index of an entry that matches.
    #[inline]
    pub(super) fn lookup(&self, key: &KeyBytes) -> Option<u16> {
        let summaries = self.words.div_ceil(WORD);
        for part in (0..summaries).rev() {
            let all = self.halves.iter().enumerate().map(|(place, &half)| {
                self.summaries
                    [(place * VALUES + usize::from(half_of(key, half))) * summaries + part]
            });
            let mut candidates = all.fold(u64::MAX, |bits, row| bits & row);
            while candidates != 0 {
                let high = WORD - 1 - candidates.leading_zeros() as usize;
                candidates &= !(1 << high);
                let word = part * WORD + high;
                let bits = self.word_of(key, word);
                if bits != 0 {
                    return Some((word * WORD + WORD - 1 - bits.leading_zeros() as usize) as u16);
                }
            }
        }
        None
    }

    /// The entries of one word that match.
    #[inline]
    fn word_of(&self, key: &KeyBytes, word: usize) -> u64 {
        let all = self.halves.iter().enumerate().map(|(place, &half)| {
            self.rows[(place * VALUES + usize::from(half_of(key, half))) * self.words + word]
        });
        all.fold(u64::MAX, |bits, row| bits & row)
    }

    /// Makes the rows so many words long, if they are shorter.
    fn grow(&mut self, words: usize) {
        if words <= self.words {
            return;
        }
        let words = words.next_power_of_two();
        let rows = self.halves.len() * VALUES;
        self.rows = longer(&self.rows, rows, self.words, words);
        let (before, after) = (self.words.div_ceil(WORD), words.div_ceil(WORD));
        self.summaries = longer(&self.summaries, rows, before, after);
        self.words = words;
    }
}

/// The same rows, each of `to` words instead of `from`.
fn longer(all: &[u64], rows: usize, from: usize, to: usize) -> Vec<u64> {
    let mut grown = alloc::vec![0; rows * to];
    for row in 0..rows {
        grown[row * to..row * to + from].copy_from_slice(&all[row * from..(row + 1) * from]);
    }
    grown
}

/// Half a byte of a key: the high half of byte 0 is number 0.
#[inline]
fn half_of(key: &KeyBytes, half: u8) -> u8 {
    let byte = key[usize::from(half / 2) % KEY_BYTES];
    if half.is_multiple_of(2) { byte >> 4 } else { byte & 0xf }
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
