//! Tests of Axon-ARP at both of its switches.

use super::super::testing::*;
use super::*;
use axon_node::Note;
use axon_wire::{Span, host_frame};
use core::net::Ipv4Addr;
use smoltcp::wire::ArpOperation;

#[test]
fn the_reply_installs_the_route_before_the_host_is_answered_and_frames_go() {
    let mut bench = Bench::new();
    bench.host(0, 1);
    let request = asked(&bench.frame(0, &arp_request(1, 9)));
    bench.frame(0, &udp_frame(mac(9), mac(1), 1));
    bench.frame(0, &udp_frame(mac(9), mac(1), 2));
    let effects = bench.reply(answer_to(request, 1));
    let route = Route::from([3, 4]);
    assert_eq!(bench.placed(0, 9), Some(route.clone()));
    assert_eq!(bench.places(0), 1, "both reservations became the one route");
    let forwarded = |content| (PortNo(0), route.clone(), udp_frame(mac(9), mac(1), content));
    let (port, destination) = (PortNo(0), mac(9));
    let frame = host_frame::reply(mac(9), ip(9), mac(1), ip(1));
    assert_eq!(
        effects,
        [Effect::Note(Note::RouteSet { port, destination }), Effect::Host { port, frame }]
    );
    assert_eq!(bench.sent, [forwarded(1), forwarded(2)]);
    assert_eq!((bench.edge.plain().setups(), bench.waiting_bytes()), (0, 0));
}

#[test]
fn an_existing_flow_is_answered_from_the_cache_also_by_unicast() {
    let mut bench = Bench::new();
    bench.host(0, 1);
    let request = asked(&bench.frame(0, &arp_request(1, 9)));
    bench.reply(answer_to(request, 1));
    let unicast = host_frame::request(mac(1), ip(1), mac(9), ip(9));
    for frame in [arp_request(1, 9), unicast] {
        let effects = bench.frame(0, &frame);
        let [(PortNo(0), arp)] = arps(&effects)[..] else { panic!("{effects:?}") };
        assert_eq!(arp.operation, ArpOperation::Reply);
        assert_eq!((arp.sender_mac, arp.sender_ip), (mac(9), ip(9)));
        assert_eq!((arp.target_mac, effects.len()), (mac(1), 1));
    }
    bench.remove_route(0, 9, 2);
    asked(&bench.frame(0, &arp_request(1, 9)));
}

#[test]
fn a_full_memory_sends_by_the_slow_path_until_there_is_room() {
    let mut bench = Bench::with(1, 1000, 4);
    bench.host(0, 1);
    bench.set_route(0, 7, 1, 3);
    let request = asked(&bench.frame(0, &arp_request(1, 9)));
    let effects = bench.reply(answer_to(request, 2));
    assert_eq!(arps(&effects).len(), 1, "the host is answered all the same");
    assert_eq!(bench.placed(0, 9), None);
    let frame = udp_frame(mac(9), mac(1), 1);
    let route = Route::from([3, 4]);
    assert_eq!(bench.frame(0, &frame), []);
    assert_eq!(bench.sent, [(PortNo(0), route.clone(), frame)], "by the slow path");
    bench.remove_route(0, 7, 3);
    assert_eq!(bench.placed(0, 9), Some(route));
}

#[test]
fn a_late_reply_never_replaces_a_newer_route_or_removal() {
    for newer_is_a_route in [true, false] {
        let mut bench = Bench::new();
        bench.host(0, 1);
        let request = asked(&bench.frame(0, &arp_request(1, 9)));
        if newer_is_a_route {
            bench.set_route(0, 9, 8, 2);
        } else {
            bench.remove_route(0, 9, 8);
        }
        let answered = arps(&bench.reply(answer_to(request, 7))).len();
        let expected = newer_is_a_route.then(|| Route::from([2]));
        assert_eq!(bench.placed(0, 9), expected);
        assert_eq!(answered, usize::from(newer_is_a_route));
        assert_eq!(bench.edge.plain().setups(), usize::from(!newer_is_a_route));
    }
}

