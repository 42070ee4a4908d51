//! IPv6 neighbour discovery at the edge (RFC 4861, RFC 4862). It is handled like ARP for IPv4: it
//! is terminated here, and the controller has the owner of each address.
//!
//! A solicitation is a request for the target's MAC address. It is answered by an advertisement for
//! the target (solicited, override), at once for an existing flow and otherwise after the four
//! phases. A unicast solicitation, by which a host verifies a neighbour, is handled like a
//! multicast one; with a route it does not reach the edge and the neighbour answers itself. An
//! advertisement is a reply. The sender's address is learned from both.
//!
//! **Duplicate address detection.** A solicitation without source address queries whether the
//! target is free. If another host has it and answers, an advertisement goes to all nodes of the
//! port, and the querying host does not use the address: the first holder keeps it. Without an
//! answer in time, the querying host gets the address (`claim`). Two hosts that query for one
//! address within that time both get it, as on a bridged Ethernet that loses their frames.
//!
//! An edge's answer has the router flag if the address is that of the router which the edge
//! advertises: hosts drop a router without it (RFC 4861 clause 7.2.5). A message with a MAC address
//! other than its frame's is refused, because no host may answer for others.

use super::answers::{AddressMessage, Content, Requester};
use super::settings::Settings;
use axon_node::Drop;
use axon_wire::MacAddr;
use axon_wire::nd::Nd;
use core::net::Ipv6Addr;

/// Reads a neighbour message of host `from`.
///
/// # Errors
/// The message is in another host's name.
pub(super) fn read(
    settings: &Settings,
    from: MacAddr,
    message: Nd,
) -> Result<AddressMessage, Drop> {
    let own = settings.link_local();
    let (claimed, ip, content) = match message {
        Nd::Solicitation { source, source_mac, target } => {
            let content = match source == Some(target) {
                true => Content::Announcement,
                false => Content::Request(target.into()),
            };
            (source_mac, source.unwrap_or(Ipv6Addr::UNSPECIFIED), content)
        }
        Nd::Advertisement { target, target_mac } => (target_mac, target, Content::Reply),
    };
    if claimed.is_some_and(|mac| mac != from) || ip == own {
        return Err(Drop::Refused);
    }
    Ok(AddressMessage { sender: Requester { mac: from, ip: ip.into() }, content })
}

#[cfg(test)]
mod tests {
    use super::super::settings::Advertise;
    use super::super::testing::*;
    use super::*;
    use crate::effect::Effect;
    use alloc::vec::Vec;
    use axon_wire::PortNo;
    use axon_wire::Span;
    use axon_wire::link::ETHERNET_BYTES;
    use axon_wire::message::Target;
    use axon_wire::message::{ArpTarget, Item, Message, Seek};
    use axon_wire::nd;
    use core::net::IpAddr;

