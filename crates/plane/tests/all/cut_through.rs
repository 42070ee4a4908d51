//! Frames whose head arrives before their tail, with a correct or wrong FCS (thesis 000 §3.3.1),
//! and the behaviour at a full output (§3.2.1).

use axon_node::{Action, Dataplane, Drop, PortKind, Punt};
use axon_plane::{OnFull, Plane, PlaneConfig, PuntLimit};
use axon_wire::congestion::Congestion;
use axon_wire::header::{self, HeaderView, PacketType};
use axon_wire::{Bytes, FrameBuf, HopWidth, Hops, MacAddr, PortNo, Span, Time, link};
use proptest::prelude::*;

const HOST: PortNo = PortNo(0);
const IN: PortNo = PortNo(1);
const OUT: PortNo = PortNo(2);
const WIDTH: HopWidth = HopWidth::Eight;

fn at(micros: u64) -> Time {
    Time::ZERO + Span::from_micros(micros)
}

/// Port 0 leads to hosts, ports 1 to 3 to Axons.
fn plane(change: impl FnOnce(&mut PlaneConfig)) -> Plane {
    let mut config = PlaneConfig::with_ports(4, MacAddr([2, 0, 0, 0, 0, 0xaa]));
    config.punt = PuntLimit { frames_per_second: 1_000_000, burst: 10_000 };
    change(&mut config);
    let mut plane = Plane::new(config);
    for port in 0..4 {
        plane.link(Time::ZERO, PortNo(port), true, &mut Vec::new());
        plane.set_kind(PortNo(port), if port == 0 { PortKind::Host } else { PortKind::Axon });
    }
    plane
}

/// Builds a packet with a name in its last byte.
fn packet(forward: &Hops, reverse: &Hops, name: u8) -> FrameBuf {
    let mut bytes = vec![0; WIDTH.header_bytes(forward.len() + reverse.len())];
    header::emit(&mut bytes, WIDTH, PacketType::Ethernet, forward, reverse).unwrap();
    bytes.extend_from_slice(&[2; 60]);
    *bytes.last_mut().unwrap() = name;
    FrameBuf::new(&bytes)
}

fn transit(name: u8) -> FrameBuf {
    packet(&Hops::from([OUT.0, 9]), &Hops::from([5]), name)
}

fn name(frame: &FrameBuf) -> u8 {
    *frame.bytes().last().unwrap()
}

/// Describes the plane's actions in words.
fn words(out: Vec<Action>) -> Vec<String> {
    let word = |action: Action| match action {
        Action::Transmit { port, frame, intact, .. } => {
            format!("{} {port}{}", name(&frame), if intact { "" } else { " broken" })
        }
        Action::Dropped { reason, frame, .. } => format!("{} {}", name(&frame), reason.name()),
        Action::Punt { frame, punt, .. } => format!("{} {}", name(&frame), punt.name()),
        other => format!("{other:?}"),
    };
    out.into_iter().map(word).collect()
}

#[test]
fn a_bad_frame_leaves_broken_or_not_at_all() {
    let mut plane = plane(|_| ());
    let mut out = Vec::new();
    plane.receive(at(10), IN, transit(1), at(10), false, &mut out);
    assert_eq!(words(out), ["1 bad_fcs"], "all of it is here before it leaves");
    let mut out = Vec::new();
    plane.receive(at(10), IN, transit(2), at(20), false, &mut out);
    assert_eq!(words(out), ["2 p2 broken"], "its head leaves before its tail is here");
    assert_eq!(plane.counters().port(IN).dropped(Drop::BadFcs), 1);
}

#[test]
fn a_queued_frame_is_judged_when_its_turn_comes() {
    let mut plane = plane(|_| ());
    let mut out = Vec::new();
    plane.receive(at(0), IN, transit(1), at(0), true, &mut out);
    for (port, name, complete_at) in [(IN, 2, 20), (PortNo(3), 3, 40), (IN, 4, 50)] {
        plane.receive(at(10), port, transit(name), at(complete_at), false, &mut out);
    }
    assert_eq!(out.len(), 1, "the wire is taken");
    plane.tx_done(at(30), OUT, &mut out);
    assert_eq!(words(out), ["1 p2", "2 bad_fcs", "4 p2 broken"], "4 still comes in, 2 is here");
    let mut out = Vec::new();
    plane.tx_done(at(40), OUT, &mut out);
    assert_eq!(words(out), ["3 bad_fcs"]);
    assert!(!plane.ports().wires().is_waiting(OUT));
}

