//! Behaviour of a whole plane: scripted cases, and invariants that hold for any input.

use crate::model::{Event, PORTS, World};
use axon_node::{Action, Dataplane, Drop, PortKind, PortView, Punt};
use axon_plane::dcb::DcbConfig;
use axon_plane::shared_buffer::Share;
use axon_plane::{OnFull, Plane, PlaneConfig, PuntLimit};
use axon_wire::header::{self, HeaderView, PacketType};
use axon_wire::mac_control::{self, MacControl, Quanta};
use axon_wire::priority::{Priority, PrioritySet, TrafficClass};
use axon_wire::{Bytes, FrameBuf, HopWidth, Hops, MacAddr, PortNo, Rate, Route, Span, Time, link};
use proptest::prelude::*;

const WIDTHS: [HopWidth; 3] = [HopWidth::Four, HopWidth::Eight, HopWidth::Sixteen];
const T0: Time = Time::ZERO;
/// Port 0 leads to hosts, ports 1 to 3 to Axons, port 4 is unknown; port 5 leads to hosts, and is
/// down.
const HOST: PortNo = PortNo(0);
const AXON: PortNo = PortNo(1);
const UNKNOWN: PortNo = PortNo(4);
const DOWN: PortNo = PortNo(5);

fn plane(change: impl FnOnce(&mut PlaneConfig)) -> Plane {
    let mut config = PlaneConfig::with_ports(6, MacAddr([2, 0, 0, 0, 0, 0xaa]));
    change(&mut config);
    let mut plane = Plane::new(config);
    for (port, kind) in
        [PortKind::Host, PortKind::Axon, PortKind::Axon, PortKind::Axon].into_iter().enumerate()
    {
        plane.set_kind(PortNo(port as u16), kind);
    }
    plane.set_kind(DOWN, PortKind::Host);
    for port in 0..5 {
        plane.link(T0, PortNo(port), true, &mut Vec::new());
    }
    plane
}

fn ethernet(to: MacAddr, bytes: usize) -> Vec<u8> {
    let mut frame = vec![0x33; bytes];
    frame[..6].copy_from_slice(&to.0);
    frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
    frame[12..14].copy_from_slice(&[8, 0]);
    frame
}

fn host(last: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 1, last])
}

fn packet(packet_type: PacketType, forward: &Hops, reverse: &Hops, inner: &[u8]) -> Vec<u8> {
    let width = HopWidth::Eight;
    let mut bytes = vec![0; width.header_bytes(forward.len() + reverse.len())];
    header::emit(&mut bytes, width, packet_type, forward, reverse).unwrap();
    bytes.extend_from_slice(inner);
    bytes
}

#[test]
fn a_frame_that_meets_no_obstacle_passes_and_no_other() {
    let change = |config: &mut PlaneConfig| config.self_congestion_pause = false;
    let mut plane = plane(change);
    plane.install(HOST, host(2), &Hops::from([AXON.0, 3]).into()).unwrap();
    let from_host = || FrameBuf::new(&ethernet(host(2), 100));
    let in_transit = |next: PortNo| {
        let hops = Hops::from([next.0, 9]);
        FrameBuf::new(&packet(PacketType::Ethernet, &hops, &Hops::default(), &[0x44; 60]))
    };
    let busy = |_| false;
    let (mut first, mut second) = (from_host(), from_host());
    assert_eq!(plane.pass(HOST, &mut first, busy), Some(AXON));
    let view = HeaderView::parse(first.bytes(), HopWidth::Eight).unwrap();
    assert_eq!((view.forward_count(), view.reverse_count()), (1, 1));
    assert_eq!(view.payload(), second.bytes());
    assert_eq!(plane.pass(HOST, &mut second, busy), None, "the wire is busy");
    assert_eq!(second.bytes(), ethernet(host(2), 100));
    assert_eq!(plane.pass(HOST, &mut from_host(), |port| port == AXON), Some(AXON), "free by now");
    assert_eq!(plane.pass(AXON, &mut in_transit(PortNo(2)), busy), Some(PortNo(2)));
    let mut stripped = in_transit(HOST);
    assert_eq!(plane.pass(PortNo(3), &mut stripped, busy), Some(HOST));
    assert_eq!(stripped.bytes(), [0x44; 60]);
    for refused in [UNKNOWN, DOWN, PortNo::CONTROL, PortNo(77)] {
        assert_eq!(plane.pass(AXON, &mut in_transit(refused), busy), None, "{refused}");
    }
    let counted = plane.counters().total();
    assert_eq!((counted.rx_frames, counted.tx_frames), (4, 4));
}

