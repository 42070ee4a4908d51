//! Tests of forwarding agents over minutes, with late answers from neighbours and forged packets.

use crate::forwarder::{
    ACK, OWN, PORT, RST, SYN, all_there, answer, backend_of, balancer, balancer_of, client,
    ends_of, packet_to, packet_to_by, port, request, router, segment, segment_with, shake_hands,
};
use crate::port::{Port, datagram};
use axon_agents::forwarder::{Forwarder, Role};
use axon_agents::packet::{Ends, TCP};
use axon_wire::host_frame::{self, ArpOperation, Kind, classify};
use axon_wire::{MacAddr, Span};
use std::collections::VecDeque;
use std::net::Ipv4Addr;

const FIN: u8 = 1;
const HOP: [u8; 4] = [10, 0, 5, 1];

#[test]
fn a_neighbour_in_use_that_answers_late_loses_no_packet_in_five_minutes() {
    let mut port = router();
    let (frame, expected) = (packet_to(HOP, 9), packet_to_by(HOP, 8, 1));
    let (mut late, mut answers, mut lost) = (VecDeque::new(), 0, 0);
    for _ in 0..100_000 {
        port.wait(Span::from_millis(3));
        for frame in port.sent.split_off(port.seen) {
            if let Kind::Arp(arp) = classify(&frame)
                && (arp.operation, arp.target_ip) == (ArpOperation::Request, HOP.into())
            {
                late.push_back(port.now + Span::from_millis(1500));
            }
            port.seen += 1;
            port.sent.push(frame);
        }
        while late.front().is_some_and(|&at| at <= port.now) {
            late.pop_front();
            answers += 1;
            let mac = all_there(HOP.into()).unwrap();
            port.give(&host_frame::reply(mac, HOP.into(), OWN, Ipv4Addr::new(10, 0, 9, 9)));
        }
        let sent = port.give(&frame);
        lost += u32::from(answers > 0 && sent != [expected.clone()]);
    }
    assert!(answers >= 5, "{answers} answers: it is asked again while it is in use");
    assert_eq!((lost, port.count("neighbours")), (0, 1));
}

#[test]
fn who_probes_absent_addresses_takes_no_neighbour_away_whose_answer_is_old() {
    let mut port = router();
    let (frame, expected) = (packet_to(HOP, 9), packet_to_by(HOP, 8, 1));
    port.give(&frame);
    answer(&mut port, Span::from_secs(58), all_there);
    let mut number = 0u16;
    for step in 0..100 {
        assert!(port.give(&frame) == std::slice::from_ref(&expected), "step {step}");
        for _ in 0..80 {
            let [high, low] = number.to_be_bytes();
            port.give(&packet_to([10, 0, 16 + high, low], 9));
            number += 1;
        }
        answer(&mut port, Span::from_millis(100), all_there);
    }
    // A neighbour that is gone is removed, and a packet for it ends as unresolved.
    answer(&mut port, Span::from_secs(70), |_| None);
    let before = port.count("unresolved");
    assert_ne!(port.give(&frame), [expected]);
    answer(&mut port, Span::from_secs(4), |_| None);
    assert_eq!((port.count("unresolved"), port.count("neighbours")), (before + 1, 0));
}

fn tcp() -> Port<Forwarder> {
    let mut port = port(Role::Balancer(balancer_of(TCP, 2)));
    answer(&mut port, Span::from_millis(200), all_there);
    port
}

/// Returns the number of connections that remain after `seconds` without a packet.
fn left_after(port: &mut Port<Forwarder>, seconds: u64) -> u64 {
    answer(port, Span::from_secs(seconds), all_there);
    port.count("connections")
}

#[test]
fn a_reset_or_fin_of_one_who_does_not_see_the_connection_ends_nothing() {
    let mut port = tcp();
    let client = client(1);
    let backend = shake_hands(&mut port, &client);
    let far = 1 << 30;
    for bits in [RST, RST | ACK, FIN, FIN | ACK] {
        for (ends, sequence, acknowledged) in [(&client, 8u32, 100u32), (&backend, 100, 8)] {
            for (sequence, acknowledged) in [
                (sequence.wrapping_add(far), acknowledged.wrapping_add(far)),
                (sequence.wrapping_sub(far), acknowledged),
                (sequence + 1, acknowledged.wrapping_sub(far)),
            ] {
                port.give(&segment(ends, bits, sequence, acknowledged));
            }
        }
    }
    assert_eq!(left_after(&mut port, 300), 1);
    let sent = port.give(&segment(&backend, ACK, 100, 8));
    assert_eq!(ends_of(&sent[0]), client.reversed());
    // A reset with the expected sequence number ends a connection, and so do two FINs.
    port.give(&segment(&client, RST, 8, 0));
    assert_eq!(left_after(&mut port, 11), 0);
    let backend = shake_hands(&mut port, &client);
    port.give(&segment(&client, FIN | ACK, 8, 100));
    port.give(&segment(&backend, FIN | ACK, 100, 9));
    assert_eq!(left_after(&mut port, 11), 0);
}

