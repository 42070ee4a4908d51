//! TCP segments in Ethernet frames (RFC 9293, RFC 791): the headers and the content of the payload
//! are stored, and the bytes after them described, as they repeat one.

use crate::datagram::Addresses;
use crate::nic::Nic;
use axon_tcp::{FILL, Mark, Segment};
use axon_wire::{Contents, Filling, LIGHT_BYTES, MacAddr};
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    ETHERNET_HEADER_LEN, EthernetAddress, EthernetFrame, EthernetProtocol, EthernetRepr,
    IPV4_HEADER_LEN, IpProtocol, Ipv4Packet, Ipv4Repr,
};
use std::net::Ipv4Addr;

/// Length of the Ethernet and IPv4 headers, in bytes.
const AROUND: usize = ETHERNET_HEADER_LEN + IPV4_HEADER_LEN;
/// Initial TTL, as on ordinary hosts.
const HOP_LIMIT: u8 = 64;
/// Values of the ECN field that are used: ECT(0) and CE (RFC 3168 §5).
const CAPABLE: u8 = 0b10;
const EXPERIENCED: u8 = 0b11;

/// Received segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrived<'a> {
    pub(super) mac: MacAddr,
    pub(super) from: (Ipv4Addr, u16),
    pub(super) to: Ipv4Addr,
    pub(super) to_port: u16,
    pub(super) segment: Segment,
    pub(super) payload: Contents<'a>,
}

/// Writes the headers of a segment, and as much of its payload as fits `stored`: `content`, which
/// has to fit, and [`FILL`] after it.
fn emit(segment: &Segment, addresses: Addresses, content: &[u8], stored: &mut [u8]) {
    let header = axon_tcp::header_bytes(segment);
    let payload_bytes = segment.bytes as usize;
    let ethernet = EthernetRepr {
        src_addr: EthernetAddress(addresses.source.0.0),
        dst_addr: EthernetAddress(addresses.target.0.0),
        ethertype: EthernetProtocol::Ipv4,
    };
    let ip = Ipv4Repr {
        src_addr: addresses.source.1,
        dst_addr: addresses.target.1,
        next_header: IpProtocol::Tcp,
        payload_len: header + payload_bytes,
        hop_limit: HOP_LIMIT,
    };
    ethernet.emit(&mut EthernetFrame::new_unchecked(&mut *stored));
    let (around, rest) = stored.split_at_mut(AROUND);
    let mut packet = Ipv4Packet::new_unchecked(&mut around[ETHERNET_HEADER_LEN..]);
    ip.emit(&mut packet, &ChecksumCapabilities::ignored());
    packet.set_ecn(match segment.mark {
        Mark::None => 0,
        Mark::Capable => CAPABLE,
        Mark::Experienced => EXPERIENCED,
    });
    packet.fill_checksum();
    let here = payload_bytes.min(rest.len() - header);
    let (said, fill) = rest[header..header + here].split_at_mut(content.len());
    said.copy_from_slice(content);
    fill.fill(FILL);
    axon_tcp::emit(segment, addresses.ends(), FILL, rest);
}

/// Queues a segment at the NIC. Its payload is `content`, and [`FILL`] after it.
pub(super) fn send(nic: &mut Nic, segment: &Segment, addresses: Addresses, content: &[u8]) {
    let header = AROUND + axon_tcp::header_bytes(segment);
    let length = header + segment.bytes as usize;
    let stored = length.min((header + content.len()).max(LIGHT_BYTES));
    let filling = Filling { byte: FILL, count: u16::try_from(length - stored).unwrap_or(0) };
    nic.build_light(stored, filling, |stored| emit(segment, addresses, content, stored));
}

