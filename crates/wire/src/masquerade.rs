//! Masqueraded MAC addresses: addresses that an edge gives to hosts in place of a destination's own
//! (thesis 000 §3.2.1).
//!
//! ```text
//! octet   0      1  2  3      4  5
//!       +----+--------------+--------+
//!       | a2 |  generation  | index  |
//!       +----+--------------+--------+
//! ```
//!
//! The first octet makes the address a locally administered unicast one. The index is an entry in
//! the route memory of one host port. The generation changes whenever an entry is given to another
//! destination, so an outdated address is not forwarded.

use crate::MacAddr;

/// The first octet: unicast, locally administered.
pub(crate) const PREFIX: u8 = 0xa2;

/// Number of generations. Generation 0 follows the last one.
pub const GENERATIONS: u32 = 1 << 24;

/// Maximum number of entries in a route memory.
pub const INDEXES: usize = 1 << 16;

/// Returns the address for an entry and the low 24 bits of its generation.
pub const fn address(index: u16, generation: u32) -> MacAddr {
    let [_, a, b, c] = generation.to_be_bytes();
    let [high, low] = index.to_be_bytes();
    MacAddr([PREFIX, a, b, c, high, low])
}

/// Returns the index if `mac` has the form of a masqueraded address, otherwise `None`. A host's own
/// address may have this form too, and only a route memory can distinguish the two.
#[inline]
pub const fn index_of(mac: MacAddr) -> Option<u16> {
    let [PREFIX, _, _, _, high, low] = mac.0 else { return None };
    Some(u16::from_be_bytes([high, low]))
}

/// Returns index and generation if `mac` has the form of a masqueraded address, otherwise `None`.
pub const fn parts_of(mac: MacAddr) -> Option<(u16, u32)> {
    let [PREFIX, a, b, c, high, low] = mac.0 else { return None };
    Some((u16::from_be_bytes([high, low]), u32::from_be_bytes([0, a, b, c])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_unicast_and_local_and_gives_its_index_back() {
        for (index, generation) in [(0, 0), (1, 7), (0xabcd, 0x12_3456), (u16::MAX, u32::MAX)] {
            let mac = address(index, generation);
            assert_eq!(index_of(mac), Some(index));
            assert_eq!(parts_of(mac), Some((index, generation % GENERATIONS)));
            assert!(mac.is_unicast() && mac.0[0] & 2 == 2, "{mac}");
        }
        assert_eq!(address(0x0102, 0x0003_0405).0, [0xa2, 3, 4, 5, 1, 2]);
        assert_eq!(address(9, GENERATIONS), address(9, 0), "they count on");
    }

    #[test]
    fn other_addresses_have_no_index() {
        for first in [0x00, 0x02, 0xa0, 0xa3, 0xff] {
            assert_eq!(index_of(MacAddr([first, 0, 0, 0, 0, 1])), None);
            assert_eq!(parts_of(MacAddr([first, 0, 0, 0, 0, 1])), None);
        }
    }
}
