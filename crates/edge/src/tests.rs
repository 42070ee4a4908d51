//! The edge as a whole: four phases, and any order of events.

mod masquerade;

use super::testing::*;
use crate::effect::Effect;
use alloc::vec;
use alloc::vec::Vec;
use axon_node::PortKind;
use axon_wire::host_frame::{self, Arp};
use axon_wire::message::{ArpReply, ArpRequest, ArpTarget, Grant, Message};
use axon_wire::{MacAddr, PortNo, Route, Span};
use core::net::Ipv4Addr;
use proptest::prelude::*;
use smoltcp::wire::ArpOperation;

#[test]
fn two_switches_and_a_controller_join_two_hosts_in_four_phases() {
    let (mut source, mut target) = (Bench::new(), Bench::new());
    source.host(0, 9);
    target.host(0, 1);
    let ArpRequest { id, port, source_mac, source_ip, .. } =
        asked(&source.frame(0, &arp_request(9, 1)));
    let m = ArpTarget { id, source_port: port, source_mac, source_ip, ..looked_for(1) };
    let questions = arps(&target.target(m.clone()));
    let (_, question) = questions[0];
    let host_says = host_frame::reply(mac(1), ip(1), question.sender_mac, question.sender_ip);
    let answer = target.frame(0, &host_says).into_iter().find_map(|effect| match effect {
        Effect::Routed { message: Message::ArpReply(reply), .. } => Some(reply),
        _ => None,
    });
    let replies = arps(&source.reply(answer.unwrap()));
    assert_eq!((replies[0].1.sender_mac, replies[0].1.target_mac), (mac(1), mac(9)));
    assert_eq!(source.placed(0, 1), Some(m.to_target));
    assert_eq!(target.placed(0, 9), Some(m.to_source));
}

/// Event at an edge, with few hosts and addresses so that events interact.
#[derive(Clone, Debug)]
enum Event {
    Bytes(u16, Vec<u8>),
    Arp { port: u16, reply: bool, from: u8, ip: u8, wanted: u8, claimed: u8 },
    Unicast(u16, u8, u8),
    ToHost(u16, Vec<u8>),
    Target(u16, u8, u8, u64, Option<u8>),
    Reply(u16, u8, u8, u64, Option<u8>),
    Set(u16, u8, u64, u16),
    SetPair(u16, (u8, u8), u64, u16),
    Remove(u16, u8, u64),
    RemovePair(u16, (u8, u8), u64),
    Port(u16, u8),
    Controller(u8),
    Pass(u64),
}

fn event() -> impl Strategy<Value = Event> {
    let (port, host, number) = (0..6u16, 0..6u8, 0..12u64);
    let bytes = || prop::collection::vec(any::<u8>(), 0..120);
    let maybe = prop::option::of(0..6u8);
    prop_oneof![
        (port.clone(), bytes()).prop_map(|(port, bytes)| Event::Bytes(port, bytes)),
        (port.clone(), any::<bool>(), host.clone(), host.clone(), host.clone(), host.clone())
            .prop_map(|(port, reply, from, ip, wanted, claimed)| Event::Arp {
                port,
                reply,
                from,
                ip,
                wanted,
                claimed
            }),
        (port.clone(), host.clone(), host.clone()).prop_map(|(p, a, b)| Event::Unicast(p, a, b)),
        (port.clone(), bytes()).prop_map(|(port, bytes)| Event::ToHost(port, bytes)),
        (port.clone(), host.clone(), host.clone(), number.clone(), maybe.clone())
            .prop_map(|(p, a, b, n, ip)| Event::Target(p, a, b, n, ip)),
        (port.clone(), host.clone(), host.clone(), number.clone(), maybe)
            .prop_map(|(p, a, b, n, ip)| Event::Reply(p, a, b, n, ip)),
        (port.clone(), host.clone(), number.clone(), 0..300u16)
            .prop_map(|(p, a, n, hop)| Event::Set(p, a, n, hop)),
        (port.clone(), (host.clone(), host.clone()), number.clone(), 0..300u16)
            .prop_map(|(p, pair, n, hop)| Event::SetPair(p, pair, n, hop)),
        (port.clone(), (host.clone(), host.clone()), number.clone())
            .prop_map(|(p, pair, n)| Event::RemovePair(p, pair, n)),
        (port.clone(), host, number).prop_map(|(p, a, n)| Event::Remove(p, a, n)),
        (port, 0..6u8).prop_map(|(port, kind)| Event::Port(port, kind)),
        (0..8u8).prop_map(Event::Controller),
        (0..4000u64).prop_map(Event::Pass),
    ]
}

