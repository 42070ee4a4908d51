//! DHCPv6 (RFC 8415) for an edge and a relay agent: datagrams in Ethernet frames, messages between
//! clients and servers, messages between relay agents and servers, and options.
//!
//! Options are parsed and written one by one, because a relay forwards unknown options. The
//! addresses in a server's answer are parsed, because they are assigned to hosts.

use crate::MacAddr;
pub use crate::constants::dhcpv6_port::{CLIENT as CLIENT_PORT, SERVER as SERVER_PORT};
use crate::constants::ethertype;
use crate::host_frame;
use crate::link::ETHERNET_BYTES;
use crate::nd::group_mac;
use alloc::vec::Vec;
use core::net::Ipv6Addr;
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    EthernetAddress, EthernetFrame, EthernetProtocol, EthernetRepr, IpAddress, IpProtocol,
    Ipv6Packet, Ipv6Repr, UDP_HEADER_LEN, UdpPacket, UdpRepr,
};

/// All relay agents and servers of a link (RFC 8415 clause 7.1).
pub(crate) const ALL_SERVERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 1, 2);
/// Maximum bytes of a message: the payload of an Ethernet frame with 1,500 bytes of IP packet.
pub const MESSAGE_BYTES_MAX: usize = 1_500 - IPV6_BYTES - UDP_HEADER_LEN;

const IPV6_BYTES: usize = 40;
const HOP_LIMIT: u8 = 64;
/// Bytes of the message type and transaction ID.
const CLIENT_BYTES: usize = 4;
/// Bytes of the message type, the hop count and two addresses.
const RELAY_BYTES: usize = 34;
/// Bytes of an IA for non-temporary addresses (IA_NA) before its options: its number, T1 and T2.
const IA_NA_BYTES: usize = 12;
/// Bytes of an IA for temporary addresses (IA_TA) before its options: its number.
const IA_TA_BYTES: usize = 4;
/// Bytes of an IA address before its options: address, preferred lifetime, valid lifetime.
const IA_ADDRESS_BYTES: usize = 24;

/// Message types (RFC 8415 clause 7.3).
pub mod kind {
    /// Solicit: a client discovers servers.
    pub const SOLICIT: u8 = 1;
    /// Advertise: a server offers addresses.
    pub const ADVERTISE: u8 = 2;
    /// Request: a client requests addresses from the server that it chose.
    pub const REQUEST: u8 = 3;
    /// Confirm: a client checks that its addresses still fit the link.
    pub const CONFIRM: u8 = 4;
    /// Renew: a client extends its lease at its server.
    pub const RENEW: u8 = 5;
    /// Rebind: a client extends its lease at any server.
    pub const REBIND: u8 = 6;
    /// Reply: a server's answer to all messages but Solicit.
    pub const REPLY: u8 = 7;
    /// Release: a client returns addresses.
    pub const RELEASE: u8 = 8;
    /// Decline: a client reports that its addresses are in use by others.
    pub const DECLINE: u8 = 9;
    /// Information-request: a client with addresses requests other configuration.
    pub const INFORMATION_REQUEST: u8 = 11;
    /// Relay-forward: a relay agent forwards a message to a server.
    pub const RELAY_FORWARD: u8 = 12;
    /// Relay-reply: a server's answer to a relay agent.
    pub const RELAY_REPLY: u8 = 13;
}

/// Option codes (RFC 8415 clause 21, RFC 3646).
pub mod option {
    /// The identifier of the client, its DUID.
    pub const CLIENT_ID: u16 = 1;
    /// The identifier of the server, its DUID.
    pub const SERVER_ID: u16 = 2;
    /// Identity association for non-temporary addresses.
    pub const IA_NA: u16 = 3;
    /// Identity association for temporary addresses.
    pub const IA_TA: u16 = 4;
    /// One address of an identity association.
    pub const IA_ADDRESS: u16 = 5;
    /// Time since the client's first attempt, in hundredths of a second.
    pub const ELAPSED_TIME: u16 = 8;
    /// The message that a relay agent forwards.
    pub(crate) const RELAY_MESSAGE: u16 = 9;
    /// The client may send to the server directly.
    pub const UNICAST: u16 = 12;
    /// Interface-ID: identifies the relay agent's port.
    pub(crate) const INTERFACE_ID: u16 = 18;
    /// Name servers.
    pub const DNS: u16 = 23;
    /// Domain search list.
    pub const DOMAINS: u16 = 24;
    /// Prefixes delegated to a router behind the client.
    pub const IA_PD: u16 = 25;
    /// Seconds until the client refreshes its other configuration.
    pub const REFRESH_TIME: u16 = 32;
}

