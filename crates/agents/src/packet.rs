//! Parses and writes headers for agents: Ethernet, IPv4 (RFC 791), UDP (RFC 768) and TCP (RFC
//! 9293).
//!
//! An agent may have only the first bytes of a packet, so no function needs bytes beyond the
//! headers.

use alloc::vec::Vec;
use axon_wire::MacAddr;
use axon_wire::link::{ETHERNET_BYTES, FRAME_BYTES_MIN};
use core::net::Ipv4Addr;

/// EtherType of IPv4.
pub const ETHERTYPE_IPV4: u16 = 0x0800;
/// EtherType of a VLAN tag (IEEE 802.1Q clause 9.6).
const ETHERTYPE_VLAN: u16 = 0x8100;
/// Length of a VLAN tag, in bytes.
const VLAN_BYTES: usize = 4;
/// Length of an IPv4 header without options, in bytes.
pub(crate) const IPV4_BYTES: usize = 20;
/// Length of a UDP header, in bytes.
pub(crate) const UDP_BYTES: usize = 8;
/// IP protocol number of TCP.
pub const TCP: u8 = 6;
/// IP protocol number of UDP.
pub const UDP: u8 = 17;
/// TTL of packets that agents make (RFC 1700).
pub(crate) const TTL: u8 = 64;

/// Returns the two bytes at `at`, if present.
pub(crate) fn word(bytes: &[u8], at: usize) -> Option<u16> {
    let two = bytes.get(at..at.checked_add(2)?)?;
    Some(u16::from_be_bytes([two[0], two[1]]))
}

/// Returns the offset of the network header, which is after a VLAN tag if there is one, and its
/// EtherType.
pub(crate) fn network(frame: &[u8]) -> Option<(usize, u16)> {
    match word(frame, ETHERNET_BYTES - 2)? {
        ETHERTYPE_VLAN => {
            let at = ETHERNET_BYTES + VLAN_BYTES;
            Some((at, word(frame, at - 2)?))
        }
        ethertype => Some((ETHERNET_BYTES, ethertype)),
    }
}

/// Returns the address at `at`, if present.
pub(crate) fn address(bytes: &[u8], at: usize) -> Option<Ipv4Addr> {
    let four: [u8; 4] = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
    Some(Ipv4Addr::from(four))
}

/// Fields of an IPv4 packet with a complete and valid header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv4 {
    /// Offset of the IPv4 header in the frame, in bytes.
    pub at: usize,
    /// Offset of the payload in the frame, in bytes.
    pub payload_at: usize,
    /// Offset of the end of the packet, in bytes. Padding may follow, and the head may end before.
    pub end: usize,
    /// Protocol number of the payload.
    pub protocol: u8,
    /// Time to live.
    pub ttl: u8,
    /// True if the packet is a fragment other than the first, and therefore has no TCP or UDP
    /// header.
    pub is_later_fragment: bool,
    /// True if the packet is a fragment, including the first.
    pub is_fragment: bool,
    /// Source address.
    pub source: Ipv4Addr,
    /// Destination address.
    pub destination: Ipv4Addr,
}

impl Ipv4 {
    /// Parses the head of a frame. Returns `None` if it is not IPv4, or if its header is truncated,
    /// has wrong lengths, or fails its checksum.
    pub fn parse(frame: &[u8]) -> Option<Ipv4> {
        let (at, ethertype) = network(frame)?;
        let first = *frame.get(at)?;
        let header_bytes = usize::from(first & 0xf) * 4;
        if ethertype != ETHERTYPE_IPV4 || first >> 4 != 4 || header_bytes < IPV4_BYTES {
            return None;
        }
        let payload_at = at + header_bytes;
        let total = usize::from(word(frame, at + 2)?);
        if total < header_bytes || sum(frame.get(at..payload_at)?) != u16::MAX {
            return None;
        }
        let fragment = word(frame, at + 6)?;
        Some(Ipv4 {
            at,
            payload_at,
            end: at + total,
            protocol: frame[at + 9],
            ttl: frame[at + 8],
            is_later_fragment: fragment & 0x1fff != 0,
            is_fragment: fragment & 0x3fff != 0,
            source: address(frame, at + 12)?,
            destination: address(frame, at + 16)?,
        })
    }