#[test]
fn a_reset_with_data_in_flight_ends_a_connection_and_both_ways_after_four_minutes() {
    let mut port = tcp();
    let client = client(1);
    let backend = shake_hands(&mut port, &client);
    port.give(&segment_with(&client, ACK, (8, 100), 300));
    port.give(&segment(&backend, RST | ACK, 90_000, 308));
    assert_eq!(left_after(&mut port, 11), 0);
    // A FIN from one side, and a reset whose numbers are only near the expected ones, do not end a
    // connection at once.
    for (bits, sequence, acknowledged) in [(FIN | ACK, 100, 8), (RST | ACK, 90_000, 7)] {
        let backend = shake_hands(&mut port, &client);
        port.give(&segment(&backend, bits, sequence, acknowledged));
        assert_eq!((left_after(&mut port, 239), left_after(&mut port, 2)), (1, 0));
    }
}

#[test]
fn a_forged_reset_of_a_client_does_not_end_its_handshake() {
    let mut port = tcp();
    let client = client(1);
    let sent = port.give(&segment(&client, SYN, 7, 0));
    let backend = ends_of(&sent[0]).reversed();
    port.give(&segment(&client, RST, 1 << 30, 0));
    port.give(&segment(&backend, SYN | ACK, 99, 8));
    port.give(&segment(&client, ACK, 8, 100));
    assert_eq!(left_after(&mut port, 11), 1);
    // A refusal by the backend ends the connection.
    let refused = Ends { ports: (6000, PORT), ..client };
    let sent = port.give(&segment(&refused, SYN, 7, 0));
    port.give(&segment(&ends_of(&sent[0]).reversed(), RST | ACK, 0, 8));
    assert_eq!((port.count("connections_half_open"), left_after(&mut port, 11)), (0, 1));
}

#[test]
fn replies_follow_a_client_to_another_mac_but_not_who_only_has_its_address() {
    let mut port = tcp();
    let client = client(1);
    let backend = shake_hands(&mut port, &client);
    let at = |number| Ends { macs: (MacAddr([2, 0, 0, 0, 7, number]), OWN), ..client };
    let mut reply_to = |frame: &[u8]| {
        assert_eq!(port.give(frame).len(), 1);
        let sent = port.give(&segment(&backend, ACK, 100, 8));
        ends_of(&sent[0]).macs.1
    };
    assert_eq!(reply_to(&segment(&at(1), ACK, 8, 100)), at(1).macs.0);
    for (bits, sequence, acknowledged) in
        [(ACK, 8 + (1 << 30), 100), (ACK, 8, 100 + (1 << 30)), (SYN, 8, 100), (RST, 9, 0)]
    {
        let spoofed = segment(&at(2), bits, sequence, acknowledged);
        assert_eq!(reply_to(&spoofed), at(1).macs.0);
    }
    let group = Ends { macs: (MacAddr([3, 0, 0, 0, 7, 1]), OWN), ..client };
    assert_eq!(reply_to(&segment(&group, ACK, 8, 100)), at(1).macs.0);
    assert_eq!(reply_to(&segment(&at(3), ACK, 8, 100)), at(3).macs.0);
}

#[test]
fn replies_of_udp_follow_the_last_packet_of_an_established_flow() {
    let mut port = balancer(2);
    answer(&mut port, Span::from_millis(200), all_there);
    let (_, frame) = backend_of(&mut port, 1);
    let reply = datagram(&ends_of(&frame).reversed(), b"that.");
    let mut elsewhere = request(1);
    elsewhere[6..12].copy_from_slice(&[2, 0, 0, 0, 7, 1]);
    port.give(&elsewhere);
    let first = ends_of(&port.give(&reply)[0]).macs.1;
    assert_eq!(first, ends_of(&request(1)).macs.0, "it is not established yet");
    port.give(&elsewhere);
    assert_eq!(ends_of(&port.give(&reply)[0]).macs.1, ends_of(&elsewhere).macs.0);
}