/// A DHCPv6 datagram between clients, relay agents and servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// MAC and IP address of the sender.
    pub from: (MacAddr, Ipv6Addr),
    /// The destination address.
    pub to: Ipv6Addr,
    /// The destination port: [`CLIENT_PORT`] or [`SERVER_PORT`].
    pub to_port: u16,
    /// The DHCPv6 message.
    pub message: &'a [u8],
}

impl Datagram<'_> {
    /// Parses a frame, which may have a priority tag. Returns `None` unless the frame is one whole
    /// datagram with a correct checksum and no extension header.
    pub fn parse(frame: &[u8]) -> Option<Datagram<'_>> {
        let mac = MacAddr::source_of(frame)?;
        let Some((ethertype::IPV6, packet)) = host_frame::contents(frame) else { return None };
        let ip = Ipv6Packet::new_checked(packet).ok()?;
        if ip.version() != 6 || ip.next_header() != IpProtocol::Udp {
            return None;
        }
        let (from, to) = (ip.src_addr(), ip.dst_addr());
        let udp = UdpPacket::new_checked(ip.payload()).ok()?;
        let to_port = udp.dst_port();
        // IPv6 requires the checksum (RFC 8200 clause 8.1).
        let intact = udp.checksum() != 0
            && udp.verify_checksum(&IpAddress::Ipv6(from), &IpAddress::Ipv6(to));
        let is = intact && (to_port == CLIENT_PORT || to_port == SERVER_PORT);
        is.then(|| Datagram { from: (mac, from), to, to_port, message: udp.payload() })
    }
}

/// Returns the frame that carries a message from port `ports.0` of one host to port `ports.1` of
/// another.
pub fn frame(
    from: (MacAddr, Ipv6Addr),
    to: (MacAddr, Ipv6Addr),
    ports: (u16, u16),
    message: &[u8],
) -> Vec<u8> {
    let ethernet = EthernetRepr {
        src_addr: EthernetAddress(from.0.0),
        dst_addr: EthernetAddress(to.0.0),
        ethertype: EthernetProtocol::Ipv6,
    };
    let ipv6 = Ipv6Repr {
        src_addr: from.1,
        dst_addr: to.1,
        next_header: IpProtocol::Udp,
        payload_len: UDP_HEADER_LEN + message.len(),
        hop_limit: HOP_LIMIT,
    };
    let mut bytes = alloc::vec![0; ETHERNET_BYTES + IPV6_BYTES + ipv6.payload_len];
    ethernet.emit(&mut EthernetFrame::new_unchecked(&mut bytes[..]));
    ipv6.emit(&mut Ipv6Packet::new_unchecked(&mut bytes[ETHERNET_BYTES..]));
    UdpRepr { src_port: ports.0, dst_port: ports.1 }.emit(
        &mut UdpPacket::new_unchecked(&mut bytes[ETHERNET_BYTES + IPV6_BYTES..]),
        &IpAddress::Ipv6(from.1),
        &IpAddress::Ipv6(to.1),
        message.len(),
        |payload| payload.copy_from_slice(message),
        &ChecksumCapabilities::default(),
    );
    bytes
}

/// Returns the MAC and IP address that clients send to.
pub fn all_servers() -> (MacAddr, Ipv6Addr) {
    (group_mac(ALL_SERVERS), ALL_SERVERS)
}

/// Iterates over the options in `bytes`, each as a code and data.
///
/// # Errors
/// An option that goes beyond the bytes ends the list with `None`.
pub fn options(bytes: &[u8]) -> impl Iterator<Item = Option<(u16, &[u8])>> {
    let mut rest = bytes;
    core::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let header = rest.split_first_chunk::<4>();
        let read = header.and_then(|(&[a, b, c, d], after)| {
            let bytes = usize::from(u16::from_be_bytes([c, d]));
            let (data, after) = after.split_at_checked(bytes)?;
            rest = after;
            Some((u16::from_be_bytes([a, b]), data))
        });
        if read.is_none() {
            rest = &[];
        }
        Some(read)
    })
}

/// Returns the data of the first option with this code.
pub fn find(bytes: &[u8], code: u16) -> Option<&[u8]> {
    options(bytes).flatten().find(|(of, _)| *of == code).map(|(_, data)| data)
}

