//! Changes that the relay agent makes to DHCP messages between a client and an external server (RFC
//! 2131, RFC 3046, and for the server identifier as in RFC 5107).
//!
//! On the way to the server, a message gets the relay's address, one more hop, and an option with
//! the client's port. On the way to the client, these are removed. The server identifier is that of
//! the server on one side and that of the relay on the other, so that a client also renews its
//! lease through the relay. Nothing else is changed, including unknown options.

use super::packet::{Request, address, message_of};
use alloc::vec;
use alloc::vec::Vec;
use axon_wire::MacAddr;
use core::net::Ipv4Addr;

/// Size of a message before its options, in bytes, including the magic cookie.
const FIXED_BYTES: usize = 240;
/// Size of a BOOTP message (RFC 951 §3). Some servers refuse shorter ones.
const MESSAGE_BYTES_MIN: usize = 300;
/// Maximum size of a message in an Ethernet frame with 1,500 bytes of IP packet.
const MESSAGE_BYTES_MAX: usize = 1_472;
/// Number of hops at which a relay discards a message (RFC 1542 §4.1.1).
const HOPS_MAX: u8 = 16;
const HOPS_AT: usize = 3;
const YIADDR_AT: usize = 16;
const GIADDR_AT: usize = 24;
const CHADDR_AT: usize = 28;
const REQUEST: u8 = 1;
const REPLY: u8 = 2;

const PAD: u8 = 0;
const END: u8 = 255;
const OPTION_REQUESTED: u8 = 50;
const OPTION_LEASE: u8 = 51;
const OPTION_TYPE: u8 = 53;
const OPTION_SERVER: u8 = 54;
const OPTION_CLIENT: u8 = 61;
const OPTION_RELAY: u8 = 82;
const CIRCUIT: u8 = 1;
const REMOTE: u8 = 2;
const TYPE_DECLINE: u8 = 4;
const TYPE_RELEASE: u8 = 7;
const CIADDR_AT: usize = 12;

/// Returns the options in a message, up to the end option, each with its kind and data.
///
/// # Errors
/// If an option exceeds the message, the list ends with `None`.
fn options(message: &[u8]) -> impl Iterator<Item = Option<(u8, &[u8])>> {
    let mut rest = message.get(FIXED_BYTES..).unwrap_or_default();
    core::iter::from_fn(move || {
        while let [PAD, after @ ..] = rest {
            rest = after;
        }
        let (kind, length, after) = match *rest {
            [] | [END, ..] => return None,
            [kind, length, ref after @ ..] => (kind, usize::from(length), after),
            [_] => (PAD, usize::MAX, &[][..]),
        };
        let data = after.get(..length);
        rest = after.get(length..).unwrap_or_default();
        Some(data.map(|data| (kind, data)))
    })
}

fn push(message: &mut Vec<u8>, kind: u8, data: &[u8]) {
    let data = &data[..data.len().min(255)];
    message.extend([kind, data.len() as u8]);
    message.extend_from_slice(data);
}

fn finish(mut message: Vec<u8>) -> Option<Vec<u8>> {
    message.push(END);
    message.resize(message.len().max(MESSAGE_BYTES_MIN), PAD);
    (message.len() <= MESSAGE_BYTES_MAX).then_some(message)
}

/// Builds the forwarded message. The fixed part is unchanged, the server identifier is replaced,
/// and option 82 is left out.
fn passed_on(message: &[u8], server: Ipv4Addr) -> Option<Vec<u8>> {
    let mut passed = message.get(..FIXED_BYTES)?.to_vec();
    for option in options(message) {
        match option? {
            (OPTION_RELAY, _) => {}
            (OPTION_SERVER, _) => push(&mut passed, OPTION_SERVER, &server.octets()),
            (kind, data) => push(&mut passed, kind, data),
        }
    }
    Some(passed)
}

/// Relay and server addresses, and the client's location.
#[derive(Clone, Copy, Debug)]
pub(super) struct Via<'a> {
    /// Address of the relay.
    pub(super) relay: Ipv4Addr,
    /// Address of the server.
    pub(super) server: Ipv4Addr,
    /// Name of the client's port and its switch.
    pub(super) circuit: &'a str,
    pub(super) remote: &'a str,
}

impl Via<'_> {
    fn information(&self) -> Vec<u8> {
        let mut data = Vec::new();
        push(&mut data, CIRCUIT, self.circuit.as_bytes());
        push(&mut data, REMOTE, self.remote.as_bytes());
        data
    }
}