fn receive(plane: &mut Plane, port: PortNo, frame: &[u8]) -> Action {
    let mut out = Vec::new();
    plane.receive(T0, port, FrameBuf::new(frame), T0, true, &mut out);
    assert_eq!(out.len(), 1, "one frame, one action");
    out.remove(0)
}

fn reason(action: Action) -> Option<Drop> {
    if let Action::Dropped { reason, .. } = action { Some(reason) } else { None }
}

#[test]
fn a_route_is_pushed_taken_and_stripped() {
    let mut plane = plane(|_| ());
    let frame = ethernet(host(9), 60);
    plane.install(HOST, host(9), &Route::from([1, 7])).unwrap();
    let Action::Transmit { port, frame: sent, .. } = receive(&mut plane, HOST, &frame) else {
        panic!("not sent")
    };
    let expected = packet(PacketType::Ethernet, &Hops::from([7]), &Hops::from([0]), &frame);
    assert_eq!((port, sent.bytes()), (AXON, &expected[..]));

    let arriving = packet(PacketType::Ethernet, &Hops::from([0]), &Hops::from([3]), &frame);
    let Action::Transmit { port, frame: sent, .. } = receive(&mut plane, AXON, &arriving) else {
        panic!("not sent")
    };
    assert_eq!((port, sent.bytes()), (HOST, &frame[..]));
}

#[test]
fn a_miss_and_a_broadcast_get_the_default_header() {
    for width in WIDTHS {
        let mut plane = plane(|config| config.hop_width = width);
        for to in [host(9), MacAddr::BROADCAST, MacAddr([0x33, 0x33, 0, 0, 0, 1])] {
            let frame = ethernet(to, 60);
            let action = receive(&mut plane, HOST, &frame);
            let Action::Punt { ingress, frame: punted, punt, header_bytes } = action else {
                panic!("not punted")
            };
            let view = HeaderView::parse(punted.bytes(), width).unwrap();
            assert_eq!((ingress, punt, view.forward_count()), (HOST, Punt::Miss, 0));
            assert_eq!(view.packet_type(), PacketType::Ethernet);
            assert_eq!(usize::from(header_bytes), view.header_bytes(), "nobody parses it again");
            assert_eq!((view.reverse(), view.payload()), (Hops::from([0]), &frame[..]));
        }
    }
}

