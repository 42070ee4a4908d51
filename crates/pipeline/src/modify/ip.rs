//! Modifications of IPv4 (RFC 791) and IPv6 (RFC 8200) headers.

use crate::frame_type::FrameType;
use axon_node::Drop;

/// Bytes of an IPv4 header without options.
pub(super) const IPV4_BYTES: usize = 20;
/// Bytes of an IPv6 header.
const IPV6_BYTES: usize = 40;
/// Byte offsets in an IPv4 header.
const TOS: usize = 1;
const TTL: usize = 8;
const CHECKSUM: usize = 10;
/// Byte offset of the hop limit in an IPv6 header.
const HOP_LIMIT: usize = 7;
/// ECN bits of the type of service (RFC 3168).
const ECN: u8 = 0b11;
/// Congestion experienced.
const CE: u8 = 0b11;

/// An IP header and the bytes behind it.
pub(super) enum Header<'a> {
    V4(&'a mut [u8]),
    V6(&'a mut [u8]),
}

impl<'a> Header<'a> {
    /// Returns the IP header at the start of `bytes`.
    pub(super) fn new(bytes: &'a mut [u8], frame_type: FrameType) -> Result<Header<'a>, Drop> {
        match frame_type {
            FrameType::Ipv4 if bytes.len() >= IPV4_BYTES => Ok(Header::V4(bytes)),
            FrameType::Ipv6 if bytes.len() >= IPV6_BYTES => Ok(Header::V6(bytes)),
            _ => Err(Drop::Malformed),
        }
    }

    pub(super) fn ttl(&self) -> u8 {
        match self {
            Header::V4(bytes) => bytes[TTL],
            Header::V6(bytes) => bytes[HOP_LIMIT],
        }
    }

    pub(super) fn set_ttl(&mut self, ttl: u8) {
        match self {
            Header::V4(bytes) => set_checked(bytes, TTL, ttl),
            Header::V6(bytes) => bytes[HOP_LIMIT] = ttl,
        }
    }

    /// Returns the type of service of IPv4 or the traffic class of IPv6: DSCP and ECN.
    pub(super) fn tos(&self) -> u8 {
        match self {
            Header::V4(bytes) => bytes[TOS],
            Header::V6(bytes) => bytes[0] << 4 | bytes[1] >> 4,
        }
    }

    fn set_tos(&mut self, tos: u8) {
        match self {
            Header::V4(bytes) => set_checked(bytes, TOS, tos),
            Header::V6(bytes) => {
                bytes[0] = bytes[0] & 0xf0 | tos >> 4;
                bytes[1] = bytes[1] & 0x0f | tos << 4;
            }
        }
    }

    /// Applies the ECN of a removed outer header (RFC 6040 section 4.2); a frame with CE outside
    /// that is not ECN-capable inside is dropped.
    pub(super) fn decapsulate_ecn(&mut self, outer_tos: u8) -> Result<(), Drop> {
        let inner = self.tos();
        if outer_tos & ECN != CE || inner & ECN == CE {
            return Ok(());
        }
        if inner & ECN == 0 {
            return Err(Drop::Malformed);
        }
        self.set_tos(inner | CE);
        Ok(())
    }
}

/// Decrements the TTL.
pub(super) fn decrement_ttl(mut header: Header<'_>) -> Result<(), Drop> {
    let ttl = header.ttl();
    if ttl <= 1 {
        return Err(Drop::TtlExpired);
    }
    header.set_ttl(ttl - 1);
    Ok(())
}

/// Sets the DSCP without changing ECN.
pub(super) fn set_dscp(mut header: Header<'_>, dscp: u8) -> Result<(), Drop> {
    let tos = dscp << 2 | header.tos() & ECN;
    header.set_tos(tos);
    Ok(())
}

/// Sets a byte of an IPv4 header and updates its checksum (RFC 1624, equation 3).
fn set_checked(header: &mut [u8], at: usize, value: u8) {
    let word = at & !1;
    let read = |header: &[u8], at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let before = read(header, word);
    header[at] = value;
    let after = read(header, word);
    let checksum = read(header, CHECKSUM);
    let sum = u32::from(!checksum) + u32::from(!before) + u32::from(after);
    header[CHECKSUM..CHECKSUM + 2].copy_from_slice(&(!folded(sum)).to_be_bytes());
}

/// Returns the checksum of an IPv4 header whose own checksum is zero (RFC 1071).
pub(super) fn checksum(header: &[u8]) -> u16 {
    let words = header
        .chunks(2)
        .map(|word| u32::from(u16::from_be_bytes([word[0], word.get(1).copied().unwrap_or(0)])));
    !folded(words.sum())
}

/// Folds the carries of a sum of 16-bit words.
fn folded(sum: u32) -> u16 {
    let once = (sum & 0xffff) + (sum >> 16);
    (once + (once >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_checksum_that_fits_goes_on_fitting(
            mut header in proptest::array::uniform20(any::<u8>()), ttl in 2_u8.., dscp in 0_u8..64
        ) {
            header[TTL] = ttl;
            header[CHECKSUM..CHECKSUM + 2].fill(0);
            let fits = checksum(&header);
            header[CHECKSUM..CHECKSUM + 2].copy_from_slice(&fits.to_be_bytes());
            decrement_ttl(Header::V4(&mut header)).unwrap();
            set_dscp(Header::V4(&mut header), dscp).unwrap();
            prop_assert_eq!((header[TTL], header[TOS] >> 2), (ttl - 1, dscp));
            prop_assert_eq!(checksum(&header), 0);
        }
    }

    #[test]
    fn the_last_hop_of_a_ttl_is_not_taken() {
        for ttl in [0, 1] {
            let mut header = [0; IPV6_BYTES];
            header[HOP_LIMIT] = ttl;
            assert_eq!(decrement_ttl(Header::V6(&mut header)), Err(Drop::TtlExpired));
            assert_eq!(header[HOP_LIMIT], ttl);
        }
    }

    #[test]
    fn the_dscp_of_ipv6_lies_across_two_bytes() {
        let mut header = [0xff; IPV6_BYTES];
        set_dscp(Header::V6(&mut header), 0b10_1010).unwrap();
        assert_eq!(header[..2], [0xfa, 0xbf]);
        assert_eq!(Header::V6(&mut header).tos(), 0b1010_1011);
    }

    #[test]
    fn congestion_in_a_tunnel_reaches_the_packet_or_drops_it() {
        let mut header = [0; IPV6_BYTES];
        assert_eq!(Header::V6(&mut header).decapsulate_ecn(CE), Err(Drop::Malformed));
        assert_eq!(Header::V6(&mut header).decapsulate_ecn(0b01), Ok(()));
        Header::V6(&mut header).set_tos(0b10);
        Header::V6(&mut header).decapsulate_ecn(CE).unwrap();
        assert_eq!(Header::V6(&mut header).tos(), CE);
    }
}
