//! Tests of forwarding agents between hosts that the test emulates.

use crate::port::{CLIENT, Port, datagram, ends};
use axon_agents::AgentPortConfig;
use axon_agents::forwarder::{
    Backend, BalancerConfig, Forwarder, ForwarderConfig, HEAD_BYTES, Role, RouteTo,
};
use axon_agents::packet::{Ends, Ipv4, TCP, UDP, ipv4, pseudo};
use axon_wire::host_frame::{self, ArpOperation, Kind, classify};
use axon_wire::{MacAddr, Span};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

pub const OWN: MacAddr = MacAddr([2, 0, 0, 0, 9, 9]);
const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 9, 9);
pub const PORT: u16 = 80;

pub fn port(role: Role) -> Port<Forwarder> {
    let mut config = AgentPortConfig::default();
    (config.cache.head_bytes, config.cache.send_buffers) = (HEAD_BYTES, 64);
    let forwarder = Forwarder::new(ForwarderConfig { mac: OWN, address: ADDRESS, role });
    Port::new(config, forwarder)
}

fn backend(number: u8) -> (MacAddr, Ipv4Addr) {
    (MacAddr([2, 0, 0, 0, 5, number]), Ipv4Addr::new(10, 0, 5, number))
}

pub fn balancer(backends: u8) -> Port<Forwarder> {
    port(Role::Balancer(balancer_of(UDP, backends)))
}

pub fn balancer_of(protocol: u8, backends: u8) -> BalancerConfig {
    let all = 1..=backends;
    let all = all.map(|number| Backend { address: backend(number).1, port: 8080 });
    BalancerConfig::new(protocol, PORT, all.collect())
}

/// Advances time by `span` while the hosts of `there` answer ARP.
pub fn answer(port: &mut Port<Forwarder>, span: Span, there: impl Fn(Ipv4Addr) -> Option<MacAddr>) {
    let end = port.now + span;
    while port.now < end {
        port.wait(Span::from_millis(100));
        let new = port.sent[port.seen..].to_vec();
        port.seen = port.sent.len();
        for frame in new {
            let Kind::Arp(arp) = classify(&frame) else { continue };
            if let Some(mac) = there(arp.target_ip).filter(|_| arp.target_ip != ADDRESS) {
                port.give(&host_frame::reply(mac, arp.target_ip, OWN, ADDRESS));
            }
        }
    }
}

pub fn all_there(address: Ipv4Addr) -> Option<MacAddr> {
    let [.., group, number] = address.octets();
    (group == 5).then(|| backend(number).0)
}

/// Builds a request from a port of the client.
pub fn request(from: u16) -> Vec<u8> {
    let mut ends = ends(from, PORT);
    (ends.macs.1, ends.addresses.1) = (OWN, ADDRESS);
    datagram(&ends, b"what?")
}

pub fn ends_of(frame: &[u8]) -> Ends {
    let ip = Ipv4::parse(frame).expect("a sound IPv4 packet");
    Ends::of(frame, &ip).unwrap()
}

/// Sends a request. Returns the backend that receives it, and the frame that it receives.
pub fn backend_of(port: &mut Port<Forwarder>, from: u16) -> (u8, Vec<u8>) {
    let sent = port.give(&request(from));
    let [frame] = &sent[..] else { panic!("{} frames", sent.len()) };
    let to = ends_of(frame);
    let number = to.addresses.1.octets()[3];
    assert_eq!((to.macs.1, to.addresses.1), backend(number));
    assert_eq!((to.macs.0, to.addresses.0, to.ports.1), (OWN, ADDRESS, 8080));
    (number, frame.clone())
}