/// Appends an option. Data beyond 65,535 bytes is cut off.
pub fn push(bytes: &mut Vec<u8>, code: u16, data: &[u8]) {
    let data = &data[..data.len().min(usize::from(u16::MAX))];
    bytes.extend(code.to_be_bytes());
    bytes.extend((data.len() as u16).to_be_bytes());
    bytes.extend_from_slice(data);
}

/// A message between a client and a server (RFC 8415 clause 8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Message type, see [`kind`].
    pub kind: u8,
    /// Transaction ID, chosen by the client: 24 bits.
    pub transaction: u32,
    /// The options, each of them complete.
    pub options: &'a [u8],
}

impl Message<'_> {
    /// Parses a message. Returns `None` if the message is a relay agent's, is too short, or has a
    /// truncated option.
    pub fn parse(bytes: &[u8]) -> Option<Message<'_>> {
        let (&[kind, a, b, c], rest) = bytes.split_first_chunk::<CLIENT_BYTES>()?;
        let relays = kind == kind::RELAY_FORWARD || kind == kind::RELAY_REPLY;
        let whole = options(rest).all(|option| option.is_some());
        (!relays && whole).then(|| Message {
            kind,
            transaction: u32::from_be_bytes([0, a, b, c]),
            options: rest,
        })
    }

    /// Returns the bytes of the message.
    pub fn emit(&self) -> Vec<u8> {
        let [_, a, b, c] = self.transaction.to_be_bytes();
        let mut bytes = alloc::vec![self.kind, a, b, c];
        bytes.extend_from_slice(self.options);
        bytes
    }

    /// Returns the addresses of the IAs, each with its valid lifetime in seconds.
    ///
    /// # Errors
    /// `None` if an option is truncated, or an address is not one that a host can have.
    pub fn addresses(&self) -> Option<Vec<(Ipv6Addr, u32)>> {
        let mut all = Vec::new();
        for (code, data) in options(self.options).flatten() {
            let within = match code {
                option::IA_NA => data.get(IA_NA_BYTES..)?,
                option::IA_TA => data.get(IA_TA_BYTES..)?,
                _ => continue,
            };
            for inner in options(within) {
                let (code, data) = inner?;
                if code != option::IA_ADDRESS {
                    continue;
                }
                let (fixed, _) = data.split_first_chunk::<IA_ADDRESS_BYTES>()?;
                let (ip, times) = fixed.split_first_chunk::<16>()?;
                let ip = Ipv6Addr::from(*ip);
                let lawful = crate::nd::is_host_ip(ip) && !ip.is_unicast_link_local();
                let valid = u32::from_be_bytes([times[4], times[5], times[6], times[7]]);
                all.push(lawful.then_some((ip, valid))?);
            }
        }
        Some(all)
    }
}

/// A message between a relay agent and a server (RFC 8415 clause 9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relayed<'a> {
    /// [`kind::RELAY_FORWARD`] or [`kind::RELAY_REPLY`].
    pub kind: u8,
    /// Number of relay agents that have already forwarded the message.
    pub hops: u8,
    /// An address on the client's link.
    pub link: Ipv6Addr,
    /// The address of the client, or of the previous relay agent.
    pub peer: Ipv6Addr,
    /// The relay agent's identifier for the client's port; empty if there is none.
    pub interface: &'a [u8],
    /// The forwarded message.
    pub message: &'a [u8],
}

impl Relayed<'_> {
    /// Parses a message. Returns `None` if it is not a relay agent's, contains no message, or has a
    /// truncated or repeated option.
    pub fn parse(bytes: &[u8]) -> Option<Relayed<'_>> {
        let (fixed, rest) = bytes.split_first_chunk::<RELAY_BYTES>()?;
        let (&[kind, hops], addresses) = fixed.split_first_chunk::<2>()?;
        if kind != kind::RELAY_FORWARD && kind != kind::RELAY_REPLY {
            return None;
        }
        let address = |at: usize| <[u8; 16]>::try_from(addresses.get(at..at + 16)?).ok();
        let (mut interface, mut message) = (None, None);
        for one in options(rest) {
            let doubled = match one? {
                (option::INTERFACE_ID, data) => interface.replace(data).is_some(),
                (option::RELAY_MESSAGE, data) => message.replace(data).is_some(),
                _ => false,
            };
            if doubled {
                return None;
            }
        }
        Some(Relayed {
            kind,
            hops,
            link: address(0)?.into(),
            peer: address(16)?.into(),
            interface: interface.unwrap_or_default(),
            message: message?,
        })
    }

    /// Returns the bytes of the message.
    pub fn emit(&self) -> Vec<u8> {
        let mut bytes = alloc::vec![self.kind, self.hops];
        bytes.extend(self.link.octets());
        bytes.extend(self.peer.octets());
        if !self.interface.is_empty() {
            push(&mut bytes, option::INTERFACE_ID, self.interface);
        }
        push(&mut bytes, option::RELAY_MESSAGE, self.message);
        bytes
    }
}

