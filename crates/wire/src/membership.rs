//! Group membership: reports from hosts, which the edge reads, and queries, which it sends. The
//! protocols are IGMP versions 1 to 3 (RFC 1112, 2236, 3376) for IPv4, and MLD versions 1 and 2
//! (RFC 2710, 3810) for IPv6.
//!
//! A report lists groups that its sender joins or leaves. A host that lists the sources it accepts
//! becomes a member for all sources and drops the others itself.

use crate::MacAddr;
use crate::constants::ethertype;
use crate::host_frame::contents;
use crate::link::{ETHERNET_BYTES, FRAME_BYTES_MIN};
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// IP protocol 2: IGMP.
const IGMP: u8 = 2;
/// Next header 0: hop-by-hop options, present in every MLD message (RFC 3810 clause 5).
const HOP_BY_HOP: u8 = 0;
/// Next header 58: ICMPv6.
const ICMPV6: u8 = 58;
const IPV6_BYTES: usize = 40;
/// All systems, the destination of general queries (RFC 1112 section 4).
pub const ALL_SYSTEMS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 1);
/// All nodes of a link (RFC 4291 clause 2.7.1).
pub(crate) const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
/// Robustness variable in queries. One report fewer than this may be lost (RFC 3376 section 8.1).
pub(crate) const ROBUSTNESS: u8 = 2;

/// A join or leave of a group, as carried in a membership report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The group.
    pub group: IpAddr,
    /// True if the sender joins (or stays in) the group.
    pub joined: bool,
}

/// A membership message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Membership {
    /// A report from a host.
    Report(Vec<Change>),
    /// A query from a router or switch.
    Query,
    /// A message with a wrong checksum or length, or one that has crossed a router.
    Bad,
}

/// Parses a frame, which may have a priority tag. Returns `None` if it is not an IGMP or MLD
/// message.
pub fn read(frame: &[u8]) -> Option<Membership> {
    match contents(frame)? {
        (ethertype::IPV4, packet) if packet.first()? >> 4 == 4 && *packet.get(9)? == IGMP => {
            Some(igmp(packet).unwrap_or(Membership::Bad))
        }
        (ethertype::IPV6, packet) if packet.first()? >> 4 == 6 => mld(packet),
        _ => None,
    }
}

/// Returns the group in the IP address `ip` of a frame if the frame's MAC address is that group's
/// (RFC 1112 section 6.4, RFC 2464 section 7), or the IPv4 broadcast address if the MAC address is
/// broadcast.
pub fn group_of(destination: MacAddr, ip: Option<IpAddr>) -> Option<IpAddr> {
    if destination == MacAddr::BROADCAST {
        return Some(Ipv4Addr::BROADCAST.into());
    }
    ip.filter(|&ip| ip.is_multicast() && mac_of(ip) == destination)
}

/// Returns the MAC address of a group, or of the IPv4 broadcast address.
pub fn mac_of(group: IpAddr) -> MacAddr {
    match group {
        IpAddr::V4(Ipv4Addr::BROADCAST) => MacAddr::BROADCAST,
        IpAddr::V4(ip) => {
            let [_, b, c, d] = ip.octets();
            MacAddr([1, 0, 0x5e, b & 0x7f, c, d])
        }
        IpAddr::V6(ip) => {
            let [.., a, b, c, d] = ip.octets();
            MacAddr([0x33, 0x33, a, b, c, d])
        }
    }
}

/// Returns whether all hosts belong to this group without reporting it, as they do to broadcast,
/// all systems and all nodes.
pub fn is_everybody(group: IpAddr) -> bool {
    group == IpAddr::V4(Ipv4Addr::BROADCAST)
        || group == IpAddr::V4(ALL_SYSTEMS)
        || group == IpAddr::V6(ALL_NODES)
}

/// Returns whether a report can name this group: not one to which all hosts belong, not one of a
/// single node, and not a solicited-node address, since neighbour discovery ends at the edge.
pub fn is_reportable(group: IpAddr) -> bool {
    group.is_multicast()
        && !is_everybody(group)
        && match group {
            IpAddr::V4(_) => true,
            IpAddr::V6(ip) => {
                let [a, b, c, d, e, f, g, _] = ip.segments();
                let solicited = [a, b, c, d, e, f] == [0xff02, 0, 0, 0, 0, 1] && g >> 8 == 0xff;
                !solicited && a & 0xf > 1
            }
        }
}