#[test]
fn it_announces_itself_and_answers_arp_for_its_own_address_only() {
    let mut port = balancer(0);
    port.wait(Span::from_secs(5));
    assert_eq!(port.sent.len(), 5, "announcements");
    let (mac, ip) = (MacAddr([2, 0, 0, 0, 0, 1]), CLIENT);
    let sent = port.give(&host_frame::request(mac, ip, MacAddr::BROADCAST, ADDRESS));
    let Kind::Arp(arp) = classify(&sent[0]) else { panic!("no ARP") };
    assert_eq!((arp.operation, arp.sender_mac, arp.sender_ip), (ArpOperation::Reply, OWN, ADDRESS));
    let other = host_frame::request(mac, ip, MacAddr::BROADCAST, Ipv4Addr::new(10, 0, 9, 8));
    assert!(port.give(&other).is_empty());
}

#[test]
fn connections_are_spread_stay_where_they_are_and_answers_find_their_client() {
    let mut port = balancer(4);
    answer(&mut port, Span::from_millis(200), all_there);
    assert_eq!(port.count("backends_up"), 4);
    let first: Vec<u8> = (1..=400).map(|from| backend_of(&mut port, from).0).collect();
    for number in 1..=4 {
        let share = first.iter().filter(|&&chosen| chosen == number).count();
        assert!((60..140).contains(&share), "backend {number} has {share} of 400");
    }
    for (from, chosen) in (1..=400).zip(&first) {
        let (again, frame) = backend_of(&mut port, from);
        assert_eq!(again, *chosen);
        let answer = datagram(&ends_of(&frame).reversed(), b"that.");
        let sent = port.give(&answer);
        let client = ends_of(&sent[0]);
        assert_eq!(client, ends_of(&request(from)).reversed());
        assert_eq!(sent[0][42..47], *b"that.");
    }
    assert_eq!((port.count("connections"), port.count("connections_opened")), (400, 400));
    // Only the backend of a connection may answer on it.
    let (chosen, frame) = backend_of(&mut port, 1);
    let mut forged = ends_of(&frame).reversed();
    (forged.macs.0, forged.addresses.0) = backend(chosen % 4 + 1);
    assert!(port.give(&datagram(&forged, b"mine")).is_empty());
    assert_eq!(port.count("no_connection"), 1);
}

#[test]
fn only_the_connections_of_a_backend_that_is_gone_move_and_idle_ones_end() {
    let mut port = balancer(3);
    answer(&mut port, Span::from_millis(200), all_there);
    let first: Vec<u8> = (1..=90).map(|from| backend_of(&mut port, from).0).collect();
    let without_2 = |address| all_there(address).filter(|mac| mac.0[5] != 2);
    answer(&mut port, Span::from_secs(5), without_2);
    assert_eq!(port.count("backends_up"), 2);
    for (from, before) in (1..=90).zip(&first) {
        let (now, _) = backend_of(&mut port, from);
        assert!(now != 2 && (*before == 2 || now == *before), "{before} to {now}");
    }
    answer(&mut port, Span::from_secs(2), all_there);
    assert_eq!(port.count("backends_up"), 3, "it is back");
    answer(&mut port, Span::from_secs(300), all_there);
    assert_eq!(port.count("connections"), 0, "idle for five minutes");
    // Without any backend, a packet is dropped and counted.
    answer(&mut port, Span::from_secs(6), |_| None);
    assert!(port.give(&request(1)).is_empty());
    assert_eq!((port.count("backends_up"), port.count("no_backend")), (0, 1));
}

#[test]
fn what_is_not_of_the_service_ends_here() {
    let mut port = balancer(1);
    answer(&mut port, Span::from_millis(200), all_there);
    let mut other = ends(1, 81);
    (other.macs.1, other.addresses.1) = (OWN, ADDRESS);
    let mut fragment = request(1);
    fragment[20] = 0x20;
    fragment[24..26].fill(0);
    let sum = !axon_agents::packet::sum(&fragment[14..34]);
    fragment[24..26].copy_from_slice(&sum.to_be_bytes());
    let mut elsewhere = request(1);
    elsewhere[5] ^= 1;
    for frame in [datagram(&other, b"x"), fragment, elsewhere, vec![0; 60], vec![1; 5]] {
        assert!(port.give(&frame).is_empty());
    }
    assert_eq!((port.count("no_connection"), port.count("other")), (2, 3));
}