#[test]
fn a_probe_of_an_address_is_answered_for_another_host_only() {
    let mut bench = Bench::new();
    let unspecified = Ipv4Addr::UNSPECIFIED;
    let probe = host_frame::request(mac(1), unspecified, MacAddr::BROADCAST, ip(9));
    let request = asked(&bench.frame(0, &probe));
    assert_eq!(request.source_ip, None);
    let mut own = answer_to(request, 1);
    own.target_mac = mac(1);
    assert_eq!(arps(&bench.reply(own)), []);

    let mut bench = Bench::new();
    let request = asked(&bench.frame(0, &probe));
    let effects = bench.reply(answer_to(request, 1));
    let [(PortNo(0), arp)] = arps(&effects)[..] else { panic!("{effects:?}") };
    assert_eq!((arp.sender_mac, arp.target_ip), (mac(9), unspecified));
}

#[test]
fn several_hosts_on_a_port_are_answered_together() {
    let mut bench = Bench::new();
    bench.host(0, 1);
    bench.host(0, 2);
    let request = asked(&bench.frame(0, &arp_request(1, 9)));
    // Another host of the port may be denied it.
    asked(&bench.frame(0, &arp_request(2, 9)));
    let effects = bench.reply(answer_to(request, 1));
    let answered: Vec<_> = arps(&effects).iter().map(|(_, arp)| arp.target_mac).collect();
    assert_eq!(answered, [mac(1), mac(2)]);
    assert_eq!(bench.frame(0, &arp_request(1, 2)), [], "they reach one another");
}

#[test]
fn without_any_room_a_route_still_serves_the_frames_that_waited_for_it() {
    let mut bench = Bench::with(0, 1000, 4);
    bench.host(0, 1);
    let frame = udp_frame(mac(9), mac(1), 1);
    for number in 1..3 {
        let request = asked(&bench.frame(0, &frame));
        assert_eq!(bench.reply(answer_to(request, number)), []);
        let forwarded = (PortNo(0), Route::from([3, 4]), frame.clone());
        assert_eq!(bench.sent.pop(), Some(forwarded));
    }
    assert_eq!(bench.edge.plain().flows().count(), 0);
}

/// Builds host `n`'s answer to the querying host.
fn host_reply(n: u8, to: MacAddr, to_ip: Ipv4Addr) -> Vec<u8> {
    host_frame::reply(mac(n), ip(n), to, to_ip)
}

fn answers(effects: &[Effect]) -> Vec<axon_wire::message::ArpReply> {
    let reply = |effect: &Effect| match effect {
        Effect::Routed { hops, to, message: Message::ArpReply(reply) } => {
            assert_eq!((hops, *to), (&looked_for(0).answer_by, OTHER));
            Some(reply.clone())
        }
        _ => None,
    };
    effects.iter().filter_map(reply).collect()
}

#[test]
fn the_route_back_is_reserved_before_the_host_is_asked() {
    let mut bench = Bench::new();
    bench.host(0, 1);
    let effects = bench.target(looked_for(1));
    assert_eq!(bench.places(0), 1);
    assert_eq!(bench.placed(0, 9), None, "reserved, not valid");
    let [(PortNo(0), arp)] = arps(&effects)[..] else { panic!("{effects:?}") };
    assert_eq!((arp.sender_mac, arp.sender_ip, arp.target_ip), (mac(9), ip(9), ip(1)));
    assert_eq!(answers(&effects), []);
}

