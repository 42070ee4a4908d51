//! Packets between servers. They consist of Ethernet, an outer IPv4 header (RFC 791) without
//! options, and the fabric's own header. The IPv4 format is smoltcp's.

use alloc::vec::Vec;
use axon_wire::MacAddr;
use axon_wire::constants::ethertype;
use axon_wire::host_frame::contents;
use axon_wire::link::{ETHERNET_BYTES, FRAME_BYTES_MIN};
use core::net::Ipv4Addr;
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    EthernetAddress, EthernetFrame, EthernetProtocol, EthernetRepr, IPV4_HEADER_LEN, IpProtocol,
    Ipv4Packet, Ipv4Repr,
};

/// Fields of the outer IPv4 header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outer {
    pub(crate) source: Ipv4Addr,
    pub(crate) destination: Ipv4Addr,
    pub(crate) protocol: u8,
    pub(crate) ttl: u8,
}

/// Packet between servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packet<'a> {
    pub(crate) outer: Outer,
    /// Bytes after the outer header.
    pub(crate) rest: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Parses the packet in an untagged frame if it has this protocol, and a complete header with a
    /// valid checksum.
    pub(crate) fn parse(frame: &'a [u8], protocol: u8) -> Option<Packet<'a>> {
        let packet = ipv4_packet(frame)?;
        let header = Ipv4Packet::new_checked(packet).ok()?;
        let is_ours = header.version() == 4
            && header.next_header() == IpProtocol::from(protocol)
            && usize::from(header.header_len()) == IPV4_HEADER_LEN
            && header.verify_checksum();
        let outer = Outer {
            source: header.src_addr(),
            destination: header.dst_addr(),
            protocol,
            ttl: header.hop_limit(),
        };
        is_ours.then(|| Packet { outer, rest: &packet[IPV4_HEADER_LEN..header.total_len().into()] })
    }

    /// Returns the frame that carries the packet between two stations, padded to Ethernet's
    /// minimum.
    pub(crate) fn emit(&self, destination: MacAddr, source: MacAddr) -> Vec<u8> {
        let header_bytes = ETHERNET_BYTES + IPV4_HEADER_LEN;
        let mut frame = alloc::vec![0; header_bytes];
        let ethernet = EthernetRepr {
            src_addr: EthernetAddress(source.0),
            dst_addr: EthernetAddress(destination.0),
            ethertype: EthernetProtocol::Ipv4,
        };
        let ipv4 = Ipv4Repr {
            src_addr: self.outer.source,
            dst_addr: self.outer.destination,
            next_header: IpProtocol::from(self.outer.protocol),
            payload_len: self.rest.len(),
            hop_limit: self.outer.ttl,
        };
        ethernet.emit(&mut EthernetFrame::new_unchecked(&mut frame));
        let mut header = Ipv4Packet::new_unchecked(&mut frame[ETHERNET_BYTES..]);
        ipv4.emit(&mut header, &ChecksumCapabilities::default());
        frame.extend_from_slice(self.rest);
        if frame.len() < FRAME_BYTES_MIN {
            frame.resize(FRAME_BYTES_MIN, 0);
        }
        frame
    }
}

/// Returns the IPv4 packet in an untagged frame, including any padding.
pub(crate) fn ipv4_packet(frame: &[u8]) -> Option<&[u8]> {
    let (kind, packet) = contents(frame)?;
    let is_plain = frame.len() == ETHERNET_BYTES + packet.len();
    (kind == ethertype::IPV4 && is_plain).then_some(packet)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_parsed_as_it_was_made() {
        let outer = Outer {
            source: Ipv4Addr::new(240, 0, 0, 1),
            destination: Ipv4Addr::new(240, 0, 0, 2),
            protocol: 200,
            ttl: 3,
        };
        let packet = Packet { outer, rest: &[1, 2, 3] };
        let frame = packet.emit(MacAddr([2; 6]), MacAddr([4; 6]));
        assert_eq!(frame.len(), FRAME_BYTES_MIN);
        assert_eq!(Packet::parse(&frame, 200), Some(packet), "padding is not part of it");
        assert_eq!(Packet::parse(&frame, 201), None, "another protocol");
        let mut damaged = frame.clone();
        damaged[22] ^= 1;
        assert_eq!(Packet::parse(&damaged, 200), None, "the checksum is wrong");
        for bytes in 0..ETHERNET_BYTES + IPV4_HEADER_LEN + 3 {
            assert_eq!(Packet::parse(&frame[..bytes], 200), None, "{bytes}");
        }
    }
}
