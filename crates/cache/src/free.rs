//! Set of the buffers that are not in use, with a constant-time search for the next one.
//!
//! The set has three levels of words. A bit in the second or third level is set if the word below
//! it is not zero. Reading five words finds the next free buffer. Therefore, an agent that holds
//! one old payload, or every second one, makes no operation slow.

use crate::handle::BUFFERS_MAX;
use alloc::vec;
use alloc::vec::Vec;

/// Number of bits in a word.
const BITS: usize = u64::BITS as usize;
// The third level consists of one word.
const _: () = assert!(BUFFERS_MAX <= BITS * BITS * BITS);

/// Set of numbers below a limit of at most [`BUFFERS_MAX`].
#[derive(Clone, Debug)]
pub(crate) struct Free {
    low: Vec<u64>,
    mid: Vec<u64>,
    top: u64,
    count: usize,
}

impl Free {
    /// Creates the set of all numbers below `limit`.
    pub(crate) fn all(limit: usize) -> Free {
        let low = limit.div_ceil(BITS);
        let mut all =
            Free { low: vec![0; low], mid: vec![0; low.div_ceil(BITS)], top: 0, count: 0 };
        (0..limit).for_each(|at| all.set(at, true));
        all
    }

    /// Returns the number of elements.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Adds or removes `at`. Numbers at or above the limit are ignored.
    #[inline]
    pub(crate) fn set(&mut self, at: usize, to: bool) {
        let (word, bit) = (at / BITS, 1 << (at % BITS));
        let (group, word_bit) = (word / BITS, 1 << (word % BITS));
        let Some(low) = self.low.get_mut(word) else { return };
        if (*low & bit != 0) == to {
            return;
        }
        *low ^= bit;
        let was_or_is_alone = *low & !bit == 0;
        self.count = if to { self.count + 1 } else { self.count - 1 };
        if was_or_is_alone {
            self.mid[group] ^= word_bit;
            if self.mid[group] & !word_bit == 0 {
                self.top ^= 1 << group;
            }
        }
    }

    /// Returns the first number in the set at or after `at`, wrapping around.
    #[inline]
    pub(crate) fn next_from(&self, at: usize) -> Option<usize> {
        self.at_or_after(at).or_else(|| self.at_or_after(0))
    }

    fn at_or_after(&self, at: usize) -> Option<usize> {
        let word = at / BITS;
        let here = self.low.get(word)? & u64::MAX << (at % BITS);
        if here != 0 {
            return Some(word * BITS + first(here));
        }
        let word = self.word_from(word + 1)?;
        Some(word * BITS + first(self.low[word]))
    }

    /// Returns the first word of the lowest level, at or after `word`, that is not zero.
    fn word_from(&self, word: usize) -> Option<usize> {
        let group = word / BITS;
        let here = self.mid.get(group)? & u64::MAX << (word % BITS);
        if here != 0 {
            return Some(group * BITS + first(here));
        }
        // These are all groups after this one. After the last group, there are none.
        let after = self.top & u64::MAX.checked_shl(group as u32 + 1).unwrap_or(0);
        let group = (after != 0).then(|| first(after))?;
        Some(group * BITS + first(self.mid[group]))
    }
}

/// Returns the lowest set bit in a word that is not zero.
fn first(word: u64) -> usize {
    word.trailing_zeros() as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use axon_node::random::Random;

    #[test]
    fn the_next_is_that_of_an_ordered_set_whatever_the_size() {
        for limit in [1, 2, 63, 64, 65, 384, 4096, 4097, BUFFERS_MAX] {
            let (mut set, mut plain) = (Free::all(limit), BTreeSet::from_iter(0..limit));
            let mut random = Random::new(limit as u64);
            let mut below = |bound: usize| random.next_u64() as usize % bound;
            for step in 0..4000 {
                // The set has mostly few elements, and sometimes many.
                let at = below(limit);
                let to = below(8) < if step / 500 % 2 == 0 { 2 } else { 6 };
                set.set(at, to);
                if to {
                    plain.insert(at)
                } else {
                    plain.remove(&at)
                };
                let from = below(limit);
                let next = plain.range(from..).chain(plain.range(..from)).next().copied();
                assert_eq!(set.next_from(from), next, "limit {limit}, step {step}, from {from}");
                assert_eq!(set.len(), plain.len());
            }
            while let Some(at) = plain.pop_first() {
                set.set(at, false);
                assert_eq!(set.next_from(at), plain.first().copied());
            }
        }
    }

    #[test]
    fn a_number_beyond_the_limit_is_no_member() {
        let mut set = Free::all(3);
        set.set(64, true);
        assert_eq!((set.len(), set.next_from(64)), (3, Some(0)));
    }
}
