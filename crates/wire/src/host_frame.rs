//! Host frames that the edge reads, and its frames to hosts: ARP (RFC 826), the headers of DHCP
//! (RFC 2131), and the IPv6 part in [`crate::nd`]. The formats are smoltcp's.
//!
//! A host may send any frame with a priority tag (IEEE 802.1Q clause 6.9). Such a frame is read
//! like an untagged one. Frames in a VLAN are not handled here.

use crate::MacAddr;
use crate::constants::length::ETHERNET_ADDRESSES;
use crate::constants::{dhcpv6_port, ethertype};
use crate::link::{ETHERNET_BYTES, FRAME_BYTES_MIN};
use crate::nd::{self, Nd};
use crate::vlan::{TAG_BYTES, VlanTag};
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr};
pub use smoltcp::wire::ArpOperation;
use smoltcp::wire::{
    ArpPacket, ArpRepr, DHCP_CLIENT_PORT, DHCP_SERVER_PORT, DhcpMessageType, DhcpPacket, DhcpRepr,
    EthernetAddress, EthernetFrame, EthernetProtocol, EthernetRepr, IpProtocol, Ipv4Packet,
    Ipv6Packet, UdpPacket,
};

/// Fields of an ARP packet for IPv4 over Ethernet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arp {
    /// Request or reply.
    pub operation: ArpOperation,
    /// The MAC of the sender (RFC 826, `ar$sha`).
    pub sender_mac: MacAddr,
    /// The address of the sender (`ar$spa`); unspecified in a probe (RFC 5227).
    pub sender_ip: Ipv4Addr,
    /// The MAC of the target (`ar$tha`); zero in a request.
    pub target_mac: MacAddr,
    /// The address of the target (`ar$tpa`).
    pub target_ip: Ipv4Addr,
}

/// Class of a host's frame at the edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// ARP, for IPv4 over Ethernet.
    Arp(Arp),
    /// EtherType ARP with any other content.
    BadArp,
    /// Neighbour discovery of IPv6.
    Nd(Nd),
    /// A malformed neighbour solicitation or advertisement.
    BadNd,
    /// A DHCP client's message to a server.
    DhcpClient,
    /// Anything else.
    Other,
}

/// Classifies `frame`. A frame shorter than an Ethernet header is `Other`.
pub fn classify(frame: &[u8]) -> Kind {
    match contents(frame) {
        Some((ethertype::ARP, packet)) => parse_arp(packet).map_or(Kind::BadArp, Kind::Arp),
        Some((ethertype::IPV4, packet)) if udp_to(packet, DHCP_SERVER_PORT).is_some() => {
            Kind::DhcpClient
        }
        Some((ethertype::IPV6, packet)) => match nd::parse(packet) {
            Some(read) => read.map_or(Kind::BadNd, Kind::Nd),
            None => Kind::Other,
        },
        _ => Kind::Other,
    }
}

/// Returns the EtherType of an Ethernet frame and the bytes that follow it, behind a priority tag
/// if there is one. Returns `None` if the frame is too short.
pub fn contents(frame: &[u8]) -> Option<(u16, &[u8])> {
    let tag_bytes = match VlanTag::of_frame(frame) {
        Some(tag) if tag.vid == 0 => TAG_BYTES,
        _ => 0,
    };
    let (ethertype, packet) = frame.get(ETHERNET_ADDRESSES + tag_bytes..)?.split_first_chunk()?;
    Some((u16::from_be_bytes(*ethertype), packet))
}

fn parse_arp(payload: &[u8]) -> Option<Arp> {
    let packet = ArpPacket::new_checked(payload).ok()?;
    let ArpRepr::EthernetIpv4 {
        operation,
        source_hardware_addr,
        source_protocol_addr,
        target_hardware_addr,
        target_protocol_addr,
    } = ArpRepr::parse(&packet).ok()?
    else {
        return None;
    };
    Some(Arp {
        operation,
        sender_mac: MacAddr(source_hardware_addr.0),
        sender_ip: source_protocol_addr,
        target_mac: MacAddr(target_hardware_addr.0),
        target_ip: target_protocol_addr,
    })
}

