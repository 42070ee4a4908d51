//! Addresses of servers in the outer IPv4 header. An address consists of a block of 2^24, the
//! number of the server, and the slot of one of its hosts.
//!
//! The blocks are in 240.0.0.0/4, which no host uses (RFC 1112 section 4). The number of the server
//! precedes the slot, so that a range of servers is a range of addresses.

use core::net::Ipv4Addr;

/// Number of bits in a slot number.
const SLOT_BITS: u32 = 4;
/// Maximum number of hosts on a server.
pub(crate) const SLOTS: u8 = 1 << SLOT_BITS;
/// Maximum number of servers in a fabric. The last number is never used.
pub(crate) const SERVERS_MAX: u32 = 1 << (24 - SLOT_BITS);

/// Address block of a fabric's servers, given by the first byte of the addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressBlock(u8);

impl AddressBlock {
    /// Block of BCube servers.
    pub(crate) const BCUBE: AddressBlock = AddressBlock(240);
    /// Block of DCell servers.
    pub const DCELL: AddressBlock = AddressBlock(241);

    /// Returns the first byte of all addresses in the block.
    pub(crate) const fn first_byte(self) -> u8 {
        self.0
    }

    /// Returns the address of a host. `server`, below 2^20 - 1, is the number of its server, and
    /// `slot`, 0 to 15, is its slot there.
    pub fn address(self, server: u32, slot: u8) -> Ipv4Addr {
        let low = server << SLOT_BITS | u32::from(slot);
        Ipv4Addr::from_bits(u32::from(self.0) << 24 | low & 0x00ff_ffff)
    }

    /// Returns the server and slot of an address, if it is in this block.
    pub fn parse(self, address: Ipv4Addr) -> Option<(u32, u8)> {
        let bits = address.to_bits();
        let low = bits & 0x00ff_ffff;
        let own = bits >> 24 == u32::from(self.0);
        own.then_some((low >> SLOT_BITS, (low % (1 << SLOT_BITS)) as u8))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_parsed_as_it_was_made_and_that_of_another_block_is_none() {
        for (server, slot) in [(0, 0), (7, 3), (SERVERS_MAX - 2, SLOTS - 1)] {
            let address = AddressBlock::BCUBE.address(server, slot);
            assert_eq!(AddressBlock::BCUBE.parse(address), Some((server, slot)));
            assert_eq!(AddressBlock::DCELL.parse(address), None);
        }
        assert_eq!(AddressBlock::DCELL.address(5, 1), Ipv4Addr::new(241, 0, 0, 0x51));
    }
}