#[test]
fn bad_frames_are_counted_by_reason() {
    let mut plane = plane(|_| ());
    plane.install(HOST, host(9), &Route::from([1])).unwrap();
    let to_host =
        |inner: &[u8]| packet(PacketType::Ethernet, &Hops::from([0]), &Hops::default(), inner);
    let via = |hop| packet(PacketType::Ethernet, &Hops::from([hop]), &Hops::default(), &[0; 60]);
    let mut tagged = ethernet(host(9), 1519);
    tagged[12..14].copy_from_slice(&[0x81, 0]);
    let cases = [
        (HOST, vec![], Drop::Malformed),
        (HOST, vec![2; 13], Drop::Malformed),
        (HOST, ethernet(host(9), 1515), Drop::Oversized),
        (HOST, tagged, Drop::Oversized),
        (HOST, MacControl::Pause(Quanta(9)).emit(host(1)).to_vec(), Drop::MacControl),
        (AXON, MacControl::Pause(Quanta(9)).emit(host(1)).to_vec(), Drop::MacControl),
        (AXON, vec![], Drop::Malformed),
        (AXON, ethernet(host(9), 60), Drop::Malformed),
        (AXON, vec![0xf0; 60], Drop::Malformed),
        (AXON, link::DESTINATION.0.to_vec(), Drop::Malformed),
        (AXON, to_host(&[0; 13]), Drop::Malformed),
        (AXON, to_host(&[0; 1515]), Drop::Oversized),
        (AXON, via(99), Drop::NoSuchPort),
        (AXON, via(UNKNOWN.0), Drop::EgressUnknown),
        (AXON, via(DOWN.0), Drop::PortDown),
        (UNKNOWN, ethernet(host(9), 60), Drop::PortUnknown),
        (UNKNOWN, via(1), Drop::PortUnknown),
        (PortNo(77), via(1), Drop::NoSuchPort),
    ];
    for (port, frame, expected) in cases {
        let before = plane.counters().port(port).dropped(expected);
        assert_eq!(reason(receive(&mut plane, port, &frame)), Some(expected), "{frame:02x?}");
        assert_eq!(plane.counters().port(port).dropped(expected), before + 1);
    }
    let mut tagged = ethernet(host(9), 1518);
    tagged[12..14].copy_from_slice(&[0x81, 0]);
    assert_eq!(reason(receive(&mut plane, HOST, &tagged)), None, "a tag is on top");
}

#[test]
fn mac_control_ends_where_it_comes_in_wherever_it_is_sent_to() {
    let mut plane = plane(|_| ());
    plane.install(HOST, host(9), &Route::from([1])).unwrap();
    for to in [host(9), host(8), MacAddr::BROADCAST, mac_control::DESTINATION] {
        let mut frame = MacControl::Pause(Quanta::MAX).emit(host(1));
        frame[..6].copy_from_slice(&to.0);
        for port in [HOST, UNKNOWN] {
            assert_eq!(reason(receive(&mut plane, port, &frame)), Some(Drop::MacControl), "{to}");
        }
    }
}

#[test]
fn xoff_that_is_due_while_the_wire_is_busy_is_sent_next_and_awaits_no_time() {
    let mut plane = plane(|config| {
        let mut dcb = DcbConfig::lossy(vec![Rate::gbps(10); 6], config.mac);
        dcb.memory.lossless = PrioritySet::from_bits(1);
        for group in dcb.memory.groups.iter_mut().flatten() {
            (group.share, group.headroom) = (Share::Static(Bytes(0)), Bytes(10_000));
        }
        (dcb.pfc, dcb.pfc_quanta) = (dcb.memory.lossless, Quanta(1_000));
        config.dcb = Some(Box::new(dcb));
    });
    let mut out = Vec::new();
    let mut receive = |plane: &mut Plane, from: u16, to: u16| {
        let sent = packet(PacketType::Ethernet, &Hops::from([to, 0]), &Hops::default(), &[0; 60]);
        plane.receive(T0, PortNo(from), FrameBuf::new(&sent), T0, true, &mut out);
    };
    // The second is queued, so port 1 sends XOFF. Then a frame takes its wire before XOFF is due
    // again, half of 51.2 us later.
    receive(&mut plane, 1, 2);
    receive(&mut plane, 1, 2);
    plane.tx_done(T0, PortNo(1), &mut Vec::new());
    receive(&mut plane, 3, 1);
    let due = plane.deadline().expect("XOFF is to be repeated");
    assert_eq!(due, T0 + Span::from_nanos(25_600));
    out.clear();
    plane.timeout(due, &mut out);
    assert!(out.is_empty() && plane.deadline().is_none_or(|at| at > due), "{out:?}");
    plane.tx_done(due, PortNo(1), &mut out);
    let repeated = out.iter().any(|action| match action {
        Action::Transmit { port, frame, .. } => {
            *port == PortNo(1) && mac_control::is_mac_control(frame.bytes())
        }
        _ => false,
    });
    assert!(repeated, "{out:?}");
}