/// Returns the payload of a whole (not fragmented) UDP datagram to `port` in an IPv4 packet.
fn udp_to(payload: &[u8], port: u16) -> Option<&[u8]> {
    let packet = Ipv4Packet::new_checked(payload).ok()?;
    let whole = packet.version() == 4 && packet.frag_offset() == 0 && !packet.more_frags();
    if !whole || packet.next_header() != IpProtocol::Udp {
        return None;
    }
    let datagram = UdpPacket::new_checked(packet.payload()).ok()?;
    (datagram.dst_port() == port).then(|| datagram.payload())
}

/// Returns whether a frame is from a DHCP server to a client, IPv4 or IPv6 (RFC 8415 clause 7.2).
/// If the datagram is fragmented, only its first fragment is recognised.
pub fn is_to_dhcp_client(frame: &[u8]) -> bool {
    let to = |datagram: &[u8], port: u16| {
        let is_to = UdpPacket::new_checked(datagram).map(|udp| udp.dst_port() == port);
        is_to.unwrap_or(false)
    };
    match contents(frame) {
        Some((ethertype::IPV4, packet)) => Ipv4Packet::new_checked(packet).is_ok_and(|ip| {
            let is_udp = ip.next_header() == IpProtocol::Udp && ip.frag_offset() == 0;
            is_udp && to(ip.payload(), DHCP_CLIENT_PORT)
        }),
        _ => is_to_dhcpv6_client(frame),
    }
}

/// Returns whether a frame is from a DHCPv6 server to a client.
pub fn is_to_dhcpv6_client(frame: &[u8]) -> bool {
    let Some((ethertype::IPV6, packet)) = contents(frame) else { return false };
    Ipv6Packet::new_checked(packet).is_ok_and(|ip| {
        let udp = UdpPacket::new_checked(ip.payload());
        ip.next_header() == IpProtocol::Udp
            && udp.is_ok_and(|udp| udp.dst_port() == dhcpv6_port::CLIENT)
    })
}

/// Returns whether a frame is from a DHCP server to a client: UDP from port 67 to port 68.
pub fn is_dhcp_server(frame: &[u8]) -> bool {
    let Some((ethertype::IPV4, packet)) = contents(frame) else { return false };
    let datagram = Ipv4Packet::new_checked(packet).ok().map(|packet| {
        let whole = packet.version() == 4 && packet.frag_offset() == 0;
        let ports = packet.payload().first_chunk().filter(|_| whole);
        ports.filter(|_| packet.next_header() == IpProtocol::Udp).copied()
    });
    let [from, to] = [DHCP_SERVER_PORT, DHCP_CLIENT_PORT].map(u16::to_be_bytes);
    datagram.flatten() == Some([from[0], from[1], to[0], to[1]])
}

/// Returns the destination IP address of a frame, or `None` if it is not a complete IP packet.
pub fn destination_ip(frame: &[u8]) -> Option<IpAddr> {
    match contents(frame)? {
        (ethertype::IPV4, packet) => {
            let packet = Ipv4Packet::new_checked(packet).ok()?;
            Some(packet.dst_addr().into()).filter(|_| packet.version() == 4)
        }
        (ethertype::IPV6, packet) => {
            let packet = Ipv6Packet::new_checked(packet).ok()?;
            Some(packet.dst_addr().into()).filter(|_| packet.version() == 6)
        }
        _ => None,
    }
}

/// Returns the client and the address that a DHCP server's acknowledgement assigns to it.
pub fn dhcp_ack(frame: &[u8]) -> Option<(MacAddr, Ipv4Addr)> {
    let ethernet = EthernetFrame::new_checked(frame).ok()?;
    if ethernet.ethertype() != EthernetProtocol::Ipv4 {
        return None;
    }
    let dhcp = DhcpPacket::new_checked(udp_to(ethernet.payload(), DHCP_CLIENT_PORT)?).ok()?;
    let dhcp = DhcpRepr::parse(&dhcp).ok()?;
    (dhcp.message_type == DhcpMessageType::Ack)
        .then_some((MacAddr(dhcp.client_hardware_address.0), dhcp.your_ip))
}