/// Builds the message for the server from a client's message. Returns `None` if the client's
/// message already has relay information, which no client may send (RFC 3046 §2.1), if it is
/// malformed, or if it has too many bytes or hops.
pub(super) fn send_to_server(message: &[u8], via: &Via<'_>) -> Option<Vec<u8>> {
    let has_information =
        |option: Option<(u8, &[u8])>| option.is_none_or(|(kind, _)| kind == OPTION_RELAY);
    if *message.get(HOPS_AT)? >= HOPS_MAX || options(message).any(has_information) {
        return None;
    }
    let mut passed = passed_on(message, via.server)?;
    passed[HOPS_AT] += 1;
    passed[GIADDR_AT..GIADDR_AT + 4].copy_from_slice(&via.relay.octets());
    push(&mut passed, OPTION_RELAY, &via.information());
    finish(passed)
}

/// Builds a DHCPDECLINE in the name of a client (RFC 2131 §4.4.4), after which the server must not
/// lease the address again.
pub(super) fn decline(by: &Request, ip: Ipv4Addr, via: &Via<'_>) -> Option<Vec<u8>> {
    in_the_name_of(by, TYPE_DECLINE, (Ipv4Addr::UNSPECIFIED, Some(ip)), via)
}

/// Builds a DHCPRELEASE in the name of a client (RFC 2131 §4.4.6), after which the server may lease
/// the address to another client.
pub(super) fn release(by: &Request, ip: Ipv4Addr, via: &Via<'_>) -> Option<Vec<u8>> {
    in_the_name_of(by, TYPE_RELEASE, (ip, None), via)
}

fn in_the_name_of(
    by: &Request,
    kind: u8,
    (ciaddr, requested): (Ipv4Addr, Option<Ipv4Addr>),
    via: &Via<'_>,
) -> Option<Vec<u8>> {
    let mut message = vec![0; FIXED_BYTES];
    message[..4].copy_from_slice(&[REQUEST, 1, 6, 1]);
    message[4..8].copy_from_slice(&by.xid.to_be_bytes());
    message[CIADDR_AT..CIADDR_AT + 4].copy_from_slice(&ciaddr.octets());
    message[GIADDR_AT..GIADDR_AT + 4].copy_from_slice(&via.relay.octets());
    message[CHADDR_AT..CHADDR_AT + 6].copy_from_slice(&by.mac.0);
    message[FIXED_BYTES - 4..].copy_from_slice(&[0x63, 0x82, 0x53, 0x63]);
    push(&mut message, OPTION_TYPE, &[kind]);
    if let Some(ip) = requested {
        push(&mut message, OPTION_REQUESTED, &ip.octets());
    }
    push(&mut message, OPTION_SERVER, &via.server.octets());
    if !by.client_id.is_empty() {
        push(&mut message, OPTION_CLIENT, &by.client_id);
    }
    push(&mut message, OPTION_RELAY, &via.information());
    finish(message)
}

/// Answer from the server to the relay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    /// MAC and IP addresses of the sender.
    pub(super) from: (MacAddr, Ipv4Addr),
    /// Hardware address of the client, and transaction ID.
    pub(super) mac: MacAddr,
    pub(super) xid: u32,
    /// Message type (option 53).
    pub(super) kind: u8,
    /// Assigned address, or 0.0.0.0 if there is none.
    pub(super) ip: Ipv4Addr,
    /// Duration of the lease in seconds.
    pub(super) lease_seconds: Option<u32>,
    message: Vec<u8>,
}

impl Answer {
    /// Parses a frame sent to the relay's address. Returns `None` if the message is not from a
    /// server or is for another relay.
    pub(super) fn parse(frame: &[u8], relay: Ipv4Addr) -> Option<Answer> {
        let mac = MacAddr::source_of(frame)?;
        let (ip, message) = message_of(frame)?;
        let fixed = message.get(..FIXED_BYTES)?;
        let for_us = address(&fixed[GIADDR_AT..GIADDR_AT + 4]) == Some(relay);
        let cookie = fixed[FIXED_BYTES - 4..] == [0x63, 0x82, 0x53, 0x63];
        if fixed[..3] != [REPLY, 1, 6] || !for_us || !cookie {
            return None;
        }
        let mut answer = Answer {
            from: (mac, ip),
            mac: MacAddr(fixed[CHADDR_AT..CHADDR_AT + 6].try_into().ok()?),
            xid: u32::from_be_bytes(fixed[4..8].try_into().ok()?),
            kind: 0,
            ip: address(&fixed[YIADDR_AT..YIADDR_AT + 4])?,
            lease_seconds: None,
            message: message.to_vec(),
        };
        for option in options(message) {
            match option? {
                (OPTION_TYPE, &[kind]) => answer.kind = kind,
                (OPTION_LEASE, data) => {
                    answer.lease_seconds = data.try_into().ok().map(u32::from_be_bytes);
                }
                _ => {}
            }
        }
        Some(answer)
    }