#[test]
fn a_frame_without_headroom_is_dropped_and_not_copied() {
    let mut plane = plane(|_| ());
    plane.install(HOST, host(9), &Route::from([1, 2])).unwrap();
    for (to, needed) in [(host(9), 8), (host(8), 7)] {
        for headroom in [needed - 1, needed] {
            let mut out = Vec::new();
            let frame = FrameBuf::with_headroom(headroom, &ethernet(to, 60));
            plane.receive(T0, HOST, frame, T0, true, &mut out);
            let expected = (headroom < needed).then_some(Drop::NoHeadroom);
            assert_eq!(reason(out.remove(0)), expected);
        }
    }
}

#[test]
fn a_header_longer_than_any_route_ends_at_the_axon_port_that_it_comes_in_by() {
    for width in WIDTHS {
        let most = width.header_bytes(9);
        let mut plane = plane(|config| {
            (config.hop_width, config.route_bytes_max) = (width, most);
        });
        let packet_of = |hops: u16| {
            let forward: Hops = (0..hops).map(|hop| PortNo(1 + hop % 3)).collect();
            let mut bytes = vec![0; width.header_bytes(forward.len())];
            header::emit(&mut bytes, width, PacketType::Control, &forward, &[]).unwrap();
            bytes.extend_from_slice(&[0x11; 60]);
            bytes
        };
        // Hops of 4 bits are padded to whole bytes, so one more hop may take no byte.
        let too_long = (9..).find(|&hops| width.header_bytes(hops.into()) > most).unwrap();
        assert_eq!(reason(receive(&mut plane, AXON, &packet_of(9))), None, "{width:?}");
        let ended = reason(receive(&mut plane, AXON, &packet_of(too_long)));
        assert_eq!(ended, Some(Drop::RouteTooLong), "{width:?}");
        assert_eq!(plane.counters().port(AXON).dropped(Drop::RouteTooLong), 1);
    }
}

#[test]
fn packets_for_the_control_plane_are_metered_by_the_axon_port_that_they_come_in_by() {
    let limit = PuntLimit { frames_per_second: 10, burst: 5 };
    let mut plane = plane(|config| (config.addressed, config.punt) = (limit, limit));
    let control = Hops::from([PortNo::CONTROL.0]);
    let addressed = packet(PacketType::Control, &control, &Hops::default(), &[0x11; 60]);
    let error = packet(PacketType::Control, &Hops::default(), &Hops::default(), &[0x11; 60]);
    let punted = |plane: &mut Plane, port: PortNo, bytes: &[u8]| {
        let all = (0..50).map(|_| receive(plane, port, bytes));
        all.filter(|action| matches!(action, Action::Punt { .. })).count()
    };
    for port in [AXON, PortNo(2)] {
        assert_eq!(punted(&mut plane, port, &addressed), 5, "{port}");
        assert_eq!(punted(&mut plane, port, &error), 5, "{port}");
        assert_eq!(plane.counters().port(port).dropped(Drop::PuntLimit), 90);
    }
    // Probes of a port, which its own control plane sends itself, are not limited.
    for _ in 0..50 {
        let mut out = Vec::new();
        plane.inject_packet(T0, FrameBuf::new(&addressed), &mut out);
        assert!(matches!(out[..], [Action::Punt { punt: Punt::Addressed, .. }]), "{out:?}");
    }
}

