//! IPv6 router discovery (RFC 4861 clauses 4.1 and 4.2) with the options that configure a host:
//! prefix (RFC 4862), MTU, name servers and search domain (RFC 8106).
//!
//! Packets, checksums and the fixed part of a message are smoltcp's. Its router advertisement does
//! not support name servers, so the options are written here.

use crate::MacAddr;
use crate::constants::ethertype;
use crate::host_frame;
use crate::link::ETHERNET_BYTES;
use crate::nd::{group_mac, is_host_ip};
use alloc::string::String;
use alloc::vec::Vec;
use core::net::Ipv6Addr;
use smoltcp::wire::{
    EthernetAddress, EthernetFrame, EthernetProtocol, EthernetRepr, Icmpv6Packet, IpProtocol,
    Ipv6Packet, Ipv6Repr,
};

/// Hop limit of neighbour discovery (RFC 4861 clause 6.1).
const HOP_LIMIT: u8 = 255;
const IPV6_BYTES: usize = 40;
/// Maximum number of extension headers parsed. A packet with more is not accepted from a host (RFC
/// 8504 clause 5.3 lets a receiver set such a limit).
const EXTENSIONS_MAX: usize = 8;
const SOLICITATION: u8 = 133;
const ADVERTISEMENT: u8 = 134;
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
/// Bytes of an advertisement before its options.
const FIXED_BYTES: usize = 16;
/// Bytes of a solicitation before its options.
const SOLICITATION_BYTES: usize = 8;
const OPTION_SOURCE: u8 = 1;
const OPTION_PREFIX: u8 = 3;
const OPTION_MTU: u8 = 5;
const OPTION_DNS: u8 = 25;
const OPTION_DOMAIN: u8 = 31;
/// Prefix flag L: the prefix is on-link (RFC 4861 clause 4.6.2).
const ON_LINK: u8 = 0x80;
/// Prefix flag A: hosts configure addresses from the prefix autonomously.
const AUTONOMOUS: u8 = 0x40;
/// Flag M: addresses are assigned by DHCPv6 (RFC 4861 clause 4.2).
const MANAGED: u8 = 0x80;
/// Flag O: other settings are provided by DHCPv6.
const OTHER: u8 = 0x40;

/// Router discovery message received from a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Router {
    /// A solicitation, with the address of the host if it has one yet.
    Solicitation(Option<Ipv6Addr>),
    /// A solicitation that violates RFC 4861 clause 6.1.1.
    BadSolicitation,
    /// A router advertisement, valid or not, or a packet that may hide one because its headers
    /// continue in another fragment (RFC 7113 clause 3).
    Advertisement,
}

/// Classifies a frame. Returns `None` if it is not router discovery.
///
/// Advertisements are also detected behind extension headers and in a first fragment. A packet with
/// more extension headers than `EXTENSIONS_MAX` counts as an advertisement.
pub fn classify(frame: &[u8]) -> Option<Router> {
    let Some((ethertype::IPV6, packet)) = host_frame::contents(frame) else { return None };
    if packet.first()? >> 4 != 6 {
        return None;
    }
    let (mut next, mut at, mut fragment) = (*packet.get(6)?, IPV6_BYTES, false);
    for _ in 0..EXTENSIONS_MAX {
        let header = packet.get(at..).unwrap_or_default();
        let bytes = match IpProtocol::from(next) {
            IpProtocol::Icmpv6 => {
                return match header.first() {
                    Some(&ADVERTISEMENT) => Some(Router::Advertisement),
                    Some(&SOLICITATION) => Some(solicitation(packet)),
                    None if fragment => Some(Router::Advertisement),
                    _ => None,
                };
            }
            IpProtocol::HopByHop | IpProtocol::Ipv6Route | IpProtocol::Ipv6Opts => {
                header.get(1).map(|&units| (usize::from(units) + 1) * 8)
            }
            IpProtocol::Ipv6Frag => {
                let is_first = header.get(2..4).map(|at| u16::from_be_bytes([at[0], at[1]]) >> 3);
                if is_first.is_some_and(|offset| offset != 0) {
                    return None;
                }
                fragment = true;
                Some(8)
            }
            _ => return None,
        };
        let (Some(bytes), Some(&following)) = (bytes, header.first()) else {
            return fragment.then_some(Router::Advertisement);
        };
        (next, at) = (following, at + bytes);
    }
    // Hosts may parse more headers than this, so assume an advertisement.
    Some(Router::Advertisement)
}