    /// Builds the relay's message for the client.
    pub(super) fn to_client(&self, relay: Ipv4Addr) -> Option<Vec<u8>> {
        let mut passed = passed_on(&self.message, relay)?;
        passed[HOPS_AT] = 0;
        passed[GIADDR_AT..GIADDR_AT + 4].fill(0);
        finish(passed)
    }
}

#[cfg(test)]
mod tests {
    use super::super::packet::datagram;
    use super::*;
    use proptest::prelude::*;

    const RELAY: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 9);
    const VIA: Via<'_> = Via { relay: RELAY, server: SERVER, circuit: "s1-p2", remote: "s1" };

    fn message(op: u8, options: &[u8]) -> Vec<u8> {
        let mut message = vec![0; FIXED_BYTES];
        message[..3].copy_from_slice(&[op, 1, 6]);
        message[236..].copy_from_slice(&[0x63, 0x82, 0x53, 0x63]);
        message.extend_from_slice(options);
        message
    }

    fn found(message: &[u8], wanted: u8) -> Option<&[u8]> {
        options(message).flatten().find(|(kind, _)| *kind == wanted).map(|(_, data)| data)
    }

    #[test]
    fn a_request_gets_relay_address_and_port_and_loses_them_in_the_answer() {
        let request = message(REQUEST, &[53, 1, 3, 0, 54, 4, 10, 0, 0, 1, 12, 1, b'x', 255]);
        let sent = send_to_server(&request, &VIA).unwrap();
        assert_eq!((sent.len(), sent[HOPS_AT], &sent[24..28]), (300, 1, &RELAY.octets()[..]));
        assert_eq!(found(&sent, 54), Some(&SERVER.octets()[..]));
        assert_eq!(found(&sent, 82), Some(&b"\x01\x05s1-p2\x02\x02s1"[..]));
        assert_eq!(found(&sent, 12), Some(&b"x"[..]));

        let mut reply = sent;
        reply[0] = REPLY;
        let ends = ((MacAddr([2, 0, 0, 0, 0, 9]), SERVER), (MacAddr([2; 6]), RELAY));
        let frame = datagram(ends.0, ends.1, 67, &reply);
        let answer = Answer::parse(&frame, RELAY).unwrap();
        assert_eq!((answer.from, answer.kind), (ends.0, 3));
        let returned = answer.to_client(RELAY).unwrap();
        assert_eq!((returned[HOPS_AT], &returned[24..28]), (0, &[0; 4][..]));
        assert_eq!((found(&returned, 82), found(&returned, 54)), (None, Some(&RELAY.octets()[..])));
        assert_eq!(Answer::parse(&frame, SERVER), None, "for another relay");
    }

    #[test]
    fn what_pretends_to_be_relayed_or_is_torn_is_not_passed_on() {
        let forged = message(REQUEST, &[53, 1, 1, 82, 3, 1, 1, b'x', 255]);
        assert_eq!(send_to_server(&forged, &VIA), None);
        let torn = message(REQUEST, &[53, 1, 1, 61, 9, 1, 1]);
        assert_eq!(send_to_server(&torn, &VIA), None);
        let mut far = message(REQUEST, &[53, 1, 1, 255]);
        far[HOPS_AT] = HOPS_MAX;
        assert_eq!(send_to_server(&far, &VIA), None);
        let long = [&[53, 1, 1][..], &[43; 1_300].map(|_| 0)[..]].concat();
        assert!(send_to_server(&message(REQUEST, &long), &VIA).is_some(), "pads do not count");
    }

    proptest! {
        #[test]
        fn whatever_comes_nothing_breaks_and_no_relay_information_reaches_a_client(
            op in 0_u8..4,
            tail in proptest::collection::vec(any::<u8>(), 0..400),
        ) {
            let bytes = message(op, &tail);
            if let Some(sent) = send_to_server(&bytes, &VIA) {
                let information = options(&sent).flatten().filter(|(kind, _)| *kind == 82);
                prop_assert_eq!(information.count(), 1);
                prop_assert!(sent.len() <= MESSAGE_BYTES_MAX);
            }
            let mut reply = bytes;
            reply[GIADDR_AT..GIADDR_AT + 4].copy_from_slice(&RELAY.octets());
            let ends = ((MacAddr([2, 0, 0, 0, 0, 9]), SERVER), (MacAddr([2; 6]), RELAY));
            let frame = datagram(ends.0, ends.1, 67, &reply);
            if let Some(answer) = Answer::parse(&frame, RELAY) {
                prop_assert_eq!(op, REPLY);
                let returned = answer.to_client(RELAY).unwrap();
                prop_assert_eq!(found(&returned, 82), None);
            }
        }
    }
}