    /// Returns the source and destination ports of TCP or UDP, if the head contains them.
    pub fn ports(&self, frame: &[u8]) -> Option<(u16, u16)> {
        let known = matches!(self.protocol, TCP | UDP) && !self.is_later_fragment;
        known.then_some(())?;
        Some((word(frame, self.payload_at)?, word(frame, self.payload_at + 2)?))
    }

    /// Returns the offset of the TCP or UDP checksum in the frame.
    pub(crate) fn checksum_at(&self) -> Option<usize> {
        match self.protocol {
            _ if self.is_later_fragment => None,
            TCP => Some(self.payload_at + 16),
            UDP => Some(self.payload_at + 6),
            _ => None,
        }
    }
}

/// Returns the ones' complement sum of `bytes` (RFC 1071), padded with a zero byte to an even
/// length.
pub fn sum(bytes: &[u8]) -> u16 {
    let words = bytes
        .chunks(2)
        .map(|two| u32::from(two[0]) << 8 | two.get(1).copied().map_or(0, u32::from));
    // The sum of 64 KiB of words does not overflow 32 bits.
    fold(words.sum())
}

/// Folds the carries of a sum.
fn fold(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Returns the new value of `checksum` after bytes that it covers were rewritten from `old` to
/// `new`. Both have the same even length and an even offset (RFC 1624, equation 3).
pub(crate) fn updated(checksum: u16, old: &[u8], new: &[u8]) -> u16 {
    !fold(u32::from(!checksum) + u32::from(!sum(old)) + u32::from(sum(new)))
}

/// Addresses and ports of both ends of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// Layer 2 source and destination.
    pub macs: (MacAddr, MacAddr),
    /// IPv4 source and destination.
    pub addresses: (Ipv4Addr, Ipv4Addr),
    /// Source and destination port.
    pub ports: (u16, u16),
}

impl Ends {
    /// Returns the ends of a datagram or segment, if the head contains them.
    pub fn of(frame: &[u8], ip: &Ipv4) -> Option<Ends> {
        Some(Ends {
            macs: (MacAddr::source_of(frame)?, MacAddr::destination_of(frame)?),
            addresses: (ip.source, ip.destination),
            ports: ip.ports(frame)?,
        })
    }

    /// Returns the ends of an answer, with source and destination exchanged.
    #[must_use]
    pub fn reversed(self) -> Ends {
        let Ends { macs, addresses, ports } = self;
        Ends {
            macs: (macs.1, macs.0),
            addresses: (addresses.1, addresses.0),
            ports: (ports.1, ports.0),
        }
    }
}

/// Builds the frame of an IPv4 packet without options and with TTL 64. Its payload is the
/// concatenation of `parts`, which have at most 65,515 bytes together.
pub fn ipv4(ends: &Ends, protocol: u8, parts: &[&[u8]]) -> Vec<u8> {
    let payload: usize = parts.iter().map(|part| part.len()).sum();
    let total = IPV4_BYTES + payload;
    let mut frame = Vec::with_capacity((ETHERNET_BYTES + total).max(FRAME_BYTES_MIN));
    frame.extend_from_slice(&ends.macs.1.0);
    frame.extend_from_slice(&ends.macs.0.0);
    frame.extend_from_slice(&ETHERTYPE_IPV4.to_be_bytes());
    frame.extend_from_slice(&[0x45, 0]);
    frame.extend_from_slice(&(total as u16).to_be_bytes());
    // The identification is zero, because the packet is never fragmented (RFC 6864 clause 4.1).
    frame.extend_from_slice(&[0, 0, 0x40, 0, TTL, protocol, 0, 0]);
    frame.extend_from_slice(&ends.addresses.0.octets());
    frame.extend_from_slice(&ends.addresses.1.octets());
    let checksum = !sum(&frame[ETHERNET_BYTES..]);
    frame[ETHERNET_BYTES + 10..ETHERNET_BYTES + 12].copy_from_slice(&checksum.to_be_bytes());
    parts.iter().for_each(|part| frame.extend_from_slice(part));
    frame.resize(frame.len().max(FRAME_BYTES_MIN), 0);
    frame
}