/// Checks a solicitation against RFC 4861 clause 6.1.1.
fn solicitation(packet: &[u8]) -> Router {
    let sound = || {
        let ip = Ipv6Packet::new_checked(packet).ok()?;
        let direct = ip.hop_limit() == HOP_LIMIT && ip.next_header() == IpProtocol::Icmpv6;
        let message = Icmpv6Packet::new_checked(ip.payload()).ok()?;
        let (from, to) = (ip.src_addr(), ip.dst_addr());
        let intact = message.verify_checksum(&from, &to) && message.msg_code() == 0;
        let mut rest = ip.payload().get(SOLICITATION_BYTES..)?;
        let mut names_source = false;
        while let Some((&kind, [units, ..])) = rest.split_first() {
            names_source |= kind == OPTION_SOURCE;
            rest = rest.get(usize::from(*units) * 8..).filter(|_| *units > 0)?;
        }
        let source = (!from.is_unspecified()).then_some(from);
        let lawful = source.map_or(!names_source, is_host_ip);
        (direct && intact && rest.is_empty() && lawful).then_some(Router::Solicitation(source))
    };
    sound().unwrap_or(Router::BadSolicitation)
}

/// Content of a router advertisement. Times are in seconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advertisement {
    /// Router lifetime; 0 if the sender is not a default router.
    pub router_seconds: u16,
    /// The on-link prefix from which hosts configure addresses.
    pub prefix: Ipv6Addr,
    /// Length of the prefix in bits: 64 for SLAAC over Ethernet (RFC 2464 clause 4).
    pub prefix_len: u8,
    /// True if hosts configure addresses from the prefix autonomously (SLAAC).
    pub autonomous: bool,
    /// True if addresses are assigned by DHCPv6 (flag M).
    pub managed: bool,
    /// True if other settings are provided by DHCPv6 (flag O).
    pub other: bool,
    /// Valid lifetime of addresses from the prefix.
    pub valid_seconds: u32,
    /// Preferred lifetime of addresses from the prefix, at most the valid one.
    pub preferred_seconds: u32,
    /// The MTU of the link in bytes.
    pub mtu: Option<u32>,
    /// Name servers, in order of preference.
    pub dns: Vec<Ipv6Addr>,
    /// Search domain, in ASCII: labels of 1 to 63 bytes.
    pub domain: Option<String>,
    /// Lifetime of name servers and search domain.
    pub dns_seconds: u32,
}

impl Advertisement {
    /// Returns the options, each a multiple of 8 bytes.
    fn options(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let flags = ON_LINK | if self.autonomous { AUTONOMOUS } else { 0 };
        bytes.extend([OPTION_PREFIX, 4, self.prefix_len, flags]);
        bytes.extend(self.valid_seconds.to_be_bytes());
        bytes.extend(self.preferred_seconds.to_be_bytes());
        bytes.extend([0; 4]);
        bytes.extend(self.prefix.octets());
        if let Some(mtu) = self.mtu {
            bytes.extend([OPTION_MTU, 1, 0, 0]);
            bytes.extend(mtu.to_be_bytes());
        }
        if !self.dns.is_empty() {
            bytes.extend([OPTION_DNS, 1 + 2 * self.dns.len() as u8, 0, 0]);
            bytes.extend(self.dns_seconds.to_be_bytes());
            self.dns.iter().for_each(|server| bytes.extend(server.octets()));
        }
        if let Some(domain) = &self.domain {
            let mut name = encoded_name(domain);
            name.resize(name.len().next_multiple_of(8), 0);
            bytes.extend([OPTION_DOMAIN, 1 + (name.len() / 8) as u8, 0, 0]);
            bytes.extend(self.dns_seconds.to_be_bytes());
            bytes.extend(name);
        }
        bytes
    }

