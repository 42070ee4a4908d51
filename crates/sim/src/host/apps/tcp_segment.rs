//! Headers of a TCP segment in an Ethernet frame, as far as a host reads them beside its stack.

use axon_wire::vlan;
use smoltcp::wire::{
    EthernetProtocol, IPV4_HEADER_LEN, IpAddress, IpProtocol, Ipv4Packet, TCP_HEADER_LEN,
    TcpPacket, TcpSeqNumber,
};
use std::net::Ipv4Addr;

/// Length of the IPv4 and TCP headers without options, in bytes.
const HEADER_BYTES: usize = IPV4_HEADER_LEN + TCP_HEADER_LEN;

/// Address and port.
type End = (Ipv4Addr, u16);

/// Parsed TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) from: End,
    pub(crate) to: End,
    pub(crate) sequence: u32,
    /// Bytes of payload.
    pub(crate) bytes: u32,
    pub(crate) syn: bool,
    pub(crate) fin: bool,
    pub(crate) rst: bool,
    pub(crate) acknowledgment: Option<u32>,
    pub(crate) window: u16,
    has_options: bool,
}

/// Returns whether sequence number `a` is before `b`, modulo 2^32 (RFC 9293 clause 3.4).
pub(crate) fn is_before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

/// Returns the offset of the TCP header in an Ethernet frame, tagged or not, if it holds an IPv4
/// packet without options.
fn tcp_at(frame: &[u8]) -> Option<usize> {
    let (ethertype, at) = vlan::ethertype_of(frame)?;
    let ip = Ipv4Packet::new_unchecked(frame.get(at + 2..at + 2 + HEADER_BYTES)?);
    let is_ip = EthernetProtocol::from(ethertype) == EthernetProtocol::Ipv4 && ip.version() == 4;
    let plain = is_ip && usize::from(ip.header_len()) == IPV4_HEADER_LEN;
    (plain && ip.next_header() == IpProtocol::Tcp).then_some(at + 2 + IPV4_HEADER_LEN)
}

impl Segment {
    /// Parses the segment in an Ethernet frame. Returns `None` for anything else.
    pub(crate) fn parse(frame: &[u8]) -> Option<Segment> {
        let at = tcp_at(frame)?;
        let ip = Ipv4Packet::new_unchecked(&frame[at - IPV4_HEADER_LEN..]);
        let tcp = TcpPacket::new_unchecked(&frame[at..]);
        let header_bytes = u16::from(ip.header_len()) + u16::from(tcp.header_len());
        Some(Segment {
            from: (ip.src_addr(), tcp.src_port()),
            to: (ip.dst_addr(), tcp.dst_port()),
            sequence: tcp.seq_number().0 as u32,
            bytes: ip.total_len().saturating_sub(header_bytes).into(),
            syn: tcp.syn(),
            fin: tcp.fin(),
            rst: tcp.rst(),
            acknowledgment: tcp.ack().then_some(tcp.ack_number().0 as u32),
            window: tcp.window_len(),
            has_options: usize::from(tcp.header_len()) > TCP_HEADER_LEN,
        })
    }

    /// Returns the sequence number after the payload.
    pub(crate) fn end(&self) -> u32 {
        self.sequence.wrapping_add(self.bytes)
    }

    /// Returns the blocks of the SACK option (RFC 2018 clause 3). `frame` is the frame from which
    /// the segment was parsed.
    pub(crate) fn sacked(&self, frame: &[u8]) -> impl Iterator<Item = (u32, u32)> + use<> {
        let at = tcp_at(frame).filter(|_| self.has_options);
        let tcp = at.and_then(|at| TcpPacket::new_checked(&frame[at..]).ok());
        let blocks = tcp.and_then(|tcp| tcp.selective_ack_ranges().ok());
        blocks.into_iter().flatten().flatten()
    }
}

/// Updates the acknowledgment and window of a frame that was sent before.
pub(crate) fn refresh(frame: &mut [u8], acknowledgment: u32, window: u16) {
    let (Some(at), Some(segment)) = (tcp_at(frame), Segment::parse(frame)) else { return };
    let total = usize::from(Ipv4Packet::new_unchecked(&frame[at - IPV4_HEADER_LEN..]).total_len());
    let end = (at - IPV4_HEADER_LEN + total).min(frame.len());
    let mut tcp = TcpPacket::new_unchecked(&mut frame[at..end]);
    tcp.set_ack_number(TcpSeqNumber(acknowledgment as i32));
    tcp.set_window_len(window);
    tcp.fill_checksum(&IpAddress::Ipv4(segment.from.0), &IpAddress::Ipv4(segment.to.0));
}