/// Builds the frame of a UDP datagram whose payload is the concatenation of `parts`.
pub fn udp(ends: &Ends, parts: &[&[u8]]) -> Vec<u8> {
    let bytes = UDP_BYTES + parts.iter().map(|part| part.len()).sum::<usize>();
    let mut header = [0; UDP_BYTES];
    header[..2].copy_from_slice(&ends.ports.0.to_be_bytes());
    header[2..4].copy_from_slice(&ends.ports.1.to_be_bytes());
    header[4..6].copy_from_slice(&(bytes as u16).to_be_bytes());
    let mut all: Vec<&[u8]> = Vec::with_capacity(parts.len() + 1);
    all.push(&header);
    all.extend_from_slice(parts);
    let mut frame = ipv4(ends, UDP, &all);
    let at = ETHERNET_BYTES + IPV4_BYTES;
    let checksum = !pseudo(&frame[at..at + bytes], ends.addresses, UDP);
    // A checksum of zero means that there is none (RFC 768).
    let checksum = if checksum == 0 { u16::MAX } else { checksum };
    frame[at + 6..at + 8].copy_from_slice(&checksum.to_be_bytes());
    frame
}

/// Returns the sum over a TCP or UDP segment and its pseudo-header. It is 0xffff if the checksum of
/// the segment is valid.
pub fn pseudo(segment: &[u8], addresses: (Ipv4Addr, Ipv4Addr), protocol: u8) -> u16 {
    let addresses = [addresses.0, addresses.1].map(|address| u32::from(sum(&address.octets())));
    let rest = u32::from(protocol) + segment.len() as u32 + u32::from(sum(segment));
    fold(addresses[0] + addresses[1] + rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_node::random::Random;

    fn ends() -> Ends {
        Ends {
            macs: (MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2])),
            addresses: (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)),
            ports: (4000, 53),
        }
    }

    #[test]
    fn a_datagram_that_is_written_is_read_back_and_its_checksums_hold() {
        for length in [0, 1, 17, 18, 19, 1472] {
            let payload: Vec<u8> = (0..length).map(|byte| byte as u8).collect();
            let (first, second) = payload.split_at(length / 3 * 2);
            let frame = udp(&ends(), &[first, second]);
            assert_eq!(frame.len(), (42 + length).max(60));
            let ip = Ipv4::parse(&frame).unwrap();
            assert_eq!(Ends::of(&frame, &ip), Some(ends()));
            assert_eq!((ip.payload_at, ip.end, ip.is_fragment), (34, 42 + length, false));
            let segment = &frame[34..ip.end];
            assert_eq!(pseudo(segment, (ip.source, ip.destination), UDP), u16::MAX);
            assert_eq!(frame[42..ip.end], payload);
        }
        assert_eq!(ends().reversed().reversed(), ends());
    }

    #[test]
    fn a_tag_is_passed_over_and_what_is_damaged_is_no_packet() {
        let frame = udp(&ends(), &[b"x"]);
        let mut tagged = frame[..12].to_vec();
        tagged.extend_from_slice(&[0x81, 0, 0x60, 1]);
        tagged.extend_from_slice(&frame[12..]);
        assert_eq!(Ipv4::parse(&tagged).unwrap().at, 18);
        for at in 14..34 {
            let mut damaged = frame.clone();
            damaged[at] ^= 0x40;
            assert_eq!(Ipv4::parse(&damaged), None, "byte {at}");
        }
        for cut in 0..34 {
            assert_eq!(Ipv4::parse(&frame[..cut]), None, "{cut} bytes");
        }
        let cut = Ipv4::parse(&frame[..36]).unwrap();
        assert_eq!(cut.ports(&frame[..36]), None, "the ports are behind the head");
    }

    #[test]
    fn a_checksum_is_updated_to_what_a_new_one_would_be() {
        let mut random = Random::new(3);
        for _ in 0..10_000 {
            let mut bytes: Vec<u8> = (0..24).map(|_| random.next_u32() as u8).collect();
            // All ones and all zeros exercise the two zeros of ones' complement arithmetic.
            match random.next_u32() % 4 {
                0 => bytes[4..8].fill(0xff),
                1 => bytes[4..8].fill(0),
                _ => {}
            }
            let before = !sum(&bytes);
            let old = bytes[4..8].to_vec();
            let new: Vec<u8> = (0..4).map(|_| random.next_u32() as u8).collect();
            bytes[4..8].copy_from_slice(&new);
            let (updated, fresh) = (updated(before, &old, &new), !sum(&bytes));
            assert_eq!(updated, fresh, "{bytes:?}");
        }
    }
}