fn happen(bench: &mut Bench, event: Event) {
    match event {
        Event::Bytes(port, bytes) => bench.frame(port, &bytes),
        Event::Arp { port, reply, from, ip: own, wanted, claimed } => {
            let operation = if reply { ArpOperation::Reply } else { ArpOperation::Request };
            let sender_ip = if own == 0 { Ipv4Addr::UNSPECIFIED } else { ip(own) };
            let sender_mac = mac(if claimed == 0 { 0 } else { from });
            let arp = Arp {
                operation,
                sender_mac,
                sender_ip,
                target_mac: mac(wanted),
                target_ip: ip(wanted),
            };
            let mut frame = host_frame::emit(mac(wanted), arp);
            frame[6..12].copy_from_slice(&mac(from).0);
            bench.frame(port, &frame)
        }
        Event::Unicast(port, to, from) => bench.frame(port, &udp_frame(mac(to), mac(from), 0)),
        Event::ToHost(port, bytes) => bench.send_to_host(port, bytes),
        Event::Target(port, source, target, number, address) => bench.target(ArpTarget {
            source_mac: mac(source),
            target_port: PortNo(port),
            target_mac: mac(target),
            target_ip: address.map(|n| ip(n).into()),
            source_by_pair: number % 2 == 1,
            ..looked_for(number)
        }),
        Event::Reply(port, source, target, number, address) => bench.reply(ArpReply {
            id: number as u32,
            source_port: PortNo(port),
            source_mac: mac(source),
            target_mac: mac(target),
            target_ip: address.map(|n| ip(n).into()),
            stamp: stamp(number),
            to_target: Route::from([number as u16]),
            target_by_pair: number % 3 == 1,
            grant: Grant::default(),
        }),
        Event::Set(port, to, number, hop) => bench.set_route(port, to, number, hop),
        Event::SetPair(port, pair, number, hop) => bench.set_pair(port, pair, number, hop),
        Event::Remove(port, to, number) => bench.remove_route(port, to, number),
        Event::RemovePair(port, pair, number) => bench.remove_pair(port, pair, number),
        Event::Port(port, kind) => bench.port(
            port,
            match kind {
                0 => None,
                1 => Some(PortKind::Axon),
                2 => Some(PortKind::Unknown),
                _ => Some(PortKind::Host),
            },
        ),
        Event::Controller(which) => bench.controller(match which {
            0 => None,
            1 => Some(OTHER),
            _ => Some(CONTROLLER),
        }),
        Event::Pass(millis) => bench.pass(Span::from_millis(millis)),
    };
}

proptest! {
    // `Bench` checks every bound and that every reserved place has an owner, after each event.
    #[test]
    fn nothing_that_happens_breaks_a_bound_or_leaks_a_place(
        routes in 0..4usize,
        events in prop::collection::vec(event(), 0..120),
    ) {
        let mut bench = Bench::with(routes, 600, 2);
        for event in events {
            happen(&mut bench, event);
        }
        for port in 0..PORTS {
            bench.port(port, None);
        }
        prop_assert!(bench.is_empty());
        prop_assert_eq!((bench.edge.plain().setups(), bench.waiting_bytes()), (0, 0));
        bench.pass(Span::from_secs(60));
        prop_assert_eq!(bench.edge.deadline(), None);
    }

    #[test]
    fn arbitrary_frames_of_every_shape_keep_every_bound_and_leave_nothing_behind(
        ethertype in prop::sample::select(alloc::vec![0x0800u16, 0x0806, 0x86dd, 0x8100]),
        port in 0..6u16,
        body in prop::collection::vec(any::<u8>(), 0..400),
    ) {
        let mut bench = Bench::new();
        for to in [MacAddr::BROADCAST, SERVER.mac, mac(9)] {
            let mut frame = udp_frame(to, mac(1), 0);
            frame.truncate(12);
            frame.extend_from_slice(&ethertype.to_be_bytes());
            frame.extend_from_slice(&body);
            bench.frame(port, &frame);
            bench.send_to_host(0, frame);
        }
        for port in 0..PORTS {
            bench.port(port, None);
        }
        prop_assert!(bench.is_empty());
        prop_assert_eq!((bench.edge.plain().setups(), bench.waiting_bytes()), (0, 0));
    }
}