pub fn router() -> Port<Forwarder> {
    let to = |prefix: [u8; 4], length, via: Option<[u8; 4]>| RouteTo {
        prefix: prefix.into(),
        length,
        via: via.map(Ipv4Addr::from),
    };
    port(Role::Router(vec![
        to([10, 0, 0, 0], 16, None),
        to([10, 0, 7, 0], 24, Some([10, 0, 5, 1])),
    ]))
}

pub fn packet_to(address: [u8; 4], ttl: u8) -> Vec<u8> {
    let mut ends = ends(7, 8);
    (ends.macs.1, ends.addresses.1) = (OWN, address.into());
    let mut frame = datagram(&ends, &[7; 300]);
    frame[22] = ttl;
    frame[24..26].fill(0);
    let sum = !axon_agents::packet::sum(&frame[14..34]);
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    frame
}

#[test]
fn a_packet_waits_for_its_next_hop_and_goes_on_with_a_ttl_less_by_one() {
    let mut port = router();
    for (address, next_hop) in [([10, 0, 5, 2], 2), ([10, 0, 7, 200], 1)] {
        let frame = packet_to(address, 9);
        let sent = port.give(&frame);
        assert!(sent.iter().all(|frame| classify(frame) != Kind::Other), "where is that?");
        let before = port.sent.len();
        answer(&mut port, Span::from_millis(200), all_there);
        let sent = port.sent[before..].iter().find(|frame| frame[12..14] == [8, 0]);
        assert_eq!(sent.unwrap()[..], { packet_to_by(address, 8, next_hop) }[..]);
        let again = port.give(&frame);
        assert_eq!(again, [packet_to_by(address, 8, next_hop)], "it is known now");
    }
    assert_eq!((port.count("forwarded"), port.count("waiting")), (4, 0));
}

/// Builds the packet in the form in which the router sends it to a neighbour.
pub fn packet_to_by(address: [u8; 4], ttl: u8, next_hop: u8) -> Vec<u8> {
    let mut frame = packet_to(address, ttl);
    frame[..6].copy_from_slice(&backend(next_hop).0.0);
    frame[6..12].copy_from_slice(&OWN.0);
    frame
}

#[test]
fn a_packet_that_cannot_go_on_is_answered_with_icmp_that_quotes_it() {
    let mut port = router();
    answer(&mut port, Span::from_secs(4), all_there);
    let mut kinds = BTreeSet::new();
    for (address, ttl, expected) in
        [([10, 0, 5, 2], 1, [11, 0]), ([192, 168, 0, 1], 64, [3, 0]), ([10, 0, 8, 8], 64, [3, 1])]
    {
        let frame = packet_to(address, ttl);
        let before = port.sent.len();
        port.give(&frame);
        answer(&mut port, Span::from_secs(5), all_there);
        let icmp = port.sent[before..].iter().find(|frame| frame[12..14] == [8, 0]);
        let icmp = icmp.unwrap().clone();
        let ip = Ipv4::parse(&icmp).unwrap();
        assert_eq!((ip.source, ip.destination, ip.protocol), (ADDRESS, CLIENT, 1));
        let message = &icmp[ip.payload_at..ip.end];
        assert_eq!((&message[..2], axon_agents::packet::sum(message)), (&expected[..], u16::MAX));
        assert_eq!(message[8..], frame[14..42], "its header and eight bytes");
        kinds.insert(expected);
        // An ICMP message causes no ICMP error.
        let before = port.sent.len();
        port.give(&icmp);
        assert_eq!(port.sent.len(), before);
    }
    assert_eq!((kinds.len(), port.count("icmp_sent")), (3, 3));
    assert_eq!(port.node.accounts().2, 0, "nothing is held for ever");
}

