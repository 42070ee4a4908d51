//! Equality of the software plane and the reference for every frame, request and setting while the
//! wires are idle.

use axon_node::{
    Action, Counters, Dataplane, Drop, Input, Node, PortKind, PortSetting, Punt, QueueState,
    RouteAnswer, RouteChange, RouteError, RouteKey, RouteTicket, Snapshot,
};
use axon_plane::reference::{Reference, Refusing};
use axon_plane::{Plane, PlaneConfig, PuntLimit};
use axon_wire::header::{self, HopWidth, PacketType};
use axon_wire::probe::{ProbeHead, ProbeOptions};
use axon_wire::{
    Bytes, FrameBuf, HeaderView, Hops, Layer, MacAddr, NodeId, PortNo, Route, Span, Time, link,
};
use proptest::collection::vec;
use proptest::prelude::*;

const MAC: MacAddr = MacAddr([2; 6]);
/// Maximum length of a host's frame in this test.
const FRAME_BYTES_MAX: usize = 60;
/// Number of ports; frames and hops name some more.
const PORTS: u16 = 5;

/// An operation on a data plane.
#[derive(Clone, Debug)]
enum Operation {
    Frame {
        port: PortNo,
        bytes: Vec<u8>,
        headroom: usize,
        intact: bool,
    },
    Kind(PortNo, PortKind),
    Link(PortNo, bool),
    Change(RouteChange),
    Inject(PacketType, Hops, Vec<u8>),
    Send(PortNo, Vec<u8>),
    Forward {
        ingress: PortNo,
        route: Route,
        bytes: Vec<u8>,
        headroom: usize,
    },
    Pause(PortNo),
    /// Re-synchronises the plane from its own snapshot with this many ports; the others are
    /// cleared.
    Resynchronise(usize),
}

/// Visible part of an action. The time at which the last byte of a frame may leave is excluded: the
/// reference has stored the whole frame.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Seen {
    Transmit(PortNo, Vec<u8>),
    Other(Action),
}

/// Applies an operation, and frees every wire that it used.
fn apply<D: Dataplane>(plane: &mut D, now: Time, operation: &Operation) -> Vec<Seen> {
    let mut out = Vec::new();
    let framed = |headroom: usize, bytes: &[u8]| FrameBuf::with_headroom(headroom, bytes);
    match operation.clone() {
        Operation::Frame { port, bytes, headroom, intact } => {
            let frame = framed(headroom, &bytes);
            plane.handle(now, Input::Frame { port, frame, complete_at: now, intact }, &mut out);
        }
        Operation::Kind(port, kind) => {
            let set = plane.set_port(now, port, PortSetting::Kind(kind), &mut out);
            assert_eq!(set.is_ok(), port.0 < PORTS);
        }
        Operation::Link(port, up) => plane.handle(now, Input::Link { port, up }, &mut out),
        Operation::Change(change) => {
            let ticket = RouteTicket(7);
            let answer = plane.change_route(now, ticket, change);
            let answer = answer.map(|result| RouteAnswer { ticket, result });
            out.extend(answer.map(Action::RouteChanged));
        }
        Operation::Inject(kind, hops, payload) => {
            plane.inject(now, kind, &hops, &payload, &mut out);
        }
        Operation::Send(port, bytes) => plane.send(now, port, framed(0, &bytes), &mut out),
        Operation::Forward { ingress, route, bytes, headroom } => {
            plane.forward(now, ingress, &route, framed(headroom, &bytes), &mut out);
        }
        Operation::Pause(port) => plane.pause_hosts(now, port, &mut out),
        Operation::Resynchronise(ports) => {
            let mut wanted = plane.snapshot();
            wanted.ports.truncate(ports);
            assert_eq!(plane.resynchronise(now, &wanted, &mut out), Ok(()));
        }
    }
    let mut seen = Vec::new();
    let mut free = Vec::new();
    while !out.is_empty() {
        for action in out.drain(..) {
            seen.push(match action {
                Action::Transmit { port, frame, intact, .. } => {
                    assert!(intact, "the frame was whole and sound");
                    free.push(port);
                    Seen::Transmit(port, frame.bytes().to_vec())
                }
                other => Seen::Other(other),
            });
        }
        for port in free.drain(..) {
            plane.handle(now, Input::TxDone { port }, &mut out);
        }
    }
    seen
}