fn igmp(packet: &[u8]) -> Option<Membership> {
    let header = usize::from(packet[0] & 0xf) * 4;
    let total = usize::from(be16(packet, 2)?);
    let fragmented = be16(packet, 6)? & 0x3fff != 0;
    let message = packet.get(header..total).filter(|_| header >= 20 && !fragmented)?;
    if message.len() < 8 || folded(sum(0, message)) != 0xffff {
        return None;
    }
    let group = IpAddr::V4(ipv4(message, 4)?);
    match message[0] {
        0x11 => Some(Membership::Query),
        0x12 | 0x16 => Some(Membership::Report([Change { group, joined: true }].into())),
        0x17 => Some(Membership::Report([Change { group, joined: false }].into())),
        0x22 => records(message, 4, |bytes, at| ipv4(bytes, at).map(IpAddr::V4)),
        _ => None,
    }
}

fn mld(packet: &[u8]) -> Option<Membership> {
    let length = usize::from(be16(packet, 4)?);
    let payload = packet.get(IPV6_BYTES..)?;
    if packet[6] != HOP_BY_HOP || *payload.first()? != ICMPV6 {
        return None;
    }
    let start = 8 + usize::from(*payload.get(1)?) * 8;
    let kind = *payload.get(start)?;
    let known = matches!(kind, 130..=132 | 143);
    known.then(|| {
        let message = payload.get(start..length);
        let local = packet[7] == 1;
        let read = message.filter(|_| local).and_then(|message| mld_message(packet, message));
        read.unwrap_or(Membership::Bad)
    })
}

fn mld_message(packet: &[u8], message: &[u8]) -> Option<Membership> {
    if folded(sum(pseudo(&packet[8..IPV6_BYTES], message.len()), message)) != 0xffff {
        return None;
    }
    let of_one = |joined| {
        let change = Change { group: IpAddr::V6(ipv6(message, 8)?), joined };
        Some(Membership::Report([change].into()))
    };
    match message[0] {
        130 => Some(Membership::Query),
        131 => of_one(true),
        132 => of_one(false),
        _ => records(message, 16, |bytes, at| ipv6(bytes, at).map(IpAddr::V6)),
    }
}

/// Parses the records of an IGMP version 3 or MLD version 2 report (RFC 3376 section 4.2, RFC 3810
/// section 5.2): type, length of auxiliary data in words, number of sources, group, sources. Their
/// number is bounded by the length of the frame; Linux fills it with up to 183 records.
fn records(
    message: &[u8],
    address_bytes: usize,
    address: impl Fn(&[u8], usize) -> Option<IpAddr>,
) -> Option<Membership> {
    let count = usize::from(be16(message, 6)?);
    let (mut at, mut changes) = (8, Vec::new());
    for _ in 0..count {
        let kind = *message.get(at)?;
        let words = usize::from(*message.get(at + 1)?);
        let sources = usize::from(be16(message, at + 2)?);
        let group = address(message, at + 4)?;
        at += 4 + address_bytes * (1 + sources) + words * 4;
        if at > message.len() {
            return None;
        }
        let joined = match kind {
            // EXCLUDE: member for all sources except those listed.
            2 | 4 => true,
            // INCLUDE: member for the listed sources only. Without any, the host leaves.
            1 | 3 => sources > 0,
            // ALLOW: more sources are accepted.
            5 => true,
            // BLOCK: sources are removed; membership is unchanged.
            _ => continue,
        };
        changes.push(Change { group, joined });
    }
    Some(Membership::Report(changes))
}

/// Returns an IGMP version 3 query for one group or for all groups (RFC 3376 section 4.1), as a
/// complete frame. Reports are due within `response_tenths` tenths of a second, at most 127, and
/// the next query follows after `interval_s` seconds.
pub fn igmp_query(
    from: (MacAddr, Ipv4Addr),
    group: Option<Ipv4Addr>,
    (response_tenths, interval_s): (u8, u64),
) -> Vec<u8> {
    let to = group.unwrap_or(ALL_SYSTEMS);
    // Header length 6 words, with the router alert option; TTL 1.
    let mut packet = alloc::vec![
        0x46, 0xc0, 0, 36, 0, 0, 0, 0, 1, IGMP, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x94, 4, 0, 0
    ];
    packet[12..16].copy_from_slice(&from.1.octets());
    packet[16..20].copy_from_slice(&to.octets());
    let check = !folded(sum(0, &packet));
    packet[10..12].copy_from_slice(&check.to_be_bytes());
    let mut message = [0; 12];
    message[0] = 0x11;
    message[1] = response_tenths.min(127);
    message[4..8].copy_from_slice(&group.unwrap_or(Ipv4Addr::UNSPECIFIED).octets());
    (message[8], message[9]) = (ROBUSTNESS, code(interval_s));
    let check = !folded(sum(0, &message));
    message[2..4].copy_from_slice(&check.to_be_bytes());
    packet.extend_from_slice(&message);
    framed(mac_of(to.into()), from.0, ethertype::IPV4, &packet)
}