/// Returns a DUID based on a MAC address (RFC 8415 clause 11.4).
pub fn duid(mac: MacAddr) -> [u8; 10] {
    let [a, b, c, d, e, f] = mac.0;
    [0, 3, 0, 1, a, b, c, d, e, f]
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
    const OWN: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
    const GIVEN: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, 9);

    fn reply(ip: Ipv6Addr, valid: u32) -> Vec<u8> {
        let mut address = ip.octets().to_vec();
        address.extend([0, 0, 0, 60]);
        address.extend(valid.to_be_bytes());
        let mut ia = vec![0; IA_NA_BYTES];
        push(&mut ia, option::IA_ADDRESS, &address);
        let mut options = Vec::new();
        push(&mut options, option::CLIENT_ID, &duid(MAC));
        push(&mut options, option::IA_NA, &ia);
        Message { kind: kind::REPLY, transaction: 0x12_3456, options: &options }.emit()
    }

    #[test]
    fn a_message_comes_back_as_it_was_through_frame_and_relay() {
        let message = reply(GIVEN, 120);
        let (link, interface) = (Ipv6Addr::LOCALHOST, &b"s1-p0"[..]);
        let relayed = Relayed { kind: 13, hops: 0, link, peer: OWN, interface, message: &message };
        let bytes = frame((MAC, OWN), all_servers(), (547, 547), &relayed.emit());
        assert_eq!(bytes[..6], [0x33, 0x33, 0, 1, 0, 2]);
        let read = Datagram::parse(&bytes).unwrap();
        assert_eq!((read.from, read.to, read.to_port), ((MAC, OWN), ALL_SERVERS, 547));
        assert_eq!(Relayed::parse(read.message), Some(relayed));
        let inner = Message::parse(relayed.message).unwrap();
        assert_eq!((inner.kind, inner.transaction), (kind::REPLY, 0x12_3456));
        assert_eq!(inner.addresses(), Some(vec![(GIVEN, 120)]));
        assert_eq!(find(inner.options, option::CLIENT_ID), Some(&duid(MAC)[..]));
        assert_eq!(inner.emit(), message);
        assert_eq!(Message::parse(read.message), None, "it is a relay agent's");
        assert_eq!(Relayed::parse(&message), None);
    }

    #[test]
    fn what_is_torn_doubled_or_damaged_is_not_read() {
        let message = reply(GIVEN, 120);
        for bytes in CLIENT_BYTES + 1..message.len() {
            let read = Message::parse(&message[..bytes]);
            assert!(read.is_none() || bytes == CLIENT_BYTES + 14, "{bytes}");
        }
        let link_local = reply(OWN, 120);
        assert_eq!(Message::parse(&link_local).unwrap().addresses(), None);
        let mut torn = reply(GIVEN, 120);
        let at = CLIENT_BYTES + 14 + 4 + IA_NA_BYTES + 3;
        torn[at] += 1;
        assert_eq!(Message::parse(&torn).unwrap().addresses(), None, "an address too long");
        let relayed = Relayed {
            kind: kind::RELAY_REPLY,
            hops: 0,
            link: OWN,
            peer: OWN,
            interface: b"",
            message: &message,
        };
        let mut doubled = relayed.emit();
        push(&mut doubled, option::RELAY_MESSAGE, b"x");
        assert_eq!(Relayed::parse(&doubled), None);
        let mut bytes = frame((MAC, OWN), all_servers(), (546, 547), &message);
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        assert_eq!(Datagram::parse(&bytes), None, "the checksum");
    }

    proptest! {
        #[test]
        fn whatever_comes_nothing_breaks(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
            kind in 1_u8..14,
        ) {
            let bytes = [&[kind][..], &bytes].concat();
            if let Some(message) = Message::parse(&bytes) {
                prop_assert_eq!(message.emit(), bytes.clone());
                let _ = message.addresses();
            }
            if let Some(relayed) = Relayed::parse(&bytes) {
                let emitted = relayed.emit();
                prop_assert_eq!(Relayed::parse(&emitted), Some(relayed));
            }
            let _ = Datagram::parse(&bytes);
        }
    }
}