fn port() -> impl Strategy<Value = PortNo> {
    prop_oneof![8 => 0..PORTS, 1 => PORTS..PORTS + 3, 1 => Just(PortNo::CONTROL.0)].prop_map(PortNo)
}

fn kind() -> impl Strategy<Value = PortKind> {
    prop_oneof![Just(PortKind::Unknown), Just(PortKind::Host), Just(PortKind::Axon)]
}

fn mac() -> impl Strategy<Value = [u8; 6]> {
    let host = (0..4u8).prop_map(|last| [2, 0, 0, 0, 0, last]);
    let other = prop_oneof![
        Just([0xff; 6]),
        Just([0x33, 0x33, 0, 0, 0, 1]),
        Just([1, 0x80, 0xc2, 0, 0, 0x0e]),
        Just([1, 0x80, 0xc2, 0, 0, 1]),
    ];
    prop_oneof![4 => host, 1 => other]
}

/// Draws one of three hosts behind a port.
fn source() -> impl Strategy<Value = MacAddr> {
    (1..4u8).prop_map(|last| MacAddr([2, 0, 0, 0, 9, last]))
}

/// Draws a key of frames to a destination, from one source or from any.
fn key() -> impl Strategy<Value = RouteKey> {
    let key = |(to, source)| RouteKey::from(MacAddr(to)).from_source(source);
    (mac(), proptest::option::of(source())).prop_map(key)
}

/// Draws hops that a header of this width can hold.
fn hops(width: HopWidth, most: usize) -> impl Strategy<Value = Hops> {
    vec(port(), 0..most).prop_map(move |hops| {
        let named = hops.into_iter().filter(|&hop| width.can_name(hop));
        named.collect()
    })
}

fn route() -> impl Strategy<Value = Route> {
    let hop = prop_oneof![9 => port(), 1 => (0..300u16).prop_map(PortNo)];
    (vec(hop, 0..7), 0..8u8).prop_map(|(hops, layer)| {
        let layer = Layer::new(layer).expect("a layer");
        Route { layer, ..hops.into_iter().collect::<Route>() }
    })
}

/// Draws an Ethernet frame, with or without tags, sometimes too short or too long.
fn ethernet() -> impl Strategy<Value = Vec<u8>> {
    let ethertype = prop_oneof![
        4 => Just([8, 0]),
        1 => Just([0x81, 0]),
        1 => Just([0x88, 0xa8]),
        1 => Just([0x22, 0xe9]),
        1 => Just([0x88, 0x08]),
    ];
    let addresses = (mac(), source().prop_map(|source| source.0));
    let bytes = (addresses, ethertype, any::<[u8; 2]>(), ethertype_behind_a_tag(), 0..56usize);
    let whole = bytes.prop_map(|((to, from), first, tag, second, more)| {
        let mut frame = to.to_vec();
        frame.extend(from);
        frame.extend(first);
        frame.extend(tag);
        frame.extend(second);
        frame.resize(frame.len() + more, 0xee);
        frame
    });
    let ether_probe = (0..4u8, any::<u8>()).prop_map(|(last, options)| {
        probe_head(options).emit_ether(MacAddr([2, 0, 0, 0, 0, last]), MacAddr([2; 6]))
    });
    let whole = prop_oneof![9 => whole, 1 => ether_probe];
    (whole, 0..30usize).prop_map(|(mut frame, cut)| {
        // One in ten is truncated.
        if cut < 3 {
            frame.truncate(cut * 6);
        }
        frame
    })
}

fn ethertype_behind_a_tag() -> impl Strategy<Value = [u8; 2]> {
    prop_oneof![Just([8, 0]), Just([0x22, 0xe9])]
}