    /// Returns the Ethernet frame of the advertisement, from the MAC and link-local address of its
    /// sender, to one host or to all nodes.
    ///
    /// It has no MAC option: the sender's address may be that of a router on whose behalf it is
    /// sent, and hosts resolve that address like any other.
    pub fn frame(&self, from: (MacAddr, Ipv6Addr), to: Option<(MacAddr, Ipv6Addr)>) -> Vec<u8> {
        let to = to.unwrap_or((group_mac(ALL_NODES), ALL_NODES));
        let options = self.options();
        let ethernet = EthernetRepr {
            src_addr: EthernetAddress(from.0.0),
            dst_addr: EthernetAddress(to.0.0),
            ethertype: EthernetProtocol::Ipv6,
        };
        let ipv6 = Ipv6Repr {
            src_addr: from.1,
            dst_addr: to.1,
            next_header: IpProtocol::Icmpv6,
            payload_len: FIXED_BYTES + options.len(),
            hop_limit: HOP_LIMIT,
        };
        let mut bytes = alloc::vec![0; ETHERNET_BYTES + IPV6_BYTES + ipv6.payload_len];
        ethernet.emit(&mut EthernetFrame::new_unchecked(&mut bytes[..]));
        ipv6.emit(&mut Ipv6Packet::new_unchecked(&mut bytes[ETHERNET_BYTES..]));
        let message = &mut bytes[ETHERNET_BYTES + IPV6_BYTES..];
        message[0] = ADVERTISEMENT;
        // Hop limit for hosts (RFC 4861 clause 6.2.1: the present value of the Internet).
        message[4] = 64;
        message[5] |= if self.managed { MANAGED } else { 0 };
        message[5] |= if self.other { OTHER } else { 0 };
        message[6..8].copy_from_slice(&self.router_seconds.to_be_bytes());
        message[FIXED_BYTES..].copy_from_slice(&options);
        Icmpv6Packet::new_unchecked(message).fill_checksum(&from.1, &to.1);
        bytes
    }
}

/// Encodes a domain as labels with their lengths (RFC 1035 clause 3.1), uncompressed. Labels are 1
/// to 63 bytes of ASCII.
pub fn encoded_name(domain: &str) -> Vec<u8> {
    let mut name = Vec::new();
    for label in domain.split('.') {
        name.push(label.len() as u8);
        name.extend(label.bytes());
    }
    name.push(0);
    name
}

