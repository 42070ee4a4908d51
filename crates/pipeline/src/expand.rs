//! Expansion of ranges and prefixes to values and masks of the TCAM.
//!
//! A range is expanded into the fewest prefixes that cover exactly it (V. Srinivasan, G. Varghese,
//! S. Suri, M. Waldvogel, "Fast and scalable layer four switching", SIGCOMM 1998): at most 2w - 2
//! of them for numbers of w bits. Several fields with several patterns each are expanded to all
//! combinations.

use crate::key::UdlkId;
use crate::tables::{Prefix, TcamEntry};
use crate::{Action, KEY_BYTES};
use alloc::vec::Vec;

/// Bit pattern: a value, and a mask of the bits compared. The value is zero where the mask is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pattern {
    /// The required bits.
    pub value: Vec<u8>,
    /// The bits compared; as many bytes as `value`.
    pub mask: Vec<u8>,
}

/// Errors in an expansion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExpandError {
    /// The range ends before it begins.
    #[error("{first}-{last} ends before it begins")]
    Reversed {
        /// First number.
        first: u32,
        /// Last number.
        last: u32,
    },
    /// The number does not fit the field.
    #[error("{value} does not fit {bytes} bytes")]
    TooLarge {
        /// The number.
        value: u32,
        /// Bytes of the field: 1 to 4.
        bytes: usize,
    },
    /// A prefix longer than the field, or with bits set beyond its length.
    #[error("no prefix: expected at most {bits} bits and zeros behind them")]
    Prefix {
        /// Bits of the field.
        bits: usize,
    },
    /// More combinations than the caller allows.
    #[error("it takes {needed} entries; there is room for {max}")]
    TooMany {
        /// Number of combinations.
        needed: usize,
        /// The maximum number.
        max: usize,
    },
}

impl Pattern {
    /// Returns the pattern of exactly these bytes.
    pub fn exact(value: &[u8]) -> Pattern {
        Pattern { value: value.to_vec(), mask: alloc::vec![0xff; value.len()] }
    }

    /// Returns the pattern of any value of this many bytes.
    pub fn any(bytes: usize) -> Pattern {
        Pattern { value: alloc::vec![0; bytes], mask: alloc::vec![0; bytes] }
    }

    /// Returns the pattern of the first `bits` bits of `value`, with any bits behind them.
    ///
    /// # Errors
    /// `Prefix` if `value` has fewer bits, or some beyond `bits` are set.
    pub fn prefix(value: &[u8], bits: usize) -> Result<Pattern, ExpandError> {
        let all = value.len() * 8;
        let mask = (0..value.len()).map(|at| {
            let left = bits.saturating_sub(at * 8).min(8) as u32;
            u8::MAX.checked_shl(8 - left).unwrap_or(0)
        });
        let mask: Vec<u8> = mask.collect();
        if bits > all || value.iter().zip(&mask).any(|(value, mask)| value & !mask != 0) {
            return Err(ExpandError::Prefix { bits: all });
        }
        Ok(Pattern { value: value.to_vec(), mask })
    }

    /// Returns whether these bytes match; never if their number differs.
    #[cfg(test)]
    pub(crate) fn matches(&self, bytes: &[u8]) -> bool {
        let mut masked = self.value.iter().zip(&self.mask).zip(bytes);
        self.value.len() == bytes.len() && masked.all(|((value, mask), byte)| byte & mask == *value)
    }

    /// Returns this pattern followed by `next`.
    #[must_use]
    pub fn then(mut self, next: &Pattern) -> Pattern {
        self.value.extend_from_slice(&next.value);
        self.mask.extend_from_slice(&next.mask);
        self
    }

    /// Returns the TCAM entry of a key whose fields have this pattern.
    pub fn entry(self, udlk: UdlkId, action: Action) -> TcamEntry {
        TcamEntry { udlk, value: self.value, mask: self.mask, action }
    }
}

/// Returns the pattern of an IPv4 address in a prefix: 4 bytes.
///
/// # Errors
/// `Prefix` if it is invalid ([`Prefix::is_sound`]).
pub fn prefix(prefix: Prefix) -> Result<Pattern, ExpandError> {
    Pattern::prefix(&prefix.address.octets(), prefix.length.into())
}

/// Returns the patterns of the numbers `first` to `last` in a field of `bytes` bytes (1 to 4) in
/// network order: the fewest prefixes that cover exactly these numbers, ascending.
///
/// # Errors
/// `Reversed`; `TooLarge` if `last` does not fit.
pub fn range(first: u32, last: u32, bytes: usize) -> Result<Vec<Pattern>, ExpandError> {
    if last < first {
        return Err(ExpandError::Reversed { first, last });
    }
    let bytes = bytes.clamp(1, 4);
    let bits = bytes as u32 * 8;
    if u64::from(last) >> bits != 0 {
        return Err(ExpandError::TooLarge { value: last, bytes });
    }
    let (mut next, end) = (u64::from(first), u64::from(last) + 1);
    let mut all = Vec::new();
    // Take the largest aligned block that begins here and does not extend beyond the end.
    while next < end {
        let aligned = next.trailing_zeros().min(bits);
        let block = aligned.min((end - next).ilog2());
        let value = &next.to_be_bytes()[8 - bytes..];
        all.push(Pattern::prefix(value, (bits - block) as usize)?);
        next += 1 << block;
    }
    Ok(all)
}

