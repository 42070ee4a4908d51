//! UDP datagrams in Ethernet frames, beside the stack (RFC 768, RFC 791).
//!
//! Datagram sources and sinks bypass the IP stack, whose time has a resolution of one microsecond
//! and whose sockets cost a search per frame. The frames are bit-identical. Frames for which no
//! application here listens go to the stack.

use axon_wire::{Contents, MacAddr};
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    ETHERNET_HEADER_LEN, EthernetAddress, EthernetFrame, EthernetProtocol, EthernetRepr,
    IPV4_HEADER_LEN, IpProtocol, Ipv4Packet, Ipv4Repr, UDP_HEADER_LEN, UdpPacket, UdpRepr,
};
use std::net::Ipv4Addr;

/// Length of the Ethernet, IPv4 and UDP headers, in bytes.
pub(crate) const HEADER_BYTES: usize = ETHERNET_HEADER_LEN + IP_HEADER_BYTES;
/// Length of the IPv4 and UDP headers, in bytes.
pub(crate) const IP_HEADER_BYTES: usize = IPV4_HEADER_LEN + UDP_HEADER_LEN;
/// Initial TTL, as on ordinary hosts.
const HOP_LIMIT: u8 = 64;

/// MAC, address and port of both ends of a datagram or a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Addresses {
    pub(crate) source: (MacAddr, Ipv4Addr, u16),
    pub(crate) target: (MacAddr, Ipv4Addr, u16),
}

impl Addresses {
    /// Returns the ends without their MACs.
    pub(crate) fn ends(&self) -> Ends {
        ((self.source.1, self.source.2), (self.target.1, self.target.2))
    }
}

/// Source address and port, then destination address and port.
pub type Ends = ((Ipv4Addr, u16), (Ipv4Addr, u16));

/// Views of an IPv4 header without options and of the UDP header after it.
pub(crate) type Headers<'a> = (Ipv4Packet<&'a [u8]>, UdpPacket<&'a [u8]>);

/// Received datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Datagram<'a> {
    pub(crate) from: (Ipv4Addr, u16),
    pub(crate) target: Ipv4Addr,
    pub(crate) port: u16,
    /// Stored part of the payload.
    pub(crate) payload: &'a [u8],
    /// Length of the whole payload, in bytes.
    pub(crate) bytes: usize,
}

/// Fills `frame`, whose length is that of headers and payload. `write` fills the payload.
pub(crate) fn emit(frame: &mut [u8], ends: Addresses, write: impl FnOnce(&mut [u8])) {
    let payload_bytes = frame.len() - HEADER_BYTES;
    let ethernet = EthernetRepr {
        src_addr: EthernetAddress(ends.source.0.0),
        dst_addr: EthernetAddress(ends.target.0.0),
        ethertype: EthernetProtocol::Ipv4,
    };
    let ip = Ipv4Repr {
        src_addr: ends.source.1,
        dst_addr: ends.target.1,
        next_header: IpProtocol::Udp,
        payload_len: 8 + payload_bytes,
        hop_limit: HOP_LIMIT,
    };
    let udp = UdpRepr { src_port: ends.source.2, dst_port: ends.target.2 };
    let checksums = ChecksumCapabilities::default();
    let mut frame = EthernetFrame::new_unchecked(frame);
    ethernet.emit(&mut frame);
    let mut packet = Ipv4Packet::new_unchecked(frame.payload_mut());
    ip.emit(&mut packet, &checksums);
    let (source, target) = (ip.src_addr.into(), ip.dst_addr.into());
    let mut datagram = UdpPacket::new_unchecked(packet.payload_mut());
    udp.emit(&mut datagram, &source, &target, payload_bytes, write, &checksums);
}

/// Parses a whole datagram in a unicast IPv4 packet. The checksum is not verified, as the FCS was
/// good. Fragments and packets with options are left to the stack.
pub(crate) fn parse(frame: Contents<'_>) -> Option<Datagram<'_>> {
    let ethernet = EthernetFrame::new_checked(frame.stored).ok()?;
    if ethernet.ethertype() != EthernetProtocol::Ipv4 || !ethernet.dst_addr().is_unicast() {
        return None;
    }
    let (ip, udp) = headers(ethernet.payload())?;
    let bytes = usize::from(udp.len()).checked_sub(UDP_HEADER_LEN)?;
    if HEADER_BYTES + bytes > frame.length() {
        return None;
    }
    let payload = &frame.stored[HEADER_BYTES..];
    let payload = &payload[..bytes.min(payload.len())];
    let from = (ip.src_addr(), udp.src_port());
    Some(Datagram { from, target: ip.dst_addr(), port: udp.dst_port(), payload, bytes })
}

/// Returns the headers at the start of an IPv4 packet, if it has no options and carries a whole UDP
/// datagram. Their length fields are not checked, as the packet may be truncated.
fn headers(packet: &[u8]) -> Option<Headers<'_>> {
    let head: &[u8; IP_HEADER_BYTES] = packet.first_chunk()?;
    let (ip, udp) = head.split_at(IPV4_HEADER_LEN);
    let (ip, udp) = (Ipv4Packet::new_unchecked(ip), UdpPacket::new_unchecked(udp));
    let plain = ip.version() == 4 && usize::from(ip.header_len()) == IPV4_HEADER_LEN;
    let whole = !ip.more_frags() && ip.frag_offset() == 0;
    (plain && whole && ip.next_header() == IpProtocol::Udp).then_some((ip, udp))
}