#[test]
fn a_silent_next_hop_takes_three_buffers_and_holds_up_no_other_packet() {
    let mut port = router();
    answer(&mut port, Span::from_secs(6), all_there);
    port.give(&packet_to([10, 0, 5, 1], 9));
    answer(&mut port, Span::from_millis(200), all_there);
    let before = port.dropped.len();
    for _ in 0..5 {
        port.give(&packet_to([10, 0, 8, 8], 9));
    }
    assert_eq!((port.count("waiting"), port.count("waiting_gave_way")), (3, 2));
    assert_eq!(port.dropped.len(), before + 2, "the oldest ones");
    // Of the packets for a neighbour that answers, the latest are forwarded, in order.
    (11..16).for_each(|ttl| drop(port.give(&packet_to([10, 0, 5, 3], ttl))));
    let sent = port.sent.len();
    answer(&mut port, Span::from_millis(200), all_there);
    let sent: Vec<_> = port.sent[sent..].iter().filter(|frame| frame[12..14] == [8, 0]).collect();
    assert!(sent.into_iter().eq(&[12, 13, 14].map(|ttl| packet_to_by([10, 0, 5, 3], ttl, 3))));
    // These are more packets than the port has buffers.
    for _ in 0..1000 {
        assert_eq!(port.give(&packet_to([10, 0, 5, 1], 9)), [packet_to_by([10, 0, 5, 1], 8, 1)]);
    }
    answer(&mut port, Span::from_secs(4), all_there);
    assert_eq!((port.count("waiting"), port.count("unresolved")), (0, 3));
    assert_eq!(port.node.accounts().2, 0);
}

#[test]
fn who_probes_every_address_fills_neither_the_buffers_nor_the_neighbours() {
    let mut port = router();
    answer(&mut port, Span::from_secs(6), all_there);
    // Two packets for each address are more than may be queued for that many addresses.
    for number in 0..4096u16 {
        let [high, low] = number.to_be_bytes();
        (0..2).for_each(|_| drop(port.give(&packet_to([10, 0, 16 + high, low], 9))));
        assert!(port.count("waiting") <= 96 && port.count("neighbours_asked") <= 64);
    }
    assert_eq!(port.count("waiting"), 96);
    assert_eq!(port.count("waiting_gave_way"), 2 * 4096 - 96);
    assert_eq!(port.count("neighbours_asked_gave_way"), 4096 - 64);
    // A neighbour that is present is still found among them.
    port.give(&packet_to([10, 0, 5, 2], 9));
    let before = port.sent.len();
    answer(&mut port, Span::from_millis(200), all_there);
    assert!(port.sent[before..].contains(&packet_to_by([10, 0, 5, 2], 8, 2)));
    assert_eq!(port.count("neighbours"), 1);
    answer(&mut port, Span::from_secs(4), all_there);
    assert_eq!((port.count("waiting"), port.count("neighbours_asked")), (0, 0));
    assert_eq!(port.node.accounts().2, 0);
}

#[test]
fn what_waits_for_an_address_that_is_asked_for_no_more_is_dropped() {
    let mut port = router();
    answer(&mut port, Span::from_secs(6), all_there);
    (0..70).for_each(|number| drop(port.give(&packet_to([10, 0, 16, number], 9))));
    let asked = (port.count("neighbours_asked"), port.count("neighbours_asked_gave_way"));
    assert_eq!(asked, (64, 6));
    assert_eq!((port.count("waiting"), port.count("waiting_gave_way")), (64, 6));
}

/// Builds a TCP segment without data.
pub fn segment(ends: &Ends, bits: u8, sequence: u32, acknowledged: u32) -> Vec<u8> {
    segment_with(ends, bits, (sequence, acknowledged), 0)
}

/// Builds a TCP segment with `data_bytes` bytes of data.
pub fn segment_with(ends: &Ends, bits: u8, numbers: (u32, u32), data_bytes: usize) -> Vec<u8> {
    let (sequence, acknowledged) = numbers;
    let mut segment = vec![0; 20 + data_bytes];
    segment[..2].copy_from_slice(&ends.ports.0.to_be_bytes());
    segment[2..4].copy_from_slice(&ends.ports.1.to_be_bytes());
    segment[4..8].copy_from_slice(&sequence.to_be_bytes());
    segment[8..12].copy_from_slice(&acknowledged.to_be_bytes());
    (segment[12], segment[13]) = (5 << 4, bits);
    let sum = !pseudo(&segment, ends.addresses, TCP);
    segment[16..18].copy_from_slice(&sum.to_be_bytes());
    ipv4(ends, TCP, &[&segment])
}