/// Frames of hosts fill the buffer of an egress port; then a control message arrives, and the
/// control plane sends a heartbeat.
#[test]
fn heartbeats_and_control_messages_go_before_the_frames_of_hosts_that_wait() {
    for lossy in [None, Some(DcbConfig::lossy(vec![Rate::gbps(10); 6], MacAddr([2; 6])))] {
        let mut plane = plane(|config| {
            config.dcb = lossy.map(|dcb| {
                let prio_tc = [TrafficClass::ZERO; 8];
                Box::new(DcbConfig { prio_tc, ..dcb })
            });
            config.queue_bytes_max = Bytes(10_000);
        });
        plane.install(HOST, host(9), &Route::from([1, 7])).unwrap();
        let (flood, mut out) = (ethernet(host(9), 1000), Vec::new());
        for _ in 0..30 {
            plane.receive(T0, HOST, FrameBuf::new(&flood), T0, true, &mut out);
        }
        let hops = Hops::from([1, PortNo::CONTROL.0]);
        let message = packet(PacketType::Control, &hops, &Hops::default(), &[0x11; 60]);
        plane.receive(T0, PortNo(2), FrameBuf::new(&message), T0, true, &mut out);
        let beat = link::emit(host(1), b"beat");
        plane.send_raw(T0, AXON, FrameBuf::new(&beat), &mut out);
        out.clear();
        let mut next = || {
            plane.tx_done(T0, AXON, &mut out);
            let Some(Action::Transmit { frame, .. }) = out.pop() else { panic!("{out:?}") };
            frame.bytes().to_vec()
        };
        assert_eq!(next(), beat);
        let after = HeaderView::parse(&next(), HopWidth::Eight).map(|view| view.packet_type());
        assert_eq!(after, Ok(PacketType::Control));
        assert!(next().len() > 1000, "the hosts' are still there");
    }
}

#[test]
fn a_flooding_host_is_limited_and_cannot_silence_discovery() {
    let mut plane = plane(|config| config.punt = PuntLimit { frames_per_second: 10, burst: 3 });
    let flood = ethernet(MacAddr::BROADCAST, 60);
    let passed = (0..50).filter(|_| reason(receive(&mut plane, HOST, &flood)).is_none()).count();
    assert_eq!(passed, 3);
    assert_eq!(plane.counters().port(HOST).dropped(Drop::PuntLimit), 47);
    let hello = link::emit(host(1), b"hello");
    for port in [HOST, AXON, UNKNOWN] {
        let action = receive(&mut plane, port, &hello);
        let Action::Punt { ingress, frame, punt, .. } = action else { panic!("{action:?}") };
        assert_eq!((ingress, punt, frame.bytes()), (port, Punt::LinkLocal, &hello[..]));
    }
}

#[test]
fn lost_carrier_empties_the_queue_and_frees_the_wire() {
    let mut plane = plane(|_| ());
    let transit = packet(PacketType::Ethernet, &Hops::from([1]), &Hops::default(), &[0; 60]);
    for _ in 0..3 {
        receive_any(&mut plane, PortNo(2), &transit);
    }
    assert_eq!(plane.queue(AXON).frames, 2);
    let mut out = Vec::new();
    plane.link(T0, AXON, false, &mut out);
    assert_eq!(out.len(), 2);
    assert!(out.into_iter().all(|action| reason(action) == Some(Drop::PortDown)));
    assert_eq!((plane.queue(AXON).bytes, plane.is_up(AXON)), (Bytes(0), false));
    assert_eq!(plane.counters().port(PortNo(2)).dropped(Drop::PortDown), 2);
    plane.link(T0, AXON, true, &mut Vec::new());
    assert!(matches!(receive(&mut plane, PortNo(2), &transit), Action::Transmit { .. }));
}

#[test]
fn a_queued_axon_packet_never_reaches_a_port_that_has_hosts_by_then() {
    let mut plane = plane(|_| ());
    let transit = packet(PacketType::Ethernet, &Hops::from([1]), &Hops::default(), &[0; 60]);
    for _ in 0..3 {
        receive_any(&mut plane, PortNo(2), &transit);
    }
    let mut out = Vec::new();
    let hello = FrameBuf::new(&link::emit(host(1), b"hello"));
    plane.send_raw(T0, AXON, hello.clone(), &mut out);
    plane.set_kind(AXON, PortKind::Host);
    plane.tx_done(T0, AXON, &mut out);
    let sent = out.pop().unwrap();
    assert_eq!(sent, Action::Transmit { port: AXON, frame: hello, complete_at: T0, intact: true });
    assert_eq!(out, [], "a link frame goes first");
    plane.tx_done(T0, AXON, &mut out);
    let reasons: Vec<_> = out.drain(..).map(reason).collect();
    assert_eq!(reasons, [Some(Drop::KindChanged); 2]);
}