/// Returns an ARP request for `target_ip`, sent to `to` only.
pub fn request(
    sender_mac: MacAddr,
    sender_ip: Ipv4Addr,
    to: MacAddr,
    target_ip: Ipv4Addr,
) -> Vec<u8> {
    let target_mac = MacAddr([0; 6]);
    let operation = ArpOperation::Request;
    emit(to, Arp { operation, sender_mac, sender_ip, target_mac, target_ip })
}

/// Returns an ARP reply to `to`, which states that `ip` is at `mac`.
pub fn reply(mac: MacAddr, ip: Ipv4Addr, to: MacAddr, to_ip: Ipv4Addr) -> Vec<u8> {
    let operation = ArpOperation::Reply;
    emit(to, Arp { operation, sender_mac: mac, sender_ip: ip, target_mac: to, target_ip: to_ip })
}

/// Returns the frame that carries an ARP packet from its sender, padded to the Ethernet minimum.
pub fn emit(to: MacAddr, arp: Arp) -> Vec<u8> {
    let ethernet = EthernetRepr {
        src_addr: EthernetAddress(arp.sender_mac.0),
        dst_addr: EthernetAddress(to.0),
        ethertype: EthernetProtocol::Arp,
    };
    let repr = ArpRepr::EthernetIpv4 {
        operation: arp.operation,
        source_hardware_addr: EthernetAddress(arp.sender_mac.0),
        source_protocol_addr: arp.sender_ip,
        target_hardware_addr: EthernetAddress(arp.target_mac.0),
        target_protocol_addr: arp.target_ip,
    };
    let mut bytes = alloc::vec![0; FRAME_BYTES_MIN];
    ethernet.emit(&mut EthernetFrame::new_unchecked(&mut bytes));
    repr.emit(&mut ArpPacket::new_unchecked(&mut bytes[ETHERNET_BYTES..]));
    bytes
}

/// Returns whether a single host can have this address, that is, whether it is none of "this host",
/// loopback, group and broadcast.
pub fn is_host_ip(ip: Ipv4Addr) -> bool {
    !(ip.octets()[0] == 0 || ip.is_loopback() || ip.octets()[0] >= 224)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::priority::Priority;

    const A: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
    const B: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);
    const IP_A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const IP_B: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    #[test]
    fn an_arp_request_is_a_whole_ethernet_frame() {
        let frame = request(A, IP_A, B, IP_B);
        assert_eq!(
            frame[..42],
            [
                2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1,
                10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2
            ]
        );
        assert_eq!(frame[42..], [0; 18]);
    }

    #[test]
    fn an_arp_reply_is_read_back_and_short_ones_are_bad() {
        let frame = reply(A, IP_A, B, IP_B);
        let Kind::Arp(arp) = classify(&frame) else { panic!("not ARP") };
        assert_eq!(arp.operation, ArpOperation::Reply);
        assert_eq!((arp.sender_mac, arp.sender_ip), (A, IP_A));
        assert_eq!((arp.target_mac, arp.target_ip), (B, IP_B));
        for length in 14..42 {
            assert_eq!(classify(&frame[..length]), Kind::BadArp);
        }
        assert_eq!(classify(&frame[..13]), Kind::Other);
    }

    #[test]
    fn arp_behind_a_priority_tag_is_arp_and_of_a_vlan_is_not() {
        let plain = request(A, IP_A, MacAddr::BROADCAST, IP_B);
        let tagged = |vid| {
            let tag = VlanTag { vid, ..VlanTag::of_priority(Priority::MAX) };
            [&plain[..12], &tag.emit(), &plain[12..]].concat()
        };
        assert_eq!(classify(&tagged(0)), classify(&plain));
        assert_eq!(classify(&tagged(1)), Kind::Other);
        for length in 18..46 {
            assert_eq!(classify(&tagged(0)[..length]), Kind::BadArp);
        }
        for length in 0..18 {
            assert_eq!(classify(&tagged(0)[..length]), Kind::Other);
        }
    }

    #[test]
    fn group_and_special_addresses_are_nobodys() {
        for ip in [[0, 0, 0, 0], [127, 0, 0, 1], [224, 0, 0, 1], [255, 255, 255, 255]] {
            assert!(!is_host_ip(ip.into()));
        }
        assert!(is_host_ip(IP_A));
    }
}