/// Returns all combinations of a pattern of each field, concatenated; those of the first field
/// change last. `max` is the maximum number that the caller allows.
///
/// # Errors
/// `TooMany`.
pub fn combine(fields: &[Vec<Pattern>], max: usize) -> Result<Vec<Pattern>, ExpandError> {
    let product = |needed: usize, field: &Vec<Pattern>| needed.saturating_mul(field.len());
    let needed = fields.iter().fold(1, product);
    if needed > max {
        return Err(ExpandError::TooMany { needed, max });
    }
    let empty = Vec::with_capacity(KEY_BYTES);
    let mut all = alloc::vec![Pattern { value: empty.clone(), mask: empty }];
    for field in fields {
        let longer = |begun: &Pattern| -> Vec<Pattern> {
            field.iter().map(|next| begun.clone().then(next)).collect()
        };
        all = all.iter().flat_map(longer).collect();
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_unprivileged_ports_take_six_entries() {
        let all = range(1024, 65_535, 2).unwrap();
        let shown: Vec<(&[u8], &[u8])> = all.iter().map(|of| (&*of.value, &*of.mask)).collect();
        let expected: [(&[u8], &[u8]); 6] = [
            (&[4, 0], &[0xfc, 0]),
            (&[8, 0], &[0xf8, 0]),
            (&[16, 0], &[0xf0, 0]),
            (&[32, 0], &[0xe0, 0]),
            (&[64, 0], &[0xc0, 0]),
            (&[128, 0], &[0x80, 0]),
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn all_numbers_are_one_pattern_and_the_worst_range_takes_two_for_each_bit_but_one() {
        assert_eq!(range(0, u32::MAX, 4).unwrap(), [Pattern::any(4)]);
        assert_eq!(range(0, 255, 1).unwrap(), [Pattern::any(1)]);
        assert_eq!(range(1, 65_534, 2).unwrap().len(), 30);
        assert_eq!(range(7, 7, 2).unwrap(), [Pattern::exact(&[0, 7])]);
    }

    #[test]
    fn what_is_no_range_or_prefix_is_refused() {
        assert_eq!(range(5, 4, 2), Err(ExpandError::Reversed { first: 5, last: 4 }));
        assert_eq!(range(5, 256, 1), Err(ExpandError::TooLarge { value: 256, bytes: 1 }));
        assert_eq!(Pattern::prefix(&[10, 1], 8), Err(ExpandError::Prefix { bits: 16 }));
        assert_eq!(Pattern::prefix(&[10, 1], 17), Err(ExpandError::Prefix { bits: 16 }));
        let address = core::net::Ipv4Addr::new(10, 1, 0, 0);
        let sixteen = prefix(Prefix { address, length: 16 }).unwrap();
        assert_eq!(sixteen.mask, [255, 255, 0, 0]);
        assert_eq!(
            prefix(Prefix { address, length: 15 }),
            Err(ExpandError::Prefix { bits: 32 }),
            "10.1.0.0 has a bit behind the fifteenth"
        );
    }

    #[test]
    fn fields_combine_in_the_order_of_the_key_as_far_as_there_is_room() {
        let ports = range(1, 4, 2).unwrap();
        let fields = [ports.clone(), alloc::vec![Pattern::any(1)], ports.clone()];
        let all = combine(&fields, 9).unwrap();
        assert_eq!(all.len(), ports.len() * ports.len());
        assert!(all.iter().any(|pattern| pattern.matches(&[0, 1, 9, 0, 4])));
        assert!(!all.iter().any(|pattern| pattern.matches(&[0, 1, 9, 0, 5])));
        assert_eq!(combine(&fields, 8), Err(ExpandError::TooMany { needed: 9, max: 8 }));
    }

    /// Returns the least number of prefixes that cover exactly the 8-bit numbers in `wanted`, by
    /// halving: a prefix is all of its block, or both halves are covered separately.
    fn fewest(wanted: &dyn Fn(u32) -> bool, first: u32, bits: u32) -> usize {
        let mut block = first..first + (1 << bits);
        if block.clone().all(wanted) {
            return 1;
        }
        if bits == 0 || !block.any(wanted) {
            return 0;
        }
        let half = 1 << (bits - 1);
        fewest(wanted, first, bits - 1) + fewest(wanted, first + half, bits - 1)
    }

    proptest! {
        #[test]
        fn a_range_has_its_numbers_and_no_others_in_as_few_patterns_as_there_can_be(
            one in 0_u32..256, other in 0_u32..256
        ) {
            let (first, last) = (one.min(other), one.max(other));
            let all = range(first, last, 1).unwrap();
            for number in 0..256 {
                let matching = all.iter().filter(|of| of.matches(&[number as u8])).count();
                prop_assert_eq!(matching, usize::from((first..=last).contains(&number)));
            }
            prop_assert_eq!(all.len(), fewest(&|number| (first..=last).contains(&number), 0, 8));
        }

        #[test]
        fn a_range_of_ports_matches_at_its_edges_only_within(
            one in any::<u16>(), other in any::<u16>(), probe in any::<u16>()
        ) {
            let (first, last) = (one.min(other), one.max(other));
            let all = range(first.into(), last.into(), 2).unwrap();
            prop_assert!(all.len() <= 30);
            let edges = [first, last, first.wrapping_sub(1), last.wrapping_add(1), probe];
            for port in edges {
                let matching = all.iter().filter(|of| of.matches(&port.to_be_bytes())).count();
                prop_assert_eq!(matching, usize::from((first..=last).contains(&port)));
            }
        }
    }
}