#[test]
fn what_the_control_plane_sends_has_its_priority_whatever_its_destination() {
    let control = Priority::new(6).unwrap();
    let mut plane = plane(|config| {
        config.control_priority = control;
        config.dcb = Some(Box::new(DcbConfig::lossy(vec![Rate::gbps(10); 6], config.mac)));
    });
    let transit = |priority: u8| {
        let to_host = (PacketType::Ethernet, &Hops::from([HOST.0]), &Hops::default());
        let mut sent = packet(to_host.0, to_host.1, to_host.2, &ethernet(host(priority), 60));
        header::set_priority(&mut sent, HopWidth::Eight, Priority::new(priority).unwrap());
        sent
    };
    // An Axon header would begin with its type; these octets are those of addresses.
    let first_octets = (0..16).map(|nibble| nibble << 4 | 2);
    let hosts = first_octets.map(|octet| MacAddr([octet, 0, 0, 0, 0, 9]));
    for to in hosts.chain([MacAddr::BROADCAST, link::DESTINATION]) {
        let mut out = Vec::new();
        // The first takes the wire; the others are queued, each in the strict class of its
        // priority.
        for priority in [0, 5, 7] {
            let sent = FrameBuf::new(&transit(priority));
            plane.receive(T0, AXON, sent, T0, true, &mut out);
        }
        plane.send_raw(T0, HOST, FrameBuf::new(&ethernet(to, 60)), &mut out);
        (0..4).for_each(|_| plane.tx_done(T0, HOST, &mut out));
        let sent = out.iter().map(|action| match action {
            Action::Transmit { port: HOST, frame, .. } => MacAddr::destination_of(frame.bytes()),
            other => panic!("{to}: {other:?}"),
        });
        let expected = [host(0), host(7), to, host(5)].map(Some);
        assert_eq!(sent.collect::<Vec<_>>(), expected, "{to}");
    }
}

#[test]
fn the_control_plane_can_reach_every_port_and_itself() {
    let mut plane = plane(|_| ());
    let mut out = Vec::new();
    let mut inject = |plane: &mut Plane, hops: &Hops| {
        let bytes = packet(PacketType::Control, hops, &Hops::default(), b"x");
        plane.inject_packet(T0, FrameBuf::new(&bytes), &mut out);
        out.remove(0)
    };
    let Action::Transmit { port, frame, .. } = inject(&mut plane, &Hops::from([2, 5])) else {
        panic!("not sent")
    };
    let way_back = Hops::from([PortNo::CONTROL.0]);
    let expected = packet(PacketType::Control, &Hops::from([5]), &way_back, b"x");
    assert_eq!((port, frame.bytes()), (PortNo(2), &expected[..]));
    let Action::Punt { ingress, punt, .. } = inject(&mut plane, &Hops::to_control()) else {
        panic!("not punted")
    };
    assert_eq!((ingress, punt), (PortNo::CONTROL, Punt::Addressed));
    let Action::Punt { punt, .. } = inject(&mut plane, &Hops::from([0])) else {
        panic!("not punted")
    };
    assert_eq!(punt, Punt::Error, "no control packet to a host");
    let raw = [
        (HOST, None),
        (AXON, Some(Drop::KindChanged)),
        (UNKNOWN, Some(Drop::EgressUnknown)),
        (DOWN, Some(Drop::PortDown)),
        (PortNo(9), Some(Drop::NoSuchPort)),
    ];
    for (port, expected) in raw {
        plane.send_raw(T0, port, FrameBuf::new(&ethernet(host(1), 60)), &mut out);
        assert_eq!(reason(out.remove(0)), expected);
    }
}

#[test]
fn what_a_cut_link_or_a_silent_neighbour_loses_is_no_ordinary_end() {
    let mut plane = plane(|_| ());
    let via = packet(PacketType::Ethernet, &Hops::from([2]), &Hops::default(), &[0; 60]);
    let lose = |plane: &mut Plane| {
        let mut out = Vec::new();
        plane.send_raw(T0, PortNo(2), FrameBuf::new(&ethernet(host(1), 60)), &mut out);
        [reason(receive(plane, AXON, &via)), reason(out.remove(0))]
    };
    // The control plane removes the neighbour while carrier stays, and then the link is cut.
    plane.set_kind(PortNo(2), PortKind::Unknown);
    assert_eq!(lose(&mut plane), [Some(Drop::EgressUnknown); 2]);
    plane.link(T0, PortNo(2), false, &mut Vec::new());
    assert_eq!(lose(&mut plane), [Some(Drop::PortDown); 2]);
    assert!(![Drop::EgressUnknown, Drop::PortDown].iter().any(|reason| reason.is_ordinary()));
}