/// Returns an MLD version 2 query (RFC 3810 section 5.1), sent from the link-local address of the
/// MAC.
pub fn mld_query(
    from: MacAddr,
    group: Option<Ipv6Addr>,
    (response_tenths, interval_s): (u8, u64),
) -> Vec<u8> {
    let to = group.unwrap_or(ALL_NODES);
    let mut packet = alloc::vec![0x60, 0, 0, 0, 0, 36, HOP_BY_HOP, 1];
    let [a, b, c, d, e, f] = from.0;
    packet.extend_from_slice(&[0xfe, 0x80, 0, 0, 0, 0, 0, 0, a ^ 2, b, c, 0xff, 0xfe, d, e, f]);
    packet.extend_from_slice(&to.octets());
    // Router alert, and two bytes of padding.
    packet.extend_from_slice(&[ICMPV6, 0, 5, 2, 0, 0, 1, 0]);
    let mut message = [0; 28];
    message[0] = 130;
    let millis = u16::from(response_tenths.min(127)) * 100;
    message[4..6].copy_from_slice(&millis.to_be_bytes());
    message[8..24].copy_from_slice(&group.unwrap_or(Ipv6Addr::UNSPECIFIED).octets());
    (message[24], message[25]) = (ROBUSTNESS, code(interval_s));
    let check = !folded(sum(pseudo(&packet[8..IPV6_BYTES], message.len()), &message));
    message[2..4].copy_from_slice(&check.to_be_bytes());
    packet.extend_from_slice(&message);
    framed(mac_of(to.into()), from, ethertype::IPV6, &packet)
}

fn framed(to: MacAddr, from: MacAddr, kind: u16, packet: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(ETHERNET_BYTES + packet.len());
    frame.extend_from_slice(&to.0);
    frame.extend_from_slice(&from.0);
    frame.extend_from_slice(&kind.to_be_bytes());
    frame.extend_from_slice(packet);
    if frame.len() < FRAME_BYTES_MIN {
        frame.resize(FRAME_BYTES_MIN, 0);
    }
    frame
}

/// Encodes the querier's interval in seconds. Values below 128 are unchanged. Greater values have
/// three bits of exponent and four of mantissa (RFC 3376 section 4.1.7). They are rounded down, and
/// are at most 31,744.
fn code(interval_s: u64) -> u8 {
    if interval_s < 128 {
        return interval_s as u8;
    }
    let exponent = (interval_s.ilog2() - 7).min(7);
    let mantissa = (interval_s >> (exponent + 3)).min(31) as u8 & 0xf;
    0x80 | (exponent as u8) << 4 | mantissa
}

/// Returns the sum of the ICMPv6 pseudo-header, which consists of both addresses, the length and
/// the protocol (RFC 8200 section 8.1).
fn pseudo(addresses: &[u8], length: usize) -> u32 {
    sum(length as u32 + u32::from(ICMPV6), addresses)
}

/// Adds up words of 16 bits (RFC 1071).
fn sum(start: u32, bytes: &[u8]) -> u32 {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
    start + bytes.chunks(2).map(word).sum::<u32>()
}