/// Parses a whole segment in a unicast IPv4 packet without options. The checksum is not verified,
/// as the FCS was good.
pub(super) fn parse(contents: Contents<'_>) -> Option<Arrived<'_>> {
    let ethernet = EthernetFrame::new_checked(contents.stored).ok()?;
    if ethernet.ethertype() != EthernetProtocol::Ipv4 || !ethernet.dst_addr().is_unicast() {
        return None;
    }
    let mac = MacAddr(ethernet.src_addr().0);
    let (ip, rest) = ethernet.payload().split_at_checked(IPV4_HEADER_LEN)?;
    let ip = Ipv4Packet::new_unchecked(ip);
    let plain = ip.version() == 4 && usize::from(ip.header_len()) == IPV4_HEADER_LEN;
    let whole = !ip.more_frags() && ip.frag_offset() == 0;
    let total = usize::from(ip.total_len());
    let fits = total >= IPV4_HEADER_LEN && ETHERNET_HEADER_LEN + total <= contents.length();
    if !plain || !whole || !fits || ip.next_header() != IpProtocol::Tcp {
        return None;
    }
    let bytes = total - IPV4_HEADER_LEN;
    let ((from, to), mut segment) = axon_tcp::parse(rest, bytes)?;
    segment.mark = match ip.ecn() {
        EXPERIENCED => Mark::Experienced,
        0 => Mark::None,
        _ => Mark::Capable,
    };
    let stored = rest.get(bytes - segment.bytes as usize..).unwrap_or(&[]);
    let payload = Contents { stored, ..contents };
    let (from, to_ip) = ((ip.src_addr(), from), ip.dst_addr());
    Some(Arrived { mac, from, to: to_ip, to_port: to, segment, payload })
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_tcp::{Flags, Options, Sacks, Seq};
    use axon_wire::Time;
    use smoltcp::wire::TcpPacket;

    const ADDRESSES: Addresses = Addresses {
        source: (MacAddr([2, 0, 0, 0, 0, 1]), Ipv4Addr::new(10, 0, 0, 1), 49152),
        target: (MacAddr([2, 0, 0, 0, 0, 2]), Ipv4Addr::new(10, 0, 0, 2), 7),
    };

    /// Returns the payload of a frame.
    fn payload(arrived: &Arrived<'_>) -> Vec<u8> {
        arrived.payload.whole()[..arrived.segment.bytes as usize].to_vec()
    }

    fn segment(bytes: u32) -> Segment {
        let mut sacks = Sacks::default();
        (0..3).for_each(|n| sacks.push((Seq(n * 10), Seq(n * 10 + 5))));
        Segment {
            seq: Seq(77),
            ack: Seq(u32::MAX),
            flags: Flags::ACK | Flags::PSH,
            window: 1000,
            options: Options {
                sacks: if bytes == 0 { sacks } else { Sacks::default() },
                ..Options::default()
            },
            bytes,
            mark: Mark::Capable,
        }
    }

    #[test]
    fn segments_are_read_as_they_were_written_and_checksums_fit_the_whole_frame() {
        let sizes = [0, 1, 6, 7, 10, 11, 12, 1460, 8960];
        let all = sizes.into_iter().flat_map(|bytes| [0, 1, 5, 40, 1459].map(|said| (bytes, said)));
        for (bytes, said) in all.filter(|(bytes, said)| said <= bytes) {
            let content: Vec<u8> = (0..said).map(|place| place as u8).collect();
            let mut sent = content.clone();
            sent.resize(bytes as usize, FILL);
            let mut nic = Nic::new(1500, None);
            nic.link(Time::ZERO, true);
            send(&mut nic, &segment(bytes), ADDRESSES, &content);
            let mut frame = nic.next(Time::ZERO).unwrap();
            assert_eq!(frame.is_light(), bytes > said.max(10), "{bytes}, {said}");
            let light = parse(frame.contents()).unwrap();
            assert_eq!((light.segment, payload(&light)), (segment(bytes), sent.clone()));
            frame.make_whole();
            let whole = parse(frame.contents()).unwrap();
            assert_eq!((whole.segment, payload(&whole)), (segment(bytes), sent.clone()));
            let ends = (whole.from, (whole.to, whole.to_port));
            assert_eq!(ends, ADDRESSES.ends());
            let ethernet = EthernetFrame::new_checked(frame.bytes()).unwrap();
            let packet = Ipv4Packet::new_checked(ethernet.payload()).unwrap();
            assert!(packet.verify_checksum());
            let tcp = TcpPacket::new_checked(packet.payload()).unwrap();
            assert!(tcp.verify_checksum(&packet.src_addr().into(), &packet.dst_addr().into()));
            assert_eq!(tcp.payload(), sent);
        }
    }

    #[test]
    fn marks_are_read_and_altered_payload_is_seen() {
        let mut nic = Nic::new(1500, None);
        nic.link(Time::ZERO, true);
        send(&mut nic, &segment(100), ADDRESSES, &[]);
        let mut frame = nic.next(Time::ZERO).unwrap();
        frame.make_whole();
        frame.bytes_mut()[15] |= EXPERIENCED;
        frame.bytes_mut()[100] ^= 1;
        let arrived = parse(frame.contents()).unwrap();
        let wrong = payload(&arrived).iter().filter(|&&byte| byte != FILL).count();
        assert_eq!((arrived.segment.mark, wrong), (Mark::Experienced, 1));
        assert!((0..frame.bytes().len()).all(|cut| parse(frame.bytes()[..cut].into()).is_none()));
    }
}