#[test]
fn a_host_that_sends_at_line_rate_is_paused() {
    let mut plane = plane(|config| config.self_congestion_pause = true);
    plane.install(HOST, host(9), &Route::from([1, 2, 3, 4])).unwrap();
    let frame = ethernet(host(9), 1000);
    let mut pauses = 0;
    for _ in 0..1000 {
        let mut out = Vec::new();
        plane.receive(T0, HOST, FrameBuf::new(&frame), T0, true, &mut out);
        plane.tx_done(T0, AXON, &mut out);
        plane.tx_done(T0, HOST, &mut out);
        for action in out {
            let Action::Transmit { port: HOST, frame, .. } = action else {
                continue;
            };
            assert_eq!(frame.bytes(), MacControl::Pause(Quanta(25)).emit(plane.config().mac));
            pauses += 1;
        }
    }
    // 1000 headers of 10 bytes are 6.6 maximum frames.
    assert_eq!((pauses, plane.counters().port(HOST).pauses), (6, 6));
}

#[test]
fn cut_through_and_loops_back_are_allowed() {
    let mut plane = plane(|_| ());
    let bytes = packet(PacketType::Ethernet, &Hops::from([1, 2]), &Hops::default(), &[0; 60]);
    let later = T0 + Span::from_micros(12);
    let mut out = Vec::new();
    for _ in 0..2 {
        plane.receive(T0, AXON, FrameBuf::new(&bytes), later, true, &mut out);
    }
    plane.tx_done(T0, AXON, &mut out);
    assert_eq!(out.len(), 2);
    for action in out {
        let Action::Transmit { port, complete_at, .. } = action else { panic!("not sent") };
        assert_eq!((port, complete_at), (AXON, later), "also after it has waited");
    }
}

fn receive_any(plane: &mut Plane, port: PortNo, frame: &[u8]) -> usize {
    let mut out = Vec::new();
    plane.receive(T0, port, FrameBuf::new(frame), T0, true, &mut out);
    out.len()
}

fn any_port() -> impl Strategy<Value = PortNo> {
    prop_oneof![9 => (0..PORTS).prop_map(PortNo), 1 => any::<u16>().prop_map(PortNo)]
}

fn any_hops() -> impl Strategy<Value = Hops> {
    let hop = prop_oneof![8 => 0..PORTS, 1 => Just(PortNo::CONTROL.0), 1 => 0..15u16];
    prop::collection::vec(hop.prop_map(PortNo), 0..6).prop_map(Hops)
}

fn any_frame(width: HopWidth) -> impl Strategy<Value = Vec<u8>> {
    let size = prop_oneof![0..20usize, 14..230usize];
    let to_host =
        (0..4u8, size.clone()).prop_map(|(last, bytes)| ethernet(host(last), bytes.max(14)));
    let group = any::<bool>().prop_map(|link_local| {
        if link_local { link::emit(host(1), b"hi") } else { ethernet(MacAddr::BROADCAST, 60) }
    });
    let source_routed = (any_hops(), any_hops(), 1..6u8, size.clone()).prop_map(
        move |(forward, reverse, packet_type, inner)| {
            let mut bytes = vec![0; width.header_bytes(forward.len() + reverse.len())];
            header::emit(&mut bytes, width, PacketType::Ethernet, &forward, &reverse).unwrap();
            bytes[0] = bytes[0] & 0x0f | packet_type << 4;
            bytes.resize(bytes.len() + inner, 0x77);
            bytes
        },
    );
    let junk = size.prop_flat_map(|bytes| prop::collection::vec(any::<u8>(), bytes));
    prop_oneof![3 => to_host, 1 => group, 4 => source_routed, 1 => junk]
}