fn probe_head(options: u8) -> ProbeHead {
    let options = ProbeOptions(options);
    ProbeHead { options, body_bytes: 16, sequence: 7, origin: NodeId(9) }
}

/// Draws an Axon packet whose header is valid, or nearly.
fn packet(width: HopWidth) -> impl Strategy<Value = Vec<u8>> {
    let kind = prop_oneof![
        4 => Just(PacketType::Ethernet),
        1 => Just(PacketType::Control),
        1 => Just(PacketType::Error),
        1 => Just(PacketType::Congestion),
        1 => Just(PacketType::Probe),
    ];
    let flip = proptest::option::weighted(0.3, (0..16usize, 1..=255u8));
    let parts = (kind, hops(width, 12), hops(width, 12), ethernet(), any::<u8>(), flip);
    parts.prop_map(move |(kind, forward, reverse, payload, spare, flip)| {
        let length = width.header_bytes(forward.len() + reverse.len());
        let mut bytes = vec![0; length];
        header::emit(&mut bytes, width, kind, &forward, &reverse).expect("a header");
        let last = length - 1;
        match width {
            HopWidth::Four if (forward.len() + reverse.len()).is_multiple_of(2) => {
                bytes[last] |= spare & 0x0f;
            }
            HopWidth::Four => {}
            HopWidth::Eight | HopWidth::Sixteen => bytes[5] |= spare & 0x0f,
        }
        bytes.extend(if kind == PacketType::Probe { probe_head(spare).emit() } else { payload });
        if let Some((at, bits)) = flip {
            let at = at % bytes.len();
            bytes[at] ^= bits;
        }
        bytes
    })
}

fn operation(width: HopWidth) -> impl Strategy<Value = Operation> {
    let bytes = || prop_oneof![3 => ethernet(), 3 => packet(width), 1 => vec(any::<u8>(), 0..40)];
    let headroom = || prop_oneof![9 => Just(128usize), 1 => 0..12usize];
    let install = (port(), key(), route());
    let install = install.prop_map(|(port, key, route)| {
        Operation::Change(RouteChange::Install { port, key, route })
    });
    let remove = (port(), key())
        .prop_map(|(port, key)| Operation::Change(RouteChange::Remove { port, key }));
    let frame = (port(), bytes(), headroom(), proptest::bool::weighted(0.95));
    let frame = frame.prop_map(|(port, bytes, headroom, intact)| Operation::Frame {
        port,
        bytes,
        headroom,
        intact,
    });
    let forward = (0..PORTS, route(), ethernet(), headroom());
    let forward = forward.prop_map(|(ingress, route, bytes, headroom)| Operation::Forward {
        ingress: PortNo(ingress),
        route,
        bytes,
        headroom,
    });
    let inject = (Just(PacketType::Control), vec(port(), 0..6), vec(any::<u8>(), 0..30));
    let inject = inject.prop_map(|(kind, hops, payload)| {
        Operation::Inject(kind, hops.into_iter().collect(), payload)
    });
    prop_oneof![
        20 => frame,
        6 => install,
        1 => remove,
        1 => (port(), kind()).prop_map(|(port, kind)| Operation::Kind(port, kind)),
        1 => (port(), any::<bool>()).prop_map(|(port, up)| Operation::Link(port, up)),
        2 => inject,
        2 => (port(), ethernet()).prop_map(|(port, bytes)| Operation::Send(port, bytes)),
        2 => forward,
        1 => port().prop_map(Operation::Pause),
        1 => (0..=PORTS as usize).prop_map(Operation::Resynchronise),
    ]
}

fn width() -> impl Strategy<Value = HopWidth> {
    prop_oneof![Just(HopWidth::Four), Just(HopWidth::Eight), Just(HopWidth::Sixteen)]
}