#[test]
fn the_hosts_reply_makes_the_route_valid_and_then_the_source_is_answered() {
    let mut bench = Bench::new();
    bench.host(0, 1);
    let m = looked_for(1);
    bench.target(m.clone());
    let effects = bench.frame(0, &host_reply(1, mac(9), ip(9)));
    assert_eq!(bench.placed(0, 9), Some(m.to_source));
    assert!(matches!(effects[0], Effect::Note(_)), "the route comes first");
    let [reply] = &answers(&effects)[..] else { panic!("{effects:?}") };
    assert_eq!((reply.id, reply.source_port, reply.stamp), (42, PortNo(6), stamp(1)));
    assert_eq!((reply.target_mac, &reply.to_target), (mac(1), &m.to_target));
    let cached = bench.frame(0, &arp_request(1, 9));
    assert_eq!(arps(&cached).len(), 1, "the target knows the source now");
}

#[test]
fn a_reply_from_the_wrong_port_or_host_or_address_answers_nothing() {
    let mut bench = Bench::new();
    bench.host(0, 1);
    bench.host(0, 3);
    bench.host(1, 2);
    bench.target(looked_for(1));
    let mut wrong_address = host_reply(1, mac(9), ip(9));
    wrong_address[31] = 77;
    let frames = [
        (1, host_reply(1, mac(9), ip(9))),
        (0, host_reply(3, mac(9), ip(9))),
        (0, host_frame::reply(mac(3), ip(1), mac(9), ip(9))),
        (0, wrong_address),
    ];
    for (port, frame) in frames {
        assert_eq!(answers(&bench.frame(port, &frame)), []);
    }
    assert_eq!(bench.placed(0, 9), None);
}

#[test]
fn a_host_that_has_a_valid_route_back_is_asked_by_the_server_identity() {
    let mut bench = Bench::new();
    bench.host(0, 1);
    bench.set_route(0, 9, 1, 5);
    let [(_, arp)] = arps(&bench.target(looked_for(2)))[..] else { panic!() };
    assert_eq!((arp.sender_mac, arp.sender_ip), (SERVER.mac, SERVER.ip));
    let effects = bench.frame(0, &host_reply(1, SERVER.mac, SERVER.ip));
    assert_eq!(answers(&effects).len(), 1);
    assert_eq!(bench.placed(0, 9), Some(Route::from([3, 6])));
}

#[test]
fn an_older_request_is_answered_but_keeps_the_newer_route() {
    let mut bench = Bench::new();
    bench.host(0, 1);
    bench.set_route(0, 9, 8, 5);
    bench.target(looked_for(7));
    let effects = bench.frame(0, &host_reply(1, SERVER.mac, SERVER.ip));
    assert_eq!(answers(&effects)[0].stamp, stamp(7));
    assert_eq!(bench.placed(0, 9), Some(Route::from([5])));
}

#[test]
fn an_older_request_does_not_bring_back_a_removed_route() {
    let mut bench = Bench::new();
    bench.host(0, 1);
    bench.remove_route(0, 9, 8);
    bench.target(looked_for(7));
    let effects = bench.frame(0, &host_reply(1, mac(9), ip(9)));
    assert_eq!(answers(&effects), []);
    assert!(bench.is_empty());
}

#[test]
fn a_silent_target_is_asked_a_few_times_and_its_place_is_freed() {
    let mut bench = Bench::new();
    bench.host(0, 1);
    bench.target(looked_for(1));
    let asked = arps(&bench.pass(Span::from_secs(3)));
    assert!((3..8).contains(&asked.len()), "{} questions", asked.len());
    assert!(bench.is_empty());
}

#[test]
fn a_host_that_is_gone_is_not_looked_for() {
    let mut bench = Bench::new();
    bench.host(1, 1);
    assert_eq!(bench.target(looked_for(1)), [], "it is on another port");
    bench.host(0, 2);
    assert_eq!(bench.target(looked_for(1)), []);
    assert!(bench.is_empty());
}

#[test]
fn a_target_without_address_is_not_asked() {
    let mut bench = Bench::new();
    bench.host(0, 1);
    let effects = bench.target(ArpTarget { target_ip: None, ..looked_for(1) });
    assert_eq!((answers(&effects).len(), arps(&effects).len()), (1, 0));
    assert_eq!(bench.placed(0, 9), Some(Route::from([3, 6])));
}