#[test]
fn nobody_reads_a_frame_before_its_tail_is_here() {
    let mut plane = plane(|_| ());
    let hello = |name: u8| FrameBuf::new(&link::emit(MacAddr([2; 6]), &[name; 46]));
    let mut out = Vec::new();
    plane.receive(at(0), IN, hello(1), at(30), true, &mut out);
    plane.receive(at(1), OUT, hello(2), at(20), false, &mut out);
    plane.receive(at(2), IN, hello(3), at(2), true, &mut out);
    assert!(out.is_empty(), "3 is whole, but came behind 1");
    assert_eq!((plane.held_frames(), plane.deadline()), (3, Some(at(20))));
    plane.timeout(at(19), &mut out);
    assert!(out.is_empty());
    plane.timeout(at(20), &mut out);
    assert_eq!(words(std::mem::take(&mut out)), ["2 bad_fcs"]);
    plane.timeout(at(30), &mut out);
    assert_eq!(words(out), ["1 link_local", "3 link_local"]);
    assert_eq!((plane.held_frames(), plane.deadline()), (0, None));
    assert_eq!(plane.counters().port(IN).punted(Punt::LinkLocal), 2);
}

#[test]
fn a_frame_is_broken_when_its_port_loses_carrier_before_its_tail() {
    let mut plane = plane(|_| ());
    let mut out = Vec::new();
    let hello = FrameBuf::new(&link::emit(MacAddr([2; 6]), &[9; 46]));
    plane.receive(at(0), PortNo(3), transit(1), at(0), true, &mut out);
    plane.receive(at(0), IN, transit(2), at(20), true, &mut out);
    plane.receive(at(0), IN, hello, at(20), true, &mut out);
    plane.link(at(10), IN, false, &mut out);
    plane.tx_done(at(15), OUT, &mut out);
    plane.timeout(at(20), &mut out);
    assert_eq!(words(out), ["1 p2", "2 p2 broken", "9 bad_fcs"]);
}

#[test]
fn an_input_keeps_what_an_output_refuses_and_offers_it_again_in_order() {
    let mut plane = plane(|config| {
        config.on_full = OnFull::Nack;
        config.queue_bytes_max = Bytes(150);
        config.nack_bytes_max = Bytes(210);
    });
    let mut out = Vec::new();
    // 69 bytes each: one on the wire, two in the buffer, three at the input.
    for name in 1..=7 {
        plane.receive(at(0), IN, transit(name), at(0), true, &mut out);
    }
    assert_eq!(words(std::mem::take(&mut out)), ["1 p2", "7 queue_full"]);
    assert_eq!((plane.queue(IN).refused_bytes, plane.queue(OUT).frames), (Bytes(207), 5));
    // Another output is not blocked, and another input has room of its own.
    plane.receive(
        at(0),
        IN,
        packet(&Hops::from([3, 9]), &Hops::default(), 8),
        at(0),
        true,
        &mut out,
    );
    plane.receive(at(0), PortNo(3), transit(9), at(0), true, &mut out);
    assert_eq!(words(std::mem::take(&mut out)), ["8 p3"]);
    for _ in 0..7 {
        plane.tx_done(at(1), OUT, &mut out);
    }
    let sent = words(out);
    let of_input: Vec<&String> = sent.iter().filter(|word| !word.starts_with('9')).collect();
    assert_eq!(of_input, ["2 p2", "3 p2", "4 p2", "5 p2", "6 p2"]);
    assert_eq!((sent.len(), plane.queue(IN).refused_bytes), (6, Bytes(0)));
    assert!(!plane.ports().wires().is_waiting(OUT));
    assert_eq!(plane.counters().port(IN).nacks, 3);
}

#[test]
fn what_an_input_keeps_ends_with_the_carrier_of_the_output() {
    let mut plane = plane(|config| {
        config.on_full = OnFull::Nack;
        config.queue_bytes_max = Bytes(150);
    });
    let mut out = Vec::new();
    for name in 1..=6 {
        plane.receive(at(0), IN, transit(name), at(0), true, &mut out);
    }
    out.clear();
    plane.link(at(1), OUT, false, &mut out);
    let expected: Vec<String> = (2..=6).map(|name| format!("{name} port_down")).collect();
    assert_eq!(words(out), expected);
    assert_eq!((plane.queue(IN).refused_bytes, plane.queue(OUT).frames), (Bytes(0), 0));
}