fn config(hop_width: HopWidth) -> PlaneConfig {
    PlaneConfig {
        hop_width,
        frame_bytes_max: FRAME_BYTES_MAX,
        routes_per_port_max: 3,
        punt: PuntLimit { frames_per_second: 1000, burst: 3 },
        addressed: PuntLimit { frames_per_second: 2000, burst: 2 },
        route_bytes_max: hop_width.header_bytes(14),
        self_congestion_pause: true,
        ..PlaneConfig::with_ports(PORTS, MAC)
    }
}

/// Reported state of a data plane.
#[derive(Debug, PartialEq, Eq)]
struct State {
    snapshot: Snapshot,
    up: Vec<bool>,
    queues: Vec<QueueState>,
    routes: Vec<usize>,
    held: u64,
    counters: Counters,
}

/// Returns the state without the layers of routes, for which short hops have no room.
fn state<D: Dataplane>(plane: &D, width: HopWidth) -> State {
    let mut snapshot = plane.snapshot();
    if width == HopWidth::Four {
        let routes = snapshot.ports.iter_mut().flat_map(|port| &mut port.routes);
        routes.for_each(|(_, route)| route.layer = Layer::ZERO);
    }
    let ports = || (0..PORTS + 1).map(PortNo);
    State {
        snapshot,
        up: ports().map(|port| plane.is_up(port)).collect(),
        queues: ports().map(|port| plane.queue(port)).collect(),
        routes: ports().map(|port| plane.routes(port)).collect(),
        held: plane.held_frames(),
        counters: plane.counters().clone(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn the_reference_does_what_the_software_plane_does_on_idle_wires(
        (width, kinds, operations) in width().prop_flat_map(|width| {
            (Just(width), vec(kind(), PORTS as usize), vec((operation(width), 0..900u64), 1..60))
        })
    ) {
        let mut software = Plane::new(config(width));
        let mut reference = Reference::new(config(width));
        let mut now = Time::ZERO;
        let ports = (0..PORTS).map(PortNo);
        let start = ports.zip(kinds).flat_map(|(port, kind)| {
            [Operation::Kind(port, kind), Operation::Link(port, true)].map(|first| (first, 0))
        });
        for (operation, micros) in start.chain(operations) {
            now += Span::from_micros(micros);
            let expected = apply(&mut software, now, &operation);
            prop_assert_eq!(&apply(&mut reference, now, &operation), &expected, "{:?}", operation);
            prop_assert_eq!(state(&reference, width), state(&software, width));
        }
    }
}

/// Returns the reason for which a data plane punts a frame from port 1, and the length of its
/// packet's header, as reported and as computed from the packet's bytes.
fn handed_over<D: Dataplane>(
    plane: &mut D,
    (width, kind): (HopWidth, PortKind),
    bytes: &[u8],
) -> (Punt, usize, usize) {
    let port = PortNo(1);
    apply(plane, at(0), &Operation::Kind(port, kind));
    apply(plane, at(0), &Operation::Link(port, true));
    let frame = Operation::Frame { port, bytes: bytes.to_vec(), headroom: 64, intact: true };
    let seen = apply(plane, at(0), &frame);
    let [Seen::Other(Action::Punt { frame, punt, header_bytes, .. })] = &seen[..] else {
        panic!("{width:?}: {seen:?}")
    };
    let parsed = HeaderView::parse(frame.bytes(), width).map_or(0, |view| view.header_bytes());
    (*punt, usize::from(*header_bytes), parsed)
}

#[test]
fn both_tell_the_length_of_the_header_of_every_packet_for_the_control_plane() {
    for width in [HopWidth::Four, HopWidth::Eight, HopWidth::Sixteen] {
        let packet = |forward: &Hops| {
            let reverse = Hops::from([3, 1, 4]);
            let mut bytes = vec![0; width.header_bytes(forward.len() + reverse.len())];
            header::emit(&mut bytes, width, PacketType::Control, forward, &reverse).unwrap();
            bytes.extend([0x11; 60]);
            bytes
        };
        let mut ethernet = vec![2; 60];
        ethernet[12..14].copy_from_slice(&[8, 0]);
        let cases = [
            (Punt::Miss, PortKind::Host, ethernet),
            (Punt::Addressed, PortKind::Axon, packet(&Hops::to_control())),
            (Punt::Error, PortKind::Axon, packet(&Hops::default())),
            (Punt::LinkLocal, PortKind::Axon, link::emit(MAC, b"hello")),
        ];
        for (why, kind, bytes) in cases {
            let software = handed_over(&mut Plane::new(config(width)), (width, kind), &bytes);
            let mut reference = Reference::new(config(width));
            assert_eq!(handed_over(&mut reference, (width, kind), &bytes), software);
            let (punt, reported, parsed) = software;
            assert_eq!((punt, reported), (why, parsed), "{width:?}");
            assert_eq!(reported == 0, why == Punt::LinkLocal, "{width:?}: {why:?}");
        }
    }
}

fn at(nanos: u64) -> Time {
    Time::from_nanos(nanos)
}

/// Two host ports of a reference, with routes from each to the other.
fn hosts(config: PlaneConfig) -> Reference {
    let mut plane = Reference::new(config);
    for port in 0..2 {
        apply(&mut plane, at(0), &Operation::Kind(PortNo(port), PortKind::Host));
        apply(&mut plane, at(0), &Operation::Link(PortNo(port), true));
        let (destination, route) = (MacAddr([2, 0, 0, 0, 0, 1 - port as u8]), [1 - port].into());
        let key = destination.into();
        let change = RouteChange::Install { port: PortNo(port), key, route };
        apply(&mut plane, at(0), &Operation::Change(change));
    }
    plane
}

/// Receives a frame for the host at port 1 from port 0.
fn receive(plane: &mut impl Node, now: Time, complete_at: Time) -> Vec<Action> {
    let mut bytes = [0xee; 50];
    bytes[..6].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
    let (port, frame, mut out) = (PortNo(0), FrameBuf::new(&bytes), Vec::new());
    plane.handle(now, Input::Frame { port, frame, complete_at, intact: true }, &mut out);
    out
}

fn timeout(plane: &mut impl Node, now: Time) -> Vec<Action> {
    let mut out = Vec::new();
    plane.handle(now, Input::Timeout, &mut out);
    out
}

#[test]
fn the_reference_stores_a_frame_until_its_last_byte_has_come() {
    let mut plane = hosts(config(HopWidth::Eight));
    assert_eq!(receive(&mut plane, at(10), at(50)), []);
    assert_eq!((plane.deadline(), plane.held_frames()), (Some(at(50)), 1));
    assert_eq!(timeout(&mut plane, at(49)), []);
    let out = timeout(&mut plane, at(50));
    assert!(matches!(out[..], [Action::Transmit { port: PortNo(1), .. }]), "{out:?}");
    assert_eq!((plane.deadline(), plane.held_frames()), (None, 0));
    // A frame whose link goes down meanwhile is broken.
    assert_eq!(receive(&mut plane, at(60), at(90)), []);
    apply(&mut plane, at(70), &Operation::Link(PortNo(0), false));
    let out = timeout(&mut plane, at(90));
    assert!(matches!(out[..], [Action::Dropped { reason: Drop::BadFcs, .. }]), "{out:?}");
}

#[test]
fn the_fifo_of_a_port_holds_so_many_bytes_and_no_more() {
    let config = PlaneConfig { queue_bytes_max: Bytes(120), ..config(HopWidth::Eight) };
    let mut plane = hosts(config);
    let fates: Vec<_> = (0..4).map(|_| receive(&mut plane, at(1), at(1))).collect();
    assert!(matches!(fates[0][..], [Action::Transmit { .. }]), "{fates:?}");
    assert!(fates[1].is_empty() && fates[2].is_empty(), "{fates:?}");
    assert!(matches!(fates[3][..], [Action::Dropped { reason: Drop::QueueFull, .. }]), "{fates:?}");
    assert_eq!((plane.queue(PortNo(1)).frames, plane.queue(PortNo(1)).bytes), (2, Bytes(100)));
    // Frames queued for a port that is no longer a host port never leave.
    let port = PortNo(1);
    let mut out = Vec::new();
    plane.set_port(at(2), port, PortSetting::Kind(PortKind::Axon), &mut out).unwrap();
    plane.handle(at(2), Input::TxDone { port }, &mut out);
    let ended =
        |action: &Action| matches!(action, Action::Dropped { reason: Drop::KindChanged, .. });
    assert!(out.len() == 2 && out.iter().all(ended), "{out:?}");
}

/// Returns the frames that leave a busy port, in order.
fn leaves(plane: &mut impl Dataplane) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    for port in [PortNo(0), PortNo(1)] {
        let kind = [PortKind::Host, PortKind::Axon][port.index()];
        plane.set_port(at(0), port, PortSetting::Kind(kind), &mut out).unwrap();
        plane.handle(at(0), Input::Link { port, up: true }, &mut out);
    }
    let key = MacAddr([2, 0, 0, 0, 0, 1]).into();
    let change = RouteChange::Install { port: PortNo(0), key, route: [1, 3].into() };
    assert_eq!(plane.change_route(at(0), RouteTicket(1), change), Some(Ok(())));
    for _ in 0..9 {
        receive(plane, at(1), at(1));
    }
    let hops: Hops = [PortNo(1), PortNo::CONTROL].into_iter().collect();
    plane.inject(at(2), PacketType::Control, &hops, b"first", &mut out);
    plane.inject(at(2), PacketType::Control, &hops, b"second", &mut out);
    let beat = axon_wire::link::emit(MAC, b"beat");
    plane.send(at(2), PortNo(1), FrameBuf::new(&beat), &mut out);
    out.clear();
    let mut left = Vec::new();
    loop {
        plane.handle(at(3), Input::TxDone { port: PortNo(1) }, &mut out);
        match out.pop() {
            Some(Action::Transmit { frame, .. }) => left.push(frame.bytes().to_vec()),
            _ => return left,
        }
    }
}

#[test]
fn both_send_heartbeats_and_control_messages_before_the_frames_of_hosts_that_wait() {
    let config = || PlaneConfig { queue_bytes_max: Bytes(200), ..config(HopWidth::Eight) };
    let software = leaves(&mut Plane::new(config()));
    assert_eq!(leaves(&mut Reference::new(config())), software);
    assert_eq!(software[0], axon_wire::link::emit(MAC, b"beat"));
    assert!(software[1].ends_with(b"first") && software[2].ends_with(b"second"), "{software:?}");
    assert_eq!(software.len(), 3 + 3, "and as many of the host as find room");
}

#[test]
fn every_tenth_install_is_refused_some_are_late_and_tables_are_lost_and_said_to_be() {
    let config = PlaneConfig { routes_per_port_max: 100, ..config(HopWidth::Eight) };
    let mut plane = Refusing::new(Reference::new(config));
    let (mut at_once, mut later) = (Vec::new(), Vec::new());
    for number in 1..=40u64 {
        let key = MacAddr([2, 0, 0, 0, 0, number as u8]).into();
        let change = RouteChange::Install { port: PortNo(0), key, route: [1].into() };
        at_once.extend(plane.change_route(at(0), RouteTicket(number), change));
    }
    plane.handle(at(0), Input::Timeout, &mut later);
    assert_eq!(later, [], "nothing is due yet");
    let due = plane.deadline().expect("late answers");
    plane.handle(due, Input::Timeout, &mut later);
    assert_eq!(later.pop(), Some(Action::Lost), "after all that was due before");
    let refused = at_once.iter().filter(|&&answer| answer == Err(RouteError::Unavailable));
    assert_eq!((refused.count(), plane.refused()), (4, 4));
    assert_eq!(at_once.len() + later.len(), 40, "one answer each");
    assert_eq!((plane.losses(), plane.routes(PortNo(0)), plane.deadline()), (1, 0, None));
}