fn folded(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn ipv4(bytes: &[u8], at: usize) -> Option<Ipv4Addr> {
    bytes.get(at..)?.first_chunk().map(|octets: &[u8; 4]| Ipv4Addr::from(*octets))
}

fn ipv6(bytes: &[u8], at: usize) -> Option<Ipv6Addr> {
    bytes.get(at..)?.first_chunk().map(|octets: &[u8; 16]| Ipv6Addr::from(*octets))
}

/// Reports from hosts, also for tests in other crates.
pub mod reports {
    use super::*;

    /// Returns an IGMP version 2 report that joins or leaves a group.
    pub fn igmp_v2(from: (MacAddr, Ipv4Addr), group: Ipv4Addr, joined: bool) -> Vec<u8> {
        let to = if joined { group } else { Ipv4Addr::new(224, 0, 0, 2) };
        let mut message = [if joined { 0x16 } else { 0x17 }, 0, 0, 0, 0, 0, 0, 0];
        message[4..8].copy_from_slice(&group.octets());
        let check = !folded(sum(0, &message));
        message[2..4].copy_from_slice(&check.to_be_bytes());
        let mut packet = alloc::vec![0x45, 0, 0, 28, 0, 0, 0, 0, 1, IGMP, 0, 0];
        packet.extend_from_slice(&from.1.octets());
        packet.extend_from_slice(&to.octets());
        packet.extend_from_slice(&message);
        framed(mac_of(to.into()), from.0, ethertype::IPV4, &packet)
    }

    /// Returns an IGMP version 3 report with these groups, each in a record of this type with
    /// these sources.
    #[cfg(test)]
    pub(crate) fn igmp_v3(
        from: (MacAddr, Ipv4Addr),
        (kind, groups): (u8, &[Ipv4Addr]),
        sources: &[Ipv4Addr],
    ) -> Vec<u8> {
        let mut message = alloc::vec![0x22, 0, 0, 0, 0, 0, 0, groups.len() as u8];
        for group in groups {
            message.extend_from_slice(&[kind, 0, 0, sources.len() as u8]);
            message.extend_from_slice(&group.octets());
            sources.iter().for_each(|source| message.extend_from_slice(&source.octets()));
        }
        let check = !folded(sum(0, &message));
        message[2..4].copy_from_slice(&check.to_be_bytes());
        let to = Ipv4Addr::new(224, 0, 0, 22);
        let [high, low] = ((20 + message.len()) as u16).to_be_bytes();
        let mut packet = alloc::vec![0x45, 0, high, low, 0, 0, 0, 0, 1, IGMP, 0, 0];
        packet.extend_from_slice(&from.1.octets());
        packet.extend_from_slice(&to.octets());
        packet.extend_from_slice(&message);
        framed(mac_of(to.into()), from.0, ethertype::IPV4, &packet)
    }

    /// Returns an MLD version 2 report with one record of this type and no source.
    pub fn mld_v2(from: (MacAddr, Ipv6Addr), kind: u8, group: Ipv6Addr) -> Vec<u8> {
        let to = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x16);
        let mut message = alloc::vec![143, 0, 0, 0, 0, 0, 0, 1, kind, 0, 0, 0];
        message.extend_from_slice(&group.octets());
        let mut packet = alloc::vec![0x60, 0, 0, 0, 0, 36, HOP_BY_HOP, 1];
        packet.extend_from_slice(&from.1.octets());
        packet.extend_from_slice(&to.octets());
        let check = !folded(sum(pseudo(&packet[8..IPV6_BYTES], message.len()), &message));
        message[2..4].copy_from_slice(&check.to_be_bytes());
        packet.extend_from_slice(&[ICMPV6, 0, 5, 2, 0, 0, 1, 0]);
        packet.extend_from_slice(&message);
        framed(mac_of(to.into()), from.0, ethertype::IPV6, &packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: MacAddr = MacAddr([2, 0, 0, 0, 0, 7]);
    const IP: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 7);
    const GROUP: Ipv4Addr = Ipv4Addr::new(239, 1, 2, 3);

    fn link_local() -> Ipv6Addr {
        "fe80::7".parse().unwrap()
    }

    fn one(group: IpAddr, joined: bool) -> Option<Membership> {
        Some(Membership::Report([Change { group, joined }].into()))
    }

    #[test]
    fn reports_of_all_versions_join_and_leave() {
        for joined in [true, false] {
            let frame = reports::igmp_v2((HOST, IP), GROUP, joined);
            assert_eq!(read(&frame), one(GROUP.into(), joined));
        }
        let v3 =
            |kind, sources: &[_]| read(&reports::igmp_v3((HOST, IP), (kind, &[GROUP]), sources));
        for kind in [2, 4] {
            assert_eq!(v3(kind, &[]), one(GROUP.into(), true));
        }
        for kind in [1, 3] {
            assert_eq!(v3(kind, &[]), one(GROUP.into(), false));
            assert_eq!(v3(kind, &[IP]), one(GROUP.into(), true));
        }
        assert_eq!(v3(5, &[IP]), one(GROUP.into(), true));
        assert_eq!(v3(6, &[IP]), Some(Membership::Report(Vec::new())));
        let group: Ipv6Addr = "ff02::fb".parse().unwrap();
        for (kind, joined) in [(4, true), (3, false)] {
            let frame = reports::mld_v2((HOST, link_local()), kind, group);
            assert_eq!(read(&frame), one(group.into(), joined));
        }
    }

    #[test]
    fn all_records_that_a_frame_holds_are_read() {
        let groups: Vec<Ipv4Addr> = (0..183).map(|n| Ipv4Addr::new(239, 0, 1, n)).collect();
        let changes = |group: &Ipv4Addr| Change { group: (*group).into(), joined: true };
        let expected: Vec<Change> = groups.iter().map(changes).collect();
        let report = reports::igmp_v3((HOST, IP), (2, &groups), &[]);
        assert_eq!(read(&report), Some(Membership::Report(expected)));
        let mut message = alloc::vec![143, 0, 0, 0, 0, 0, 0, 70];
        for n in 0..70 {
            message.extend([2, 0, 0, 0, 0xff, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, n]);
        }
        let read = records(&message, 16, |bytes, at| ipv6(bytes, at).map(IpAddr::V6));
        assert!(matches!(read, Some(Membership::Report(changes)) if changes.len() == 70));
    }

    #[test]
    fn a_report_that_is_cut_or_altered_is_bad_and_never_a_panic() {
        let frames = [
            reports::igmp_v2((HOST, IP), GROUP, true),
            reports::igmp_v3((HOST, IP), (4, &[GROUP]), &[IP]),
            reports::mld_v2((HOST, link_local()), 4, "ff02::fb".parse().unwrap()),
        ];
        for frame in frames {
            for length in 0..frame.len() {
                let read = read(&frame[..length]);
                assert!(!matches!(read, Some(Membership::Report(_))) || length >= 42, "{length}");
            }
            for at in 14..frame.len() {
                let mut other = frame.clone();
                other[at] ^= 0x41;
                read(&other);
            }
            let mut altered = frame.clone();
            let last = if frame[12] == 8 { 41 } else { 80 };
            altered[last] ^= 1;
            assert_eq!(read(&altered), Some(Membership::Bad));
        }
    }

    #[test]
    fn queries_are_read_as_such_and_their_checksums_hold() {
        let general = igmp_query((HOST, IP), None, (100, 125));
        assert_eq!(general[..6], [1, 0, 0x5e, 0, 0, 1]);
        assert_eq!(read(&general), Some(Membership::Query));
        assert_eq!(folded(sum(0, &general[14..38])), 0xffff, "of the header");
        let special = igmp_query((HOST, IP), Some(GROUP), (10, 125));
        assert_eq!((special[5], read(&special)), (3, Some(Membership::Query)));
        for group in [None, Some("ff02::fb".parse().unwrap())] {
            let frame = mld_query(HOST, group, (100, 125));
            assert_eq!(read(&frame), Some(Membership::Query));
        }
        assert_eq!([127, 128, 255, 256, 31_744, 100_000].map(code), [127, 128, 143, 144, 255, 255]);
    }

    #[test]
    fn groups_have_their_addresses_and_everybody_is_no_group_to_join() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        assert_eq!(mac_of(ip("239.129.2.3")), MacAddr([1, 0, 0x5e, 1, 2, 3]));
        assert_eq!(mac_of(ip("ff02::1:3")), MacAddr([0x33, 0x33, 0, 1, 0, 3]));
        let group = ip("224.0.0.251");
        assert_eq!(group_of(mac_of(group), Some(group)), Some(group));
        assert_eq!(group_of(mac_of(group), Some(ip("10.0.0.1"))), None);
        assert_eq!(group_of(mac_of(ip("224.0.0.252")), Some(group)), None);
        assert_eq!(group_of(MacAddr::BROADCAST, None), Some(ip("255.255.255.255")));
        for everybody in ["224.0.0.1", "ff02::1", "255.255.255.255"] {
            assert!(is_everybody(ip(everybody)) && !is_reportable(ip(everybody)));
        }
        for not in ["10.0.0.1", "ff01::fb", "ff02::1:ff00:1"] {
            assert!(!is_reportable(ip(not)), "{not}");
        }
        for group in ["224.0.0.251", "239.1.2.3", "ff02::fb", "ff05::2", "ff02::1:3"] {
            assert!(is_reportable(ip(group)), "{group}");
        }
    }
}
