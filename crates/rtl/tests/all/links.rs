//! Links that go down while frames are on their wires, in buffers and at outputs: each frame has
//! exactly one end.

use crate::fates::{PORTS, gates};
use crate::frames::Frames;
use axon_node::{Action, Dataplane, Drop, Input, Node, PortKind, PortSetting};
use axon_rtl::RtlDataplane;
use axon_wire::{FrameBuf, HopWidth, PortNo, Span, Time};

/// Frames of the random test.
const FRAMES: u64 = 3000;

/// Returns the frames that ended with these actions, and answers each transmission.
fn ends(plane: &mut RtlDataplane, now: Time, mut out: Vec<Action>) -> Vec<Action> {
    let mut all = Vec::new();
    while !out.is_empty() {
        for action in std::mem::take(&mut out) {
            if let Action::Transmit { port, .. } = action {
                plane.handle(now, Input::TxDone { port }, &mut out);
            }
            all.push(action);
        }
    }
    all
}

fn handle(plane: &mut RtlDataplane, now: Time, input: Input) -> Vec<Action> {
    let mut out = Vec::new();
    plane.handle(now, input, &mut out);
    ends(plane, now, out)
}

/// Handles deadlines before `until`, and all of them without it.
fn run(plane: &mut RtlDataplane, now: &mut Time, until: Option<Time>) -> Vec<Action> {
    let mut all = Vec::new();
    while let Some(at) = plane.deadline().filter(|&at| until.is_none_or(|until| at < until)) {
        *now = at.max(*now);
        all.extend(handle(plane, *now, Input::Timeout));
    }
    *now = until.unwrap_or(*now).max(*now);
    all
}

fn set_up(kinds: [PortKind; PORTS as usize]) -> Option<RtlDataplane> {
    let mut plane = gates(HopWidth::Eight)?;
    for (port, kind) in (0..PORTS).map(PortNo).zip(kinds) {
        plane.set_port(Time::ZERO, port, PortSetting::Kind(kind), &mut Vec::new()).expect("a kind");
        handle(&mut plane, Time::ZERO, Input::Link { port, up: true });
    }
    Some(plane)
}

#[test]
fn frames_behind_the_one_on_a_wire_that_is_cut_are_lost_whole() {
    let kinds = [PortKind::Axon, PortKind::Axon, PortKind::Host, PortKind::Host];
    let Some(mut plane) = set_up(kinds) else { return };
    let (mut now, port) = (Time::ZERO, PortNo(0));
    let packets: Vec<Vec<u8>> = (0..5u8)
        .map(|number| [&[0x10, 0, 0x70, 1, 0, 0, 1][..], &[number; 193]].concat())
        .collect();
    let mut all = Vec::new();
    for packet in &packets {
        let frame = FrameBuf::new(packet);
        let input = Input::Frame { port, frame, complete_at: now, intact: true };
        all.extend(handle(&mut plane, now, input));
    }
    // 300 bytes: the end of the first frame, and a part of the second.
    all.extend(run(&mut plane, &mut now, Some(Time::ZERO + Span::from_nanos(8 * 300))));
    all.extend(handle(&mut plane, now, Input::Link { port, up: false }));
    all.extend(run(&mut plane, &mut now, None));
    let left = all.iter().filter_map(|action| match action {
        Action::Transmit { port, frame, intact, .. } => Some((port.0, frame.bytes()[7], *intact)),
        _ => None,
    });
    assert_eq!(left.collect::<Vec<_>>(), [(1, 0, true), (1, 1, false)], "the second is cut short");
    let dropped = all.iter().filter_map(|action| match action {
        Action::Dropped { ingress, reason, frame } => Some((*ingress, *reason, frame.bytes())),
        _ => None,
    });
    let expected = packets[2..].iter().map(|packet| (port, Drop::PortDown, &packet[..]));
    assert!(dropped.eq(expected), "{all:?}");
    assert_eq!(plane.inside(), 0);
}

#[test]
fn each_frame_has_one_end_while_links_go_down_and_come_back() {
    let kinds = [PortKind::Axon, PortKind::Axon, PortKind::Host, PortKind::Host];
    let Some(mut plane) = set_up(kinds) else { return };
    let (mut now, mut all, mut came) = (Time::ZERO, Vec::new(), 0);
    let mut frames = Frames::new(1, HopWidth::Eight);
    while came < FRAMES {
        let next = now + Span::from_nanos(frames.below(4000));
        all.extend(run(&mut plane, &mut now, Some(next)));
        let port = PortNo(frames.below(PORTS.into()) as u16);
        if frames.one_in(12) {
            let up = !axon_node::PortView::is_up(&plane, port);
            all.extend(handle(&mut plane, now, Input::Link { port, up }));
            continue;
        }
        came += 1;
        let mut out = Vec::new();
        if frames.one_in(8) {
            let frame = FrameBuf::new(&frames.frame(PortKind::Host, 1000));
            plane.send(now, port, frame, &mut out);
        } else {
            let bytes = frames.frame(kinds[port.index()], 1000);
            let (frame, intact) = (FrameBuf::new(&bytes), !frames.one_in(10));
            plane.handle(now, Input::Frame { port, frame, complete_at: now, intact }, &mut out);
        }
        all.extend(ends(&mut plane, now, out));
    }
    all.extend(run(&mut plane, &mut now, None));
    assert_eq!((plane.inside(), all.len() as u64), (0, came));
    let is_drop = |action: &&Action| matches!(action, Action::Dropped { .. });
    let ports = || (0..PORTS).map(PortNo).chain([PortNo::CONTROL]);
    let dropped =
        |reason| -> u64 { ports().map(|port| plane.counters().port(port).dropped(reason)).sum() };
    let drops: u64 = Drop::ALL.iter().map(|&reason| dropped(reason)).sum();
    assert_eq!(drops, all.iter().filter(is_drop).count() as u64);
    let received: u64 = ports().map(|port| plane.counters().port(port).rx_frames).sum();
    assert_eq!(received, came);
    assert!(dropped(Drop::PortDown) > 100 && dropped(Drop::BadFcs) > 50);
}
