//! DHCPv6 (RFC 8415) as an edge and a relay agent see it: datagrams in Ethernet frames, messages of
//! clients and servers, what relay agents say to servers and back, and options.
//!
//! Options are read and written one by one: a relay passes on what it does not know. The addresses
//! of a server's answer are read, since they become their hosts'.

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
pub const ALL_SERVERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 1, 2);
/// The most bytes of a message: what fits into an Ethernet frame with 1,500 bytes of IP packet.
pub const MESSAGE_BYTES_MAX: usize = 1_500 - IPV6_BYTES - UDP_HEADER_LEN;

const IPV6_BYTES: usize = 40;
const HOP_LIMIT: u8 = 64;
/// Kind and transaction.
const CLIENT_BYTES: usize = 4;
/// Kind, hops, and two addresses.
const RELAY_BYTES: usize = 34;
/// Bytes of an IA for addresses that may change (IA_NA) before its options: its number, T1 and T2.
const IA_NA_BYTES: usize = 12;
/// The same of an IA for temporary addresses (IA_TA): its number.
const IA_TA_BYTES: usize = 4;
/// An address, for how long it is preferred, and for how long it is valid.
const IA_ADDRESS_BYTES: usize = 24;

/// Kinds of messages (RFC 8415 clause 7.3).
pub mod kind {
    /// A client looks for servers.
    pub const SOLICIT: u8 = 1;
    /// A server offers addresses.
    pub const ADVERTISE: u8 = 2;
    /// A client asks the server that it chose for addresses.
    pub const REQUEST: u8 = 3;
    /// A client asks whether its addresses fit the link.
    pub const CONFIRM: u8 = 4;
    /// A client asks its server for more time.
    pub const RENEW: u8 = 5;
    /// A client asks any server for more time.
    pub const REBIND: u8 = 6;
    /// A server's answer to all but a solicitation.
    pub const REPLY: u8 = 7;
    /// A client gives addresses back.
    pub const RELEASE: u8 = 8;
    /// A client says that others use its addresses.
    pub const DECLINE: u8 = 9;
    /// A client with addresses asks for the rest.
    pub const INFORMATION_REQUEST: u8 = 11;
    /// A relay agent passes a message on to a server.
    pub const RELAY_FORWARD: u8 = 12;
    /// A server's answer to a relay agent.
    pub const RELAY_REPLY: u8 = 13;
}

/// Codes of options (RFC 8415 clause 21, RFC 3646).
pub mod option {
    /// The identifier of the client, its DUID.
    pub const CLIENT_ID: u16 = 1;
    /// The identifier of the server, its DUID.
    pub const SERVER_ID: u16 = 2;
    /// Addresses that may change.
    pub const IA_NA: u16 = 3;
    /// Temporary addresses.
    pub const IA_TA: u16 = 4;
    /// One address of such a set.
    pub const IA_ADDRESS: u16 = 5;
    /// For how long the client has tried, in hundredths of a second.
    pub const ELAPSED_TIME: u16 = 8;
    /// The message that a relay agent passes on.
    pub const RELAY_MESSAGE: u16 = 9;
    /// The client may send to the server directly.
    pub const UNICAST: u16 = 12;
    /// The port of a relay agent.
    pub const INTERFACE_ID: u16 = 18;
    /// Name servers.
    pub const DNS: u16 = 23;
    /// Domains in which names are looked for.
    pub const DOMAINS: u16 = 24;
    /// Prefixes for a router behind the client.
    pub const IA_PD: u16 = 25;
    /// After how many seconds the client asks for the rest again.
    pub const REFRESH_TIME: u16 = 32;
}

/// A datagram between clients, relay agents and servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// The host that sent it.
    pub from: (MacAddr, Ipv6Addr),
    /// The address that it is for.
    pub to: Ipv6Addr,
    /// The port that it is for: [`CLIENT_PORT`] or [`SERVER_PORT`].
    pub to_port: u16,
    /// Its message.
    pub message: &'a [u8],
}

impl Datagram<'_> {
    /// Reads a frame, which may have a priority tag; `None` for anything but one whole datagram
    /// with a correct checksum behind no extension header.
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
        // Without a checksum there is none in IPv6 (RFC 8200 clause 8.1).
        let intact = udp.checksum() != 0
            && udp.verify_checksum(&IpAddress::Ipv6(from), &IpAddress::Ipv6(to));
        let is = intact && (to_port == CLIENT_PORT || to_port == SERVER_PORT);
        is.then(|| Datagram { from: (mac, from), to, to_port, message: udp.payload() })
    }
}

/// The frame of a message from port `ports.0` of one host to port `ports.1` of another.
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

/// The MAC and address that clients send to.
pub fn all_servers() -> (MacAddr, Ipv6Addr) {
    (group_mac(ALL_SERVERS), ALL_SERVERS)
}

/// The options in these bytes: code and data.
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

/// The data of the first option with this code.
pub fn find(bytes: &[u8], code: u16) -> Option<&[u8]> {
    options(bytes).flatten().find(|(of, _)| *of == code).map(|(_, data)| data)
}

/// Appends an option; of longer data than 65,535 bytes the beginning.
pub fn push(bytes: &mut Vec<u8>, code: u16, data: &[u8]) {
    let data = &data[..data.len().min(usize::from(u16::MAX))];
    bytes.extend(code.to_be_bytes());
    bytes.extend((data.len() as u16).to_be_bytes());
    bytes.extend_from_slice(data);
}

/// A message between a client and a server (RFC 8415 clause 8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Its kind, see [`kind`].
    pub kind: u8,
    /// The client's number for the exchange: 24 bits.
    pub transaction: u32,
    /// Its options, each of them whole.
    pub options: &'a [u8],
}

impl Message<'_> {
    /// Reads a message; `None` if it is one of relay agents, too short, or has a torn option.
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

    /// Its bytes.
    pub fn emit(&self) -> Vec<u8> {
        let [_, a, b, c] = self.transaction.to_be_bytes();
        let mut bytes = alloc::vec![self.kind, a, b, c];
        bytes.extend_from_slice(self.options);
        bytes
    }

    /// The addresses of its IAs, with the seconds that each is valid for.
    ///
    /// # Errors
    /// `None` if one of them is torn, or none that a host can have.
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
    /// How many relay agents have passed it on before.
    pub hops: u8,
    /// An address of the client's link.
    pub link: Ipv6Addr,
    /// The address of the client, or of the relay agent before.
    pub peer: Ipv6Addr,
    /// The relay agent's name for the client's port; empty if there is none.
    pub interface: &'a [u8],
    /// What is passed on.
    pub message: &'a [u8],
}

impl Relayed<'_> {
    /// Reads a message; `None` if it is no relay agent's, passes nothing on, or has a torn or
    /// doubled option.
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

    /// Its bytes.
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

/// A DUID made of a MAC (RFC 8415 clause 11.4).
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