#[test]
fn a_full_output_reports_to_the_edge_where_the_frame_came_from() {
    let mut plane = plane(|config| {
        config.on_full = OnFull::CongestionMessage;
        config.queue_bytes_max = Bytes(100);
        config.congestion = PuntLimit { frames_per_second: 1, burst: 2 };
    });
    let mut out = Vec::new();
    for name in 1..=5 {
        plane.receive(at(0), IN, transit(name), at(0), true, &mut out);
        plane.tx_done(at(0), IN, &mut out);
    }
    // 1 is on the wire, 2 is queued; 3 and 4 are reported, 5 is beyond the limit.
    let kinds: Vec<_> = out
        .iter()
        .map(|action| match action {
            Action::Transmit { port, .. } => format!("{port}"),
            Action::Dropped { reason, .. } => reason.name().to_owned(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(kinds, ["p2", "p1", "queue_full", "p1", "queue_full", "queue_full"]);
    let Action::Transmit { frame, .. } = &out[1] else { panic!("it is sent") };
    let view = HeaderView::parse(frame.bytes(), WIDTH).unwrap();
    assert_eq!(view.packet_type(), PacketType::Congestion);
    // One hop is consumed: the one to the ingress port of the refused packet.
    assert_eq!(view.forward(), Hops::to_control(), "5 was the host port");
    let message = Congestion::parse(view.payload()).unwrap();
    assert_eq!((message.host_port, message.egress), (PortNo(5), OUT));
    assert_eq!((message.queued, message.switch), (Bytes(69), plane.config().mac));
    assert_eq!(plane.counters().port(IN).congestion_messages, 2);
}

#[test]
fn a_full_host_port_reports_to_the_edge_as_well() {
    let mut plane = plane(|config| {
        config.on_full = OnFull::CongestionMessage;
        config.queue_bytes_max = Bytes(100);
    });
    let mut out = Vec::new();
    for name in 1..=3 {
        let frame = packet(&Hops::from([HOST.0]), &Hops::from([4, 5]), name);
        plane.receive(at(0), IN, frame, at(0), true, &mut out);
    }
    let Action::Transmit { port: IN, frame, .. } = &out[1] else { panic!("{out:?}") };
    let view = HeaderView::parse(frame.bytes(), WIDTH).unwrap();
    assert_eq!(view.forward(), Hops::from([4, PortNo::CONTROL.0]));
    assert_eq!(Congestion::parse(view.payload()).unwrap().host_port, PortNo(5));
}

proptest! {
    /// With any tails, the control plane gets exactly the intact frames, each when it is complete,
    /// and those of one ingress in order of arrival.
    #[test]
    fn the_control_plane_reads_sound_frames_only(
        frames in prop::collection::vec((1..4u16, 0..50u64, 0..40u64, any::<bool>()), 1..80)
    ) {
        let mut plane = plane(|_| ());
        let mut now = Time::ZERO;
        let mut got: Vec<(PortNo, u8, Time)> = Vec::new();
        let mut bad = 0;
        let mut take = |out: &mut Vec<Action>, now: Time| {
            for action in out.drain(..) {
                match action {
                    Action::Punt { ingress, frame, .. } => got.push((ingress, name(&frame), now)),
                    Action::Dropped { reason: Drop::BadFcs, .. } => bad += 1,
                    other => panic!("{other:?}"),
                }
            }
        };
        let mut complete = Vec::new();
        for (number, &(port, gap, tail, intact)) in frames.iter().enumerate() {
            let next = now + Span::from_micros(gap);
            let mut out = Vec::new();
            while let Some(at) = plane.deadline().filter(|&at| at <= next) {
                plane.timeout(at, &mut out);
                take(&mut out, at);
            }
            now = next;
            let frame = FrameBuf::new(&link::emit(MacAddr([2; 6]), &[number as u8; 46]));
            let complete_at = now + Span::from_micros(tail);
            complete.push(complete_at);
            plane.receive(now, PortNo(port), frame, complete_at, intact, &mut out);
            take(&mut out, now);
        }
        while let Some(at) = plane.deadline() {
            let mut out = Vec::new();
            plane.timeout(at, &mut out);
            take(&mut out, at);
        }
        prop_assert_eq!(bad, frames.iter().filter(|(.., intact)| !intact).count());
        for port in 1..4 {
            let of_port = got.iter().filter(|(ingress, ..)| *ingress == PortNo(port));
            let numbers: Vec<u8> = of_port.map(|&(_, number, _)| number).collect();
            let sound = frames.iter().enumerate().filter(|(_, of)| of.0 == port && of.3);
            let expected: Vec<u8> = sound.map(|(number, _)| number as u8).collect();
            prop_assert_eq!(numbers, expected);
        }
        for &(_, number, when) in &got {
            prop_assert!(when >= complete[usize::from(number)], "nobody reads ahead");
        }
    }
}
