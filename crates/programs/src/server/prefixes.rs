//! A range of servers as prefixes of addresses.

use super::address::AddressBlock;
use alloc::vec::Vec;
use axon_pipeline::Prefix;

/// The fewest prefixes that hold the addresses of the servers `first` to `first + count - 1` and no
/// others.
///
/// In plain English: from the first server on, take the largest power of two that is aligned there
/// and not longer than what is left.
pub(crate) fn prefixes(block: AddressBlock, first: u32, count: u32) -> Vec<Prefix> {
    let mut prefixes = Vec::new();
    let (mut at, mut left) = (first, count);
    while left > 0 {
        let size = (1 << at.trailing_zeros().min(31)).min(1_u32 << left.ilog2());
        let length = server_bits() - size.ilog2() as u8;
        prefixes.push(Prefix { address: block.address(at, 0), length });
        (at, left) = (at + size, left - size);
    }
    prefixes
}

/// The length of the prefix of one server: block and number, without the slot.
fn server_bits() -> u8 {
    32 - super::address::SLOT_BITS as u8
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