/// Segments for tests.
#[cfg(test)]
pub(crate) mod sample {
    use smoltcp::phy::ChecksumCapabilities;
    use smoltcp::wire::*;
    use std::net::Ipv4Addr;

    pub(crate) const OWN: (Ipv4Addr, u16) = (Ipv4Addr::new(10, 0, 0, 1), 9);
    pub(crate) const PEER: (Ipv4Addr, u16) = (Ipv4Addr::new(10, 0, 0, 2), 80);

    /// Contents of a test segment.
    #[derive(Clone, Copy)]
    pub(crate) struct Says<'a> {
        pub(crate) sequence: u32,
        pub(crate) acknowledgment: u32,
        pub(crate) payload: &'a [u8],
        pub(crate) control: TcpControl,
        pub(crate) sacked: [Option<(u32, u32)>; 3],
    }

    impl Default for Says<'_> {
        fn default() -> Self {
            Says {
                sequence: 0,
                acknowledgment: 1,
                payload: &[],
                control: TcpControl::None,
                sacked: [None; 3],
            }
        }
    }

    /// Returns a frame with this segment, from our end or from the peer's.
    pub(crate) fn frame(from_us: bool, says: &Says<'_>) -> Vec<u8> {
        let (from, to) = if from_us { (OWN, PEER) } else { (PEER, OWN) };
        let tcp = TcpRepr {
            src_port: from.1,
            dst_port: to.1,
            control: says.control,
            seq_number: TcpSeqNumber(says.sequence as i32),
            ack_number: Some(TcpSeqNumber(says.acknowledgment as i32)),
            window_len: 1000,
            window_scale: None,
            max_seg_size: None,
            sack_permitted: false,
            sack_ranges: says.sacked,
            timestamp: None,
            payload: says.payload,
        };
        let ip = Ipv4Repr {
            src_addr: from.0,
            dst_addr: to.0,
            next_header: IpProtocol::Tcp,
            payload_len: tcp.buffer_len(),
            hop_limit: 64,
        };
        let mut frame = vec![0; 14 + ip.buffer_len() + tcp.buffer_len()];
        frame[12] = 8;
        let checksums = ChecksumCapabilities::default();
        ip.emit(&mut Ipv4Packet::new_unchecked(&mut frame[14..]), &checksums);
        let (source, target) = (from.0.into(), to.0.into());
        let tcp_bytes = &mut frame[14 + ip.buffer_len()..];
        tcp.emit(&mut TcpPacket::new_unchecked(tcp_bytes), &source, &target, &checksums);
        frame
    }
}

#[cfg(test)]
mod tests {
    use super::sample::{OWN, PEER, Says, frame};
    use super::*;

    #[test]
    fn a_segment_is_read_with_its_blocks_and_what_is_none_is_not() {
        let sacked = [Some((50, 60)), Some((70, 90)), None];
        let says =
            Says { sequence: 7, acknowledgment: 40, payload: b"abc", sacked, ..Says::default() };
        let bytes = frame(true, &says);
        let segment = Segment::parse(&bytes).unwrap();
        assert_eq!((segment.from, segment.to), (OWN, PEER));
        assert_eq!((segment.sequence, segment.bytes, segment.end()), (7, 3, 10));
        assert_eq!((segment.acknowledgment, segment.window), (Some(40), 1000));
        assert_eq!(segment.sacked(&bytes).collect::<Vec<_>>(), [(50, 60), (70, 90)]);
        for length in 0..54 {
            assert_eq!(Segment::parse(&bytes[..length]), None, "{length}");
        }
        let mut other = bytes.clone();
        other[23] = 17;
        assert_eq!(Segment::parse(&other), None, "UDP");
        assert!(is_before(u32::MAX, 3) && !is_before(3, 3) && !is_before(3, u32::MAX));
    }

    #[test]
    fn a_refreshed_segment_says_what_is_new_and_its_checksum_fits() {
        let mut bytes = frame(true, &Says { payload: &[5; 30], ..Says::default() });
        // Padding after the packet is not part of it.
        bytes.resize(bytes.len() + 7, 0xee);
        refresh(&mut bytes, 0xffff_fff0, 77);
        let segment = Segment::parse(&bytes).unwrap();
        assert_eq!((segment.acknowledgment, segment.window), (Some(0xffff_fff0), 77));
        let tcp = TcpPacket::new_checked(&bytes[34..bytes.len() - 7]).unwrap();
        assert!(tcp.verify_checksum(&OWN.0.into(), &PEER.0.into()));
    }
}