/// Returns the ends of a whole datagram. `msdu` follows the addresses and tags of a frame: the
/// EtherType and an IPv4 packet without options.
pub(crate) fn ends(msdu: &[u8]) -> Option<Ends> {
    let (ethertype, packet) = msdu.split_first_chunk()?;
    if EthernetProtocol::from(u16::from_be_bytes(*ethertype)) != EthernetProtocol::Ipv4 {
        return None;
    }
    let (ip, udp) = headers(packet)?;
    Some(((ip.src_addr(), udp.src_port()), (ip.dst_addr(), udp.dst_port())))
}

/// Length of a payload stamp in bytes: the datagram's number and its transmission time.
pub(crate) const STAMP_BYTES: usize = 16;

/// Writes a number and a time (in ticks) to the first 16 bytes of the payload, and updates the
/// checksum by the difference of each word (RFC 1624, equation 3). Shorter payloads stay unchanged.
pub(crate) fn stamp(frame: &mut [u8], number: u64, ticks: u64) {
    const CHECKSUM: usize = 40;
    if frame.len() < HEADER_BYTES + STAMP_BYTES {
        return;
    }
    let mut stamp = [0; STAMP_BYTES];
    stamp[..8].copy_from_slice(&number.to_be_bytes());
    stamp[8..].copy_from_slice(&ticks.to_be_bytes());
    let mut sum = u64::from(!u16::from_be_bytes([frame[CHECKSUM], frame[CHECKSUM + 1]]));
    let payload = &mut frame[HEADER_BYTES..HEADER_BYTES + STAMP_BYTES];
    for (old, new) in payload.chunks_exact_mut(2).zip(stamp.chunks_exact(2)) {
        sum += u64::from(!u16::from_be_bytes([old[0], old[1]]));
        sum += u64::from(u16::from_be_bytes([new[0], new[1]]));
        old.copy_from_slice(new);
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    // Zero would mean no checksum (RFC 768).
    let checksum = match !(sum as u16) {
        0 => 0xffff,
        checksum => checksum,
    };
    frame[CHECKSUM..CHECKSUM + 2].copy_from_slice(&checksum.to_be_bytes());
}

/// Returns the number and the time of a stamped payload.
pub(crate) fn read_stamp(payload: &[u8]) -> Option<(u64, u64)> {
    let (number, rest) = payload.split_first_chunk()?;
    Some((u64::from_be_bytes(*number), u64::from_be_bytes(*rest.first_chunk()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENDS: Addresses = Addresses {
        source: (MacAddr([2, 0, 0, 0, 0, 1]), Ipv4Addr::new(10, 0, 0, 1), 4000),
        target: (MacAddr([2, 0, 0, 0, 0, 2]), Ipv4Addr::new(10, 0, 0, 2), 7),
    };

    fn frame(bytes: usize) -> Vec<u8> {
        let mut frame = vec![0xee; HEADER_BYTES + bytes];
        emit(&mut frame, ENDS, |payload| payload.fill(0x61));
        frame
    }

    #[test]
    fn a_datagram_is_read_as_it_was_written_and_its_checksums_fit() {
        for bytes in [0, 1, 18, 1472] {
            let mut frame = frame(bytes);
            // Padding is not payload.
            frame.resize(frame.len().max(60), 0);
            let datagram = parse(frame[..].into()).unwrap();
            assert_eq!(datagram.from, (ENDS.source.1, 4000));
            assert_eq!((datagram.target, datagram.port), (ENDS.target.1, 7));
            assert_eq!(datagram.payload, vec![0x61; bytes]);
            let ethernet = EthernetFrame::new_checked(&frame[..]).unwrap();
            let packet = Ipv4Packet::new_checked(ethernet.payload()).unwrap();
            assert!(packet.verify_checksum());
            let datagram = UdpPacket::new_checked(packet.payload()).unwrap();
            assert!(datagram.verify_checksum(&ENDS.source.1.into(), &ENDS.target.1.into()));
        }
    }

    #[test]
    fn a_stamp_keeps_the_checksum_true() {
        let mut frame = frame(100);
        for (number, ticks) in [(0, 0), (1, 77), (u64::MAX, u64::MAX), (0x6161, 1 << 40)] {
            stamp(&mut frame, number, ticks);
            assert_eq!(read_stamp(parse(frame[..].into()).unwrap().payload), Some((number, ticks)));
            let datagram = UdpPacket::new_checked(&frame[34..]).unwrap();
            assert!(datagram.verify_checksum(&ENDS.source.1.into(), &ENDS.target.1.into()));
        }
        assert_eq!(read_stamp(&[0; 15]), None);
    }

    #[test]
    fn what_is_cut_short_or_in_fragments_is_left_alone() {
        let whole = frame(100);
        assert!((0..whole.len()).all(|bytes| parse(whole[..bytes].into()).is_none()));
        for (at, byte) in [(0, 1), (12, 0x86), (14, 0x46), (14, 0x65), (20, 0x20), (21, 1), (23, 6)]
        {
            let mut other = whole.clone();
            other[at] = byte;
            assert_eq!(parse(other[..].into()), None, "byte {at}");
            assert_eq!(ends(&other[12..]).is_some(), at == 0, "byte {at}");
        }
        let mut short = whole;
        short[38..40].copy_from_slice(&7u16.to_be_bytes());
        assert_eq!(parse(short[..].into()), None);
    }

    #[test]
    fn the_headers_alone_name_the_ends() {
        let frame = frame(100);
        let both = ((ENDS.source.1, 4000), (ENDS.target.1, 7));
        assert_eq!(ends(&frame[12..HEADER_BYTES]), Some(both));
        assert!((12..HEADER_BYTES).all(|end| ends(&frame[12..end]).is_none()));
    }
}
