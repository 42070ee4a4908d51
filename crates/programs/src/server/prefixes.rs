//! Address prefixes for a range of servers.

use super::address::{AddressBlock, SLOTS};
use alloc::vec::Vec;
use axon_pipeline::{Prefix, expand};
use core::net::Ipv4Addr;

/// Returns the smallest set of prefixes that cover exactly the addresses of the servers `first` to
/// `first + count - 1`.
pub(crate) fn prefixes(block: AddressBlock, first: u32, count: u32) -> Vec<Prefix> {
    let Some(last) = (first + count).checked_sub(1).filter(|_| count > 0) else {
        return Vec::new();
    };
    let (first, last) = (block.address(first, 0), block.address(last, SLOTS - 1));
    let patterns = expand::range(first.to_bits(), last.to_bits(), 4).unwrap_or_default();
    let number = |bytes: &[u8]| bytes.first_chunk().map_or(0, |&bytes| u32::from_be_bytes(bytes));
    let prefix = |pattern: expand::Pattern| Prefix {
        address: Ipv4Addr::from_bits(number(&pattern.value)),
        length: number(&pattern.mask).leading_ones() as u8,
    };
    patterns.into_iter().map(prefix).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn holds(prefix: &Prefix, server: u32) -> bool {
        let address = AddressBlock::DCELL.address(server, 5).to_bits();
        (address ^ prefix.address.to_bits()) >> (32 - u32::from(prefix.length)) == 0
    }

    proptest! {
        #[test]
        fn each_server_of_a_range_is_in_one_prefix_and_no_other_server_is(
            first in 0_u32..300, count in 0_u32..300
        ) {
            let prefixes = prefixes(AddressBlock::DCELL, first, count);
            for server in 0..700 {
                let found = prefixes.iter().filter(|prefix| holds(prefix, server)).count();
                let is_in = (first..first + count).contains(&server);
                prop_assert_eq!(found, usize::from(is_in), "server {}", server);
            }
            prop_assert!(prefixes.iter().all(|prefix| prefix.is_sound()));
            prop_assert!(prefixes.len() as u32 <= 2 * (count.max(1).ilog2() + 1));
        }
    }

    #[test]
    fn a_cell_that_is_no_power_of_two_is_joined_from_smaller_prefixes() {
        let lengths = |first, count| -> Vec<u8> {
            prefixes(AddressBlock::DCELL, first, count).iter().map(|one| one.length).collect()
        };
        assert_eq!(lengths(4, 4), [26], "aligned");
        assert_eq!(lengths(6, 6), [27, 26], "6 and 7, 8 to 11");
        assert_eq!(lengths(0, 0), []);
    }
}
