//! Echo requests (ping) to addresses of the fabric itself, and their replies: ICMP (RFC 792). The
//! formats are smoltcp's.

use crate::MacAddr;
use crate::constants::ethertype;
use crate::host_frame::{contents, is_host_ip};
use crate::link::{ETHERNET_BYTES, FRAME_BYTES_MIN};
use alloc::vec::Vec;
use core::net::Ipv4Addr;
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    EthernetAddress, EthernetFrame, EthernetProtocol, EthernetRepr, Icmpv4Packet, Icmpv4Repr,
    IpProtocol, Ipv4Packet, Ipv4Repr,
};

/// TTL of a reply (RFC 1700).
const TTL: u8 = 64;

/// Returns the complete frame that replies to an ICMP echo request to `own`, sent from `own` (RFC
/// 1122 section 3.2.2.6). The reply to a frame with a priority tag has none.
///
/// # Errors
/// `None` for everything else: other packets and addresses, fragments, wrong checksums, and senders
/// that are not a single host.
pub fn reply(frame: &[u8], own: (MacAddr, Ipv4Addr)) -> Option<Vec<u8>> {
    let host = MacAddr::source_of(frame)?;
    let (ethertype::IPV4, packet) = contents(frame)? else {
        return None;
    };
    let ip = Ipv4Packet::new_checked(packet).ok()?;
    let whole = !ip.more_frags() && ip.frag_offset() == 0;
    let plain = ip.version() == 4 && ip.header_len() >= 20 && ip.verify_checksum();
    let ours = ip.dst_addr() == own.1 && ip.next_header() == IpProtocol::Icmp;
    if !whole || !plain || !ours || !is_host_ip(ip.src_addr()) {
        return None;
    }
    let checksums = ChecksumCapabilities::default();
    let request = Icmpv4Packet::new_checked(ip.payload()).ok()?;
    let Icmpv4Repr::EchoRequest { ident, seq_no, data } =
        Icmpv4Repr::parse(&request, &checksums).ok()?
    else {
        return None;
    };
    let reply = Icmpv4Repr::EchoReply { ident, seq_no, data };
    Some(emit(own, (host, ip.src_addr()), &reply))
}

/// Returns a complete frame with an ICMP echo request from a host to an address.
pub fn request(
    from: (MacAddr, Ipv4Addr),
    to: (MacAddr, Ipv4Addr),
    (ident, seq_no): (u16, u16),
    data: &[u8],
) -> Vec<u8> {
    emit(from, to, &Icmpv4Repr::EchoRequest { ident, seq_no, data })
}

/// Returns the frame that carries an ICMP message, padded to the Ethernet minimum.
fn emit(from: (MacAddr, Ipv4Addr), to: (MacAddr, Ipv4Addr), message: &Icmpv4Repr<'_>) -> Vec<u8> {
    let checksums = ChecksumCapabilities::default();
    let ethernet = EthernetRepr {
        src_addr: EthernetAddress(from.0.0),
        dst_addr: EthernetAddress(to.0.0),
        ethertype: EthernetProtocol::Ipv4,
    };
    let ipv4 = Ipv4Repr {
        src_addr: from.1,
        dst_addr: to.1,
        next_header: IpProtocol::Icmp,
        payload_len: message.buffer_len(),
        hop_limit: TTL,
    };
    let end = ETHERNET_BYTES + ipv4.buffer_len() + message.buffer_len();
    let mut bytes = alloc::vec![0; end.max(FRAME_BYTES_MIN)];
    ethernet.emit(&mut EthernetFrame::new_unchecked(&mut bytes[..]));
    let mut packet = Ipv4Packet::new_unchecked(&mut bytes[ETHERNET_BYTES..end]);
    ipv4.emit(&mut packet, &checksums);
    message.emit(&mut Icmpv4Packet::new_unchecked(packet.payload_mut()), &checksums);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::priority::Priority;
    use crate::vlan::VlanTag;

    const HOST: (MacAddr, Ipv4Addr) = (MacAddr([2, 0, 0, 0, 0, 1]), Ipv4Addr::new(10, 0, 0, 1));
    const OWN: (MacAddr, Ipv4Addr) = (MacAddr([2, 0, 0, 0, 0, 9]), Ipv4Addr::new(10, 0, 0, 9));

    #[test]
    fn an_answer_is_a_whole_frame_with_the_data_of_the_request() {
        let request = request(HOST, OWN, (0x1234, 7), b"ping");
        let expected = [
            &[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 9, 8, 0][..],
            &[0x45, 0, 0, 32, 0, 0, 0x40, 0, 64, 1, 0x26, 0xd4, 10, 0, 0, 9, 10, 0, 0, 1],
            &[0, 0, 0x0e, 0xf4, 0x12, 0x34, 0, 7, b'p', b'i', b'n', b'g'],
            &[0; 14],
        ];
        assert_eq!(reply(&request, OWN), Some(expected.concat()));
        let tag = VlanTag::of_priority(Priority::MAX);
        let tagged = [&request[..12], &tag.emit(), &request[12..]].concat();
        assert_eq!(reply(&tagged, OWN), Some(expected.concat()), "behind a priority tag");
        let vlan = VlanTag { vid: 5, ..tag };
        assert_eq!(reply(&[&request[..12], &vlan.emit(), &request[12..]].concat(), OWN), None);
    }

    #[test]
    fn nothing_but_a_sound_request_of_a_host_is_answered() {
        let good = request(HOST, OWN, (1, 1), b"0123456789");
        assert!(reply(&good, OWN).is_some());
        assert_eq!(reply(&good, (OWN.0, HOST.1)), None, "another address");
        assert_eq!(reply(&reply(&good, OWN).unwrap(), HOST), None, "an answer");
        for at in ETHERNET_BYTES..ETHERNET_BYTES + 38 {
            let mut bad = good.clone();
            bad[at] ^= 0x10;
            assert_eq!(reply(&bad, OWN), None, "byte {at}");
        }
        for length in 0..ETHERNET_BYTES + 38 {
            assert_eq!(reply(&good[..length], OWN), None, "{length} bytes");
        }
        let everybody = (HOST.0, Ipv4Addr::BROADCAST);
        assert_eq!(reply(&request(everybody, OWN, (1, 1), b""), OWN), None);
    }
}
