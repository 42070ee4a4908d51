//! The block of link-local addresses, which no bridge forwards.

/// The first five bytes of the reserved block 01-80-C2-00-00-00 to 0F, whose addresses no
/// bridge forwards (IEEE 802.1Q table 8-1).
pub const LINK_LOCAL_PREFIX: [u8; 5] = [0x01, 0x80, 0xc2, 0x00, 0x00];
/// Number of addresses in the reserved block.
pub const LINK_LOCAL_COUNT: u8 = 0x10;
