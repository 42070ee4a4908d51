//! Rewrites the addresses of a packet, with incremental checksum updates (RFC 1624). It needs only
//! the head, so the payload may stay in the switch.

use crate::packet::{Ipv4, UDP, updated, word};
use axon_wire::MacAddr;
use core::net::Ipv4Addr;

/// New fields of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rewrite {
    /// Layer 2 source and destination addresses.
    pub macs: (MacAddr, MacAddr),
    /// IPv4 source and destination addresses.
    pub addresses: (Ipv4Addr, Ipv4Addr),
    /// Source and destination ports. `None` leaves them unchanged.
    pub ports: Option<(u16, u16)>,
}

/// Writes both MAC addresses into a frame.
pub(super) fn set_macs(head: &mut [u8], (source, destination): (MacAddr, MacAddr)) {
    head[..6].copy_from_slice(&destination.0);
    head[6..12].copy_from_slice(&source.0);
}

/// Decrements the TTL (RFC 1812 section 5.3.1). Returns whether the TTL was above 1. If not, it is
/// unchanged.
pub(super) fn decrement_ttl(head: &mut [u8], ip: &Ipv4) -> bool {
    if ip.ttl <= 1 {
        return false;
    }
    // TTL and protocol are in the same checksum word.
    set(head, ip.at + 8, &[ip.ttl - 1, ip.protocol], &[ip.at + 10]);
    true
}

/// Rewrites a packet and decrements its TTL. Returns `false` if the packet must be dropped, because
/// its TTL is 1 or less or its transport checksum is beyond its head.
pub(super) fn apply(head: &mut [u8], ip: &Ipv4, rewrite: &Rewrite) -> bool {
    let checksum = ip.checksum_at();
    if checksum.is_some_and(|at| word(head, at).is_none()) || !decrement_ttl(head, ip) {
        return false;
    }
    set_macs(head, rewrite.macs);
    // A UDP datagram that has no checksum gets none.
    let transport = checksum.filter(|&at| ip.protocol != UDP || word(head, at) != Some(0));
    let both = [ip.at + 10, transport.unwrap_or(0)];
    let checksums = if transport.is_some() { &both[..] } else { &both[..1] };
    set(head, ip.at + 12, &rewrite.addresses.0.octets(), checksums);
    set(head, ip.at + 16, &rewrite.addresses.1.octets(), checksums);
    if let Some((source, destination)) = rewrite.ports {
        let transport = &checksums[1..];
        set(head, ip.payload_at, &source.to_be_bytes(), transport);
        set(head, ip.payload_at + 2, &destination.to_be_bytes(), transport);
    }
    if let (UDP, Some(at)) = (ip.protocol, transport)
        && word(head, at) == Some(0)
    {
        // Zero would mean that there is no checksum (RFC 768).
        head[at..at + 2].fill(0xff);
    }
    true
}

/// Writes `new` at `at` and updates the checksums at these offsets.
fn set(head: &mut [u8], at: usize, new: &[u8], checksums: &[usize]) {
    let mut old = [0; 4];
    let old = &mut old[..new.len()];
    old.copy_from_slice(&head[at..at + new.len()]);
    head[at..at + new.len()].copy_from_slice(new);
    for &checksum in checksums {
        let before = word(head, checksum).unwrap_or(0);
        let after = updated(before, old, new);
        head[checksum..checksum + 2].copy_from_slice(&after.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Ends, TCP, UDP_BYTES, ipv4, pseudo, udp};
    use alloc::vec::Vec;
    use axon_node::random::Random;

    fn ends(random: &mut Random) -> Ends {
        let mut number = || random.next_u32();
        let mac = |last: u32| MacAddr([2, 0, 0, 0, 0, last as u8]);
        Ends {
            macs: (mac(number()), mac(number())),
            addresses: (number().into(), number().into()),
            ports: (number() as u16, number() as u16),
        }
    }

    /// Returns a TCP segment with a valid checksum.
    fn tcp(ends: &Ends, payload: &[u8]) -> Vec<u8> {
        let mut segment = [0; 20];
        segment[..2].copy_from_slice(&ends.ports.0.to_be_bytes());
        segment[2..4].copy_from_slice(&ends.ports.1.to_be_bytes());
        segment[12] = 5 << 4;
        let sum = !pseudo(&[&segment, payload].concat(), ends.addresses, TCP);
        segment[16..18].copy_from_slice(&sum.to_be_bytes());
        ipv4(ends, TCP, &[&segment, payload])
    }

    #[test]
    fn a_rewritten_packet_is_the_one_that_would_have_been_sent() {
        let mut random = Random::new(5);
        for round in 0..5_000 {
            let (old, new) = (ends(&mut random), ends(&mut random));
            let payload: Vec<u8> = (0..random.next_u32() % 90).map(|byte| byte as u8).collect();
            let make = |ends: &Ends| match round % 2 {
                0 => udp(ends, &[&payload]),
                _ => tcp(ends, &payload),
            };
            let mut frame = make(&old);
            let ip = Ipv4::parse(&frame).unwrap();
            let Ends { macs, addresses, ports } = new;
            // Here, the head ends directly after the headers.
            let here = ip.checksum_at().unwrap() + 2;
            assert!(apply(
                &mut frame[..here],
                &ip,
                &Rewrite { macs, addresses, ports: Some(ports) }
            ));
            let mut expected = make(&new);
            let ip = Ipv4::parse(&expected).unwrap();
            assert!(decrement_ttl(&mut expected, &ip));
            assert_eq!(frame, expected, "round {round}");
            let ip = Ipv4::parse(&frame).unwrap();
            assert_eq!(ip.ttl, 63);
            let segment = &frame[ip.payload_at..ip.end];
            assert_eq!(pseudo(segment, addresses, ip.protocol), u16::MAX);
        }
    }

    #[test]
    fn a_datagram_without_a_checksum_gets_none_and_a_packet_at_its_end_is_left_alone() {
        let mut random = Random::new(6);
        let (old, new) = (ends(&mut random), ends(&mut random));
        let mut frame = udp(&old, &[b"x"]);
        frame[34 + 6..34 + UDP_BYTES].fill(0);
        let ip = Ipv4::parse(&frame).unwrap();
        let Ends { macs, addresses, ports } = new;
        let rewrite = Rewrite { macs, addresses, ports: Some(ports) };
        assert!(apply(&mut frame, &ip, &rewrite));
        assert_eq!(frame[40..42], [0, 0]);
        assert!(Ipv4::parse(&frame).is_some());

        let mut last = udp(&old, &[b"x"]);
        let ip = Ipv4 { ttl: 1, ..Ipv4::parse(&last).unwrap() };
        let before = last.clone();
        assert!(!apply(&mut last, &ip, &rewrite));
        assert_eq!(last, before);
        let ip = Ipv4::parse(&last).unwrap();
        assert!(!apply(&mut last[..41], &ip, &rewrite), "the checksum is behind the head");
        assert_eq!(last, before);
    }
}