pub const SYN: u8 = 2;
pub const RST: u8 = 4;
pub const ACK: u8 = 16;

/// Returns one of many clients of the service.
pub fn client(number: u32) -> Ends {
    let mut ends = ends(5000, PORT);
    (ends.macs.1, ends.addresses) = (OWN, (Ipv4Addr::from_bits(0x0b00_0000 + number), ADDRESS));
    ends
}

/// Completes a handshake with the backend. Returns the backend's side of the connection.
pub fn shake_hands(port: &mut Port<Forwarder>, client: &Ends) -> Ends {
    let sent = port.give(&segment(client, SYN, 7, 0));
    let backend = ends_of(&sent[0]).reversed();
    let sent = port.give(&segment(&backend, SYN | ACK, 99, 8));
    assert_eq!(ends_of(&sent[0]), client.reversed());
    assert_eq!(port.give(&segment(client, ACK, 8, 100)).len(), 1);
    backend
}

#[test]
fn a_flood_of_syns_takes_no_connection_away_and_keeps_no_client_out() {
    let mut config = balancer_of(TCP, 2);
    config.connections_max = 400;
    let mut port = port(Role::Balancer(config));
    answer(&mut port, Span::from_millis(200), all_there);
    let backend = shake_hands(&mut port, &client(1));
    for number in 0..2000 {
        assert_eq!(port.give(&segment(&client(100 + number), SYN, 7, 0)).len(), 1);
    }
    let half_open = (port.count("connections_half_open"), port.count("half_open_gave_way"));
    assert_eq!((port.count("connections"), half_open), (101, (100, 1900)));
    shake_hands(&mut port, &client(2));
    // For further connections from one client address, its own half-open connections are evicted.
    for number in 0..2000 {
        let mut ends = client(2);
        ends.ports.0 = 6000 + number;
        assert_eq!(port.give(&segment(&ends, SYN, 7, 0)).len(), 1);
    }
    let mut again = client(2);
    again.ports.0 = 5001;
    shake_hands(&mut port, &again);
    assert_eq!((port.count("full"), port.count("client_full")), (0, 0));
    answer(&mut port, Span::from_secs(11), all_there);
    assert_eq!((port.count("connections"), port.count("connections_half_open")), (3, 0));
    assert_eq!(port.give(&segment(&backend, ACK, 100, 8)).len(), 1, "the first one is there");
    let ended = ["half_open_gave_way", "half_open_ended", "connections_ended", "connections"];
    let ended: u64 = ended.iter().map(|name| port.count(name)).sum();
    assert_eq!(ended, port.count("connections_opened"), "each one is accounted for");
    // A reset ends its connection, and a reset without a connection is dropped.
    port.give(&segment(&backend, RST, 100, 0));
    assert!(port.give(&segment(&client(9), RST, 7, 0)).is_empty());
    answer(&mut port, Span::from_secs(11), all_there);
    assert_eq!((port.count("connections"), port.count("no_connection")), (2, 1));
}

#[test]
fn one_client_has_no_more_than_its_share_of_the_table() {
    let mut config = balancer_of(TCP, 2);
    config.connections_max = 400;
    let mut port = port(Role::Balancer(config));
    answer(&mut port, Span::from_millis(200), all_there);
    let greedy = |from: u16| Ends { ports: (from, PORT), ..client(1) };
    (0..25).for_each(|from| {
        shake_hands(&mut port, &greedy(from));
    });
    assert!(port.give(&segment(&greedy(25), SYN, 7, 0)).is_empty());
    assert_eq!((port.count("connections"), port.count("client_full")), (25, 1));
    shake_hands(&mut port, &client(2));
}