/// Returns the router solicitation of a host with this address.
pub fn solicitation_frame(from: (MacAddr, Option<Ipv6Addr>)) -> Vec<u8> {
    const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);
    let source = from.1.unwrap_or(Ipv6Addr::UNSPECIFIED);
    let ethernet = EthernetRepr {
        src_addr: EthernetAddress(from.0.0),
        dst_addr: EthernetAddress(group_mac(ALL_ROUTERS).0),
        ethertype: EthernetProtocol::Ipv6,
    };
    let ipv6 = Ipv6Repr {
        src_addr: source,
        dst_addr: ALL_ROUTERS,
        next_header: IpProtocol::Icmpv6,
        payload_len: SOLICITATION_BYTES,
        hop_limit: HOP_LIMIT,
    };
    let mut bytes = alloc::vec![0; ETHERNET_BYTES + IPV6_BYTES + SOLICITATION_BYTES];
    ethernet.emit(&mut EthernetFrame::new_unchecked(&mut bytes[..]));
    ipv6.emit(&mut Ipv6Packet::new_unchecked(&mut bytes[ETHERNET_BYTES..]));
    let message = &mut bytes[ETHERNET_BYTES + IPV6_BYTES..];
    message[0] = SOLICITATION;
    Icmpv6Packet::new_unchecked(message).fill_checksum(&source, &ALL_ROUTERS);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nd;
    use alloc::vec;
    use smoltcp::phy::ChecksumCapabilities;
    use smoltcp::wire::{Icmpv6Repr, NdiscRepr};

    const HOST: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
    const EDGE: MacAddr = MacAddr([2, 0xff, 0, 0, 0, 1]);

    fn advertisement() -> Advertisement {
        Advertisement {
            router_seconds: 600,
            prefix: Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, 0),
            prefix_len: 64,
            autonomous: true,
            managed: false,
            other: false,
            valid_seconds: 86_400,
            preferred_seconds: 14_400,
            mtu: Some(1400),
            dns: vec![Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, 53); 2],
            domain: Some("lab.example".into()),
            dns_seconds: 600,
        }
    }

    #[test]
    fn an_advertisement_is_read_by_another_stack_and_has_its_options() {
        let from = nd::link_local(EDGE);
        let frame = advertisement().frame((EDGE, from), None);
        assert_eq!(classify(&frame), Some(Router::Advertisement));
        assert_eq!(frame[..6], [0x33, 0x33, 0, 0, 0, 1]);
        let ip = Ipv6Packet::new_checked(&frame[14..]).unwrap();
        let packet = Icmpv6Packet::new_checked(ip.payload()).unwrap();
        let checksums = ChecksumCapabilities::default();
        let read = Icmpv6Repr::parse(&from, &ip.dst_addr(), &packet, &checksums).unwrap();
        let Icmpv6Repr::Ndisc(NdiscRepr::RouterAdvert {
            mtu, prefix_info, router_lifetime, ..
        }) = read
        else {
            panic!("{read:?}");
        };
        let prefix = prefix_info.unwrap();
        assert_eq!((mtu, router_lifetime.secs()), (Some(1400), 600));
        assert_eq!((prefix.prefix, prefix.prefix_len), (advertisement().prefix, 64));
        let dns_at = 14 + 40 + 16 + 32 + 8;
        assert_eq!(frame[dns_at..dns_at + 8], [25, 5, 0, 0, 0, 0, 2, 88]);
        let domain = &frame[dns_at + 40..];
        assert_eq!(domain, b"\x1f\x03\0\0\0\0\x02\x58\x03lab\x07example\0\0\0\0");
    }

    #[test]
    fn flags_say_where_addresses_and_settings_come_from() {
        use smoltcp::wire::{NdiscPrefixInfoFlags, NdiscRouterFlags};
        let from = nd::link_local(EDGE);
        let read = |advertisement: Advertisement| {
            let frame = advertisement.frame((EDGE, from), None);
            let ip = Ipv6Packet::new_checked(&frame[14..]).unwrap();
            let packet = Icmpv6Packet::new_checked(ip.payload()).unwrap();
            let checksums = ChecksumCapabilities::default();
            match Icmpv6Repr::parse(&from, &ip.dst_addr(), &packet, &checksums).unwrap() {
                Icmpv6Repr::Ndisc(NdiscRepr::RouterAdvert { flags, prefix_info, .. }) => {
                    (flags, prefix_info.unwrap().flags)
                }
                other => panic!("{other:?}"),
            }
        };
        let (on_link, both) = (NdiscPrefixInfoFlags::ON_LINK, NdiscPrefixInfoFlags::all());
        assert_eq!(read(advertisement()), (NdiscRouterFlags::empty(), both));
        let managed = Advertisement { managed: true, autonomous: false, ..advertisement() };
        assert_eq!(read(managed), (NdiscRouterFlags::MANAGED, on_link));
        let other = Advertisement { other: true, ..advertisement() };
        assert_eq!(read(other), (NdiscRouterFlags::OTHER, both));
    }

    #[test]
    fn solicitations_that_are_not_sound_are_recognised() {
        let local = nd::link_local(HOST);
        let sound = solicitation_frame((HOST, Some(local)));
        assert_eq!(classify(&sound), Some(Router::Solicitation(Some(local))));
        let unnamed = solicitation_frame((HOST, None));
        assert_eq!(classify(&unnamed), Some(Router::Solicitation(None)));
        for (at, value) in [(21, 64), (55, 1), (58, 9), (22, 0xff)] {
            let mut bad = sound.clone();
            bad[at] = value;
            assert_eq!(classify(&bad), Some(Router::BadSolicitation), "byte {at}");
        }
        let neighbour = nd::solicitation((HOST, local), None, local);
        assert_eq!(classify(&neighbour), None);
        for length in 0..sound.len() {
            assert!(!matches!(classify(&sound[..length]), Some(Router::Solicitation(_))));
        }
    }

    #[test]
    fn an_advertisement_does_not_hide_behind_headers_or_in_fragments() {
        let frame = advertisement().frame((HOST, nd::link_local(HOST)), None);
        let behind = |next: u8, header: &[u8]| {
            let mut bytes = [&frame[..54], header, &frame[54..]].concat();
            bytes[20] = next;
            bytes
        };
        // Hop-by-hop, destination and fragment headers before ICMPv6 (58).
        assert_eq!(classify(&behind(0, &[58, 0, 0, 0, 0, 0, 0, 0])), Some(Router::Advertisement));
        assert_eq!(classify(&behind(60, &[58, 0, 0, 0, 0, 0, 0, 0])), Some(Router::Advertisement));
        let first = behind(44, &[58, 0, 0, 1, 0, 0, 0, 7]);
        assert_eq!(classify(&first), Some(Router::Advertisement));
        assert_eq!(classify(&first[..62]), Some(Router::Advertisement), "in the next fragment");
        assert_eq!(classify(&behind(44, &[58, 0, 0, 9, 0, 0, 0, 7])), None, "a later fragment");
        assert_eq!(classify(&frame[..54]), None, "no message at all");
    }
}