fn any_event(width: HopWidth) -> impl Strategy<Value = Event> {
    let frame = move || any_frame(width);
    let kind = prop_oneof![
        3 => Just(PortKind::Axon), 3 => Just(PortKind::Host), 1 => Just(PortKind::Unknown)
    ];
    prop_oneof![
        12 => (any_port(), frame(), 0..40usize, any_tail(), prop::bool::weighted(0.8)).prop_map(
            |(port, frame, headroom, tail, intact)| Event::Receive {
                port, headroom, tail, intact, frame
            }),
        6 => any_port().prop_map(Event::TxDone),
        1 => (any_port(), any::<bool>()).prop_map(|(port, up)| Event::Link { port, up }),
        2 => frame().prop_map(Event::Inject),
        1 => (any_port(), frame()).prop_map(|(port, frame)| Event::SendRaw { port, frame }),
        1 => (any_port(), kind).prop_map(|(port, kind)| Event::Kind { port, kind }),
        2 => (any_port(), 0..4u8, any_hops()).prop_map(|(port, last, hops)| Event::Route {
            port, destination: host(last), hops
        }),
        1 => (0..5000u64).prop_map(|micros| Event::Wait(Span::from_micros(micros))),
    ]
}

/// Draws tails so that half of all frames are complete when their head is processed.
fn any_tail() -> impl Strategy<Value = Span> {
    prop_oneof![Just(Span::ZERO), (1..3000u64).prop_map(Span::from_micros)]
}

fn any_story() -> impl Strategy<Value = (HopWidth, OnFull, Vec<Event>)> {
    let on_full = [OnFull::Drop, OnFull::Nack, OnFull::CongestionMessage];
    let of = (prop::sample::select(WIDTHS.as_slice()), prop::sample::select(on_full.to_vec()));
    of.prop_flat_map(|(width, on_full)| {
        (Just(width), Just(on_full), prop::collection::vec(any_event(width), 1..300))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// `World` checks conservation, the bound of the buffers and the discipline of the wire
    /// after every event.
    #[test]
    fn whatever_happens_no_frame_is_lost_and_no_buffer_overflows(
        (width, on_full, events) in any_story(),
    ) {
        let mut world = World::new(width, on_full, None);
        for event in events {
            world.apply(event);
        }
    }

    /// Ingress ports that always have something queued get equal time on the wire.
    #[test]
    fn an_output_is_shared_equally(
        sizes in prop::collection::vec(20..1600usize, 3),
        order in prop::collection::vec(0..3u16, 60..200),
    ) {
        let mut plane = plane(|config| config.queue_bytes_max = Bytes(1 << 30));
        let send = |plane: &mut Plane, ingress: u16| {
            let inner = vec![0; sizes[usize::from(ingress)]];
            let hops = Hops::from([PortNo(2).0]);
            let bytes = packet(PacketType::Probe, &hops, &Hops::default(), &inner);
            receive_any(plane, PortNo(ingress + 1), &bytes);
        };
        for &ingress in &order {
            send(&mut plane, ingress);
        }
        let mut waiting = [0u64; 3];
        order.iter().skip(1).for_each(|&ingress| waiting[usize::from(ingress)] += 1);
        let mut sent = [0u64; 3];
        while !waiting.contains(&0) {
            let mut out = Vec::new();
            plane.tx_done(T0, PortNo(2), &mut out);
            let Some(Action::Transmit { frame, .. }) = out.pop() else { panic!("nothing sent") };
            let view = HeaderView::parse(frame.bytes(), HopWidth::Eight).unwrap();
            let ingress = view.reverse()[0].index() - 1;
            sent[ingress] += frame.bytes().len() as u64 + 24;
            waiting[ingress] -= 1;
            let (least, most) = (sent.iter().min().unwrap(), sent.iter().max().unwrap());
            prop_assert!(most - least <= 2 * 1600 + 1650, "{sent:?}");
        }
    }
}