    fn ip6(host: u8) -> Ipv6Addr {
        Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, host.into())
    }

    fn solicitation(from: u8, target: u8) -> Vec<u8> {
        nd::solicitation((mac(from), ip6(from)), None, ip6(target))
    }

    /// Builds a duplicate address detection query. The option with the MAC address is removed.
    fn detection(from: u8, target: u8) -> Vec<u8> {
        use smoltcp::phy::ChecksumCapabilities;
        use smoltcp::wire::{Icmpv6Packet, Icmpv6Repr, NdiscRepr};
        let mut frame = solicitation(from, target);
        frame.truncate(frame.len() - 8);
        frame[19] = 24;
        frame[22..38].fill(0);
        let message = NdiscRepr::NeighborSolicit { target_addr: ip6(target), lladdr: None };
        let (any, group) = (Ipv6Addr::UNSPECIFIED, nd::solicited_node(ip6(target)));
        let mut packet = Icmpv6Packet::new_unchecked(&mut frame[ETHERNET_BYTES + 40..]);
        let checksums = ChecksumCapabilities::default();
        Icmpv6Repr::Ndisc(message).emit(&any, &group, &mut packet, &checksums);
        frame
    }

    /// Returns the neighbour messages among these effects: port, destination MAC address, and
    /// content.
    fn messages(effects: &[Effect]) -> Vec<(PortNo, MacAddr, Nd)> {
        let message = |effect: &Effect| match effect {
            Effect::Host { port, frame } => {
                let read = nd::parse(&frame[ETHERNET_BYTES..]).flatten()?;
                Some((*port, MacAddr::destination_of(frame)?, read))
            }
            _ => None,
        };
        effects.iter().filter_map(message).collect()
    }

    fn reported(effects: &[Effect]) -> Vec<IpAddr> {
        let ips = |effect: &Effect| match effect {
            Effect::Report(Item::HostSeen { ips, .. }) => Some(ips.clone()),
            _ => None,
        };
        effects.iter().filter_map(ips).flatten().collect()
    }

    #[test]
    fn a_solicitation_is_resolved_by_the_controller_and_answered_with_an_advertisement() {
        let mut bench = Bench::new();
        let effects = bench.frame(0, &solicitation(1, 9));
        assert_eq!(reported(&effects), [IpAddr::from(ip6(1))]);
        let request = asked(&effects);
        assert_eq!(request.target, Target::Ip(ip6(9).into()));
        assert_eq!((request.source_mac, request.source_ip), (mac(1), Some(ip6(1).into())));
        let reply = axon_wire::message::ArpReply {
            target_ip: Some(ip6(9).into()),
            ..answer_to(request, 1)
        };
        let effects = bench.reply(reply);
        let frame = nd::advertisement(mac(9), ip6(9), Some((mac(1), ip6(1))));
        assert!(effects.contains(&Effect::Host { port: PortNo(0), frame: frame.clone() }));
        assert!(bench.placed(0, 9).is_some());
        // The flow answers from now on, also a host that verifies its neighbour by unicast.
        let unicast = nd::solicitation((mac(1), ip6(1)), Some(mac(9)), ip6(9));
        for question in [solicitation(1, 9), unicast] {
            assert_eq!(
                bench.frame(0, &question),
                [Effect::Host { port: PortNo(0), frame: frame.clone() }]
            );
        }
    }

    #[test]
    fn the_address_of_the_router_that_it_advertises_is_answered_as_that_of_a_router() {
        let router = ip6(9);
        let ipv6 = crate::config::Ipv6Config {
            router: Some(router),
            router_host: Some(mac(9)),
            ..super::super::ra::tests::config()
        };
        let mut bench = Bench::new();
        bench.edge.plain_mut().settings().services.ipv6 = Some(ipv6.into());
        for (target, frame) in [(9, nd::router_neighbour as Advertise), (8, nd::advertisement)] {
            let ip = ip6(target);
            let effects = bench.frame(0, &solicitation(1, target));
            let request = asked(&effects);
            let reply = axon_wire::message::ArpReply {
                target_ip: Some(ip.into()),
                ..answer_to(request, 1)
            };
            let effects = bench.reply(reply);
            let answered = effects.iter().find_map(|effect| match effect {
                Effect::Host { frame, .. } => Some(frame.clone()),
                _ => None,
            });
            let answered = answered.expect("an answer");
            let from = MacAddr::source_of(&answered).expect("a source");
            assert_eq!(answered, frame(from, ip, Some((mac(1), ip6(1)))), "{target}");
        }
        let to = (mac(1), ip6(1));
        let [with, without] =
            [nd::router_neighbour, nd::advertisement].map(|of| of(mac(9), router, Some(to)));
        // The first byte after the checksum: router, solicited, override (RFC 4861 clause 4.4).
        let flags = ETHERNET_BYTES + 40 + 4;
        assert_eq!((with[flags], without[flags]), (0xe0, 0x60));
    }

    #[test]
    fn the_target_is_asked_in_the_name_of_the_source_and_its_answer_ends_here() {
        let mut bench = Bench::new();
        bench.frame(0, &solicitation(1, 1));
        let m = ArpTarget {
            source_ip: Some(ip6(9).into()),
            target_ip: Some(ip6(1).into()),
            ..looked_for(1)
        };
        let asked = messages(&bench.target(m.clone()));
        let (source, source_mac) = (Some(ip6(9)), Some(mac(9)));
        let question = Nd::Solicitation { source, source_mac, target: ip6(1) };
        assert_eq!(asked, [(PortNo(0), mac(1), question)]);
        let other = nd::advertisement(mac(1), ip6(5), Some((mac(9), ip6(9))));
        let replied = |effects: Vec<Effect>| {
            let reply = |effect: &Effect| {
                matches!(effect, Effect::Routed { message: Message::ArpReply(_), .. })
            };
            effects.iter().any(reply)
        };
        assert!(!replied(bench.frame(0, &other)), "another address");
        let answer = nd::advertisement(mac(1), ip6(1), Some((mac(9), ip6(9))));
        assert!(replied(bench.frame(0, &answer)));
        assert!(bench.placed(0, 9).is_some(), "the route back");
    }

    #[test]
    fn the_first_holder_of_an_address_keeps_it_and_a_free_one_is_claimed() {
        let mut bench = Bench::new();
        let request = asked(&bench.frame(0, &detection(1, 9)));
        assert_eq!((request.source_ip, request.target), (None, Target::Ip(ip6(9).into())));
        let reply = axon_wire::message::ArpReply {
            target_ip: Some(ip6(9).into()),
            ..answer_to(request, 1)
        };
        let to_all = nd::advertisement(mac(9), ip6(9), None);
        let answered = Effect::Host { port: PortNo(0), frame: to_all };
        assert!(bench.reply(reply).contains(&answered), "not for host 1");
        assert!(bench.edge.plain().hosts().all(|(_, host)| host.ips.is_empty()));

        let effects = bench.frame(1, &detection(2, 7));
        assert!(reported(&effects).is_empty(), "not before it is free");
        let later = bench.pass(Span::from_secs(4));
        assert_eq!(reported(&later), [IpAddr::from(ip6(7))], "nobody has answered");
        assert!(messages(&later).iter().all(|(_, to, _)| *to != mac(2)), "and silence");
    }

    #[test]
    fn an_unsolicited_advertisement_teaches_and_other_multicast_is_dropped() {
        let mut bench = Bench::new();
        let unsolicited = nd::advertisement(mac(1), ip6(1), None);
        assert_eq!(reported(&bench.frame(0, &unsolicited)), [IpAddr::from(ip6(1))]);
        let local = nd::link_local(mac(1));
        let both = nd::advertisement(mac(1), local, None);
        assert_eq!(reported(&bench.frame(0, &both)), [IpAddr::from(local)], "two addresses");
        let mut router_solicitation = solicitation(1, 9);
        router_solicitation[54] = 133;
        assert_eq!(bench.frame(0, &router_solicitation), []);
        assert_eq!(bench.last_drop(), Some(Drop::Broadcast));
    }

    #[test]
    fn what_is_forged_or_not_sound_is_refused() {
        let mut bench = Bench::new();
        let mut forwarded = solicitation(1, 9);
        forwarded[21] = 64;
        let mut torn = solicitation(1, 9);
        torn.truncate(70);
        let mut other_name = solicitation(1, 9);
        other_name[6..12].copy_from_slice(&mac(5).0);
        let mut proxy = nd::advertisement(mac(1), ip6(9), None);
        proxy[6..12].copy_from_slice(&mac(5).0);
        let own = nd::link_local(SERVER.mac);
        let as_server = nd::solicitation((mac(1), own), None, ip6(9));
        let for_server = nd::advertisement(mac(1), own, None);
        let cases = [
            (forwarded, Drop::Malformed),
            (torn, Drop::Malformed),
            (other_name, Drop::Refused),
            (proxy, Drop::Refused),
            (as_server, Drop::Refused),
            (for_server, Drop::Refused),
        ];
        for (frame, reason) in cases {
            let effects = bench.frame(0, &frame);
            assert_eq!((bench.last_drop(), reported(&effects).len()), (Some(reason), 0));
        }
    }

    #[test]
    fn hosts_with_ipv6_are_probed_and_sought_from_the_servers_link_local_address() {
        let mut bench = Bench::new();
        let own = nd::link_local(SERVER.mac);
        let question =
            |target| Nd::Solicitation { source: Some(own), source_mac: Some(SERVER.mac), target };
        let m = Seek { ip: ip6(9).into(), except: Some(PortNo(0)) };
        let sought = bench.call(|edge, now, tables, out| edge.untagged(now, tables, out).seek(m));
        let group = nd::group_mac(nd::solicited_node(ip6(9)));
        let to = |port| (PortNo(port), group, question(ip6(9)));
        assert_eq!(messages(&sought), [to(1), to(2)]);
        let found = nd::advertisement(mac(9), ip6(9), Some((SERVER.mac, own)));
        assert_eq!(reported(&bench.frame(2, &found)), [IpAddr::from(ip6(9))]);
        let probes = messages(&bench.pass(Span::from_secs(5)));
        assert_eq!(probes, [(PortNo(2), mac(9), question(ip6(9)))]);
        let asks_us = nd::solicitation((mac(9), ip6(9)), None, own);
        let frame = nd::advertisement(SERVER.mac, own, Some((mac(9), ip6(9))));
        assert_eq!(bench.frame(2, &asks_us), [Effect::Host { port: PortNo(2), frame }]);
    }
}
