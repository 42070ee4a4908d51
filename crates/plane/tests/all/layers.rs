//! One priority of hosts that is two priorities between switches: behaviour towards hosts and
//! towards switches.

use axon_node::{Action, Dataplane, Drop, PortKind};
use axon_plane::dcb::DcbConfig;
use axon_plane::layers::Layers;
use axon_plane::shared_buffer::{PriorityGroupLimits, Share};
use axon_plane::{Plane, PlaneConfig};
use axon_wire::header::{self, HeaderView, PacketType};
use axon_wire::mac_control::{self, MacControl, Pfc, Quanta};
use axon_wire::priority::{PRIORITIES, Priority, PrioritySet};
use axon_wire::vlan::{self, VlanTag};
use axon_wire::{Bytes, FrameBuf, HopWidth, Hops, Layer, MacAddr, PortNo, Rate, Route, Time};

const WIDTH: HopWidth = HopWidth::Eight;
const SWITCH: MacAddr = MacAddr([2, 0, 0, 0, 0, 0xaa]);
const NEAR: MacAddr = MacAddr([2, 0, 0, 0, 1, 1]);
/// Two hosts, one on a route of layer 0 and one on a route of layer 1.
const FAR: [MacAddr; 2] = [MacAddr([2, 0, 0, 0, 1, 2]), MacAddr([2, 0, 0, 0, 1, 3])];
const HOST: PortNo = PortNo(0);
const AXON: PortNo = PortNo(1);
const OTHER_AXON: PortNo = PortNo(2);
const T0: Time = Time::ZERO;

fn priority(number: u8) -> Priority {
    Priority::new(number).unwrap()
}

fn set(numbers: &[u8]) -> PrioritySet {
    numbers.iter().map(|&number| priority(number)).collect()
}

/// Hosts use 3 for 4; a priority group may hold 3,000 bytes before its sender gets XOFF.
fn plane() -> Plane {
    let mut config = PlaneConfig::with_ports(3, SWITCH);
    let mut dcb = DcbConfig::lossy(vec![Rate::gbps(10); 3], SWITCH);
    dcb.layers = Layers::of([&[priority(3), priority(4)][..]]);
    dcb.pfc = set(&[3, 4]);
    dcb.memory.lossless = dcb.pfc;
    dcb.memory.lossless_pool = Bytes(1 << 20);
    let share = Share::Static(Bytes(3_000));
    let group = PriorityGroupLimits {
        reserved: Bytes(0),
        share,
        headroom: Bytes(50_000),
        xon_offset: Bytes(0),
    };
    dcb.memory.groups = vec![[group; PRIORITIES]; 3];
    config.dcb = Some(Box::new(dcb));
    let mut plane = Plane::new(config);
    for port in [HOST, AXON, OTHER_AXON] {
        plane.set_kind(port, if port == HOST { PortKind::Host } else { PortKind::Axon });
        plane.link(T0, port, true, &mut Vec::new());
    }
    for (layer, far) in FAR.into_iter().enumerate() {
        let layer = Layer::new(layer as u8).unwrap();
        let route = Route { layer, ..Route::from([AXON.0, 9]) };
        plane.install(HOST, far, &route).unwrap();
    }
    plane
}

fn frame(to: MacAddr, tag: u8) -> Vec<u8> {
    let mut frame = [to.0, NEAR.0].concat();
    frame.extend_from_slice(&VlanTag::of_priority(priority(tag)).emit());
    frame.extend_from_slice(&[8, 0]);
    frame.resize(1_000, 0x11);
    frame
}

/// Builds a packet from another switch to the local host.
fn packet(number: u8) -> Vec<u8> {
    packet_to(HOST, number)
}

fn packet_to(egress: PortNo, number: u8) -> Vec<u8> {
    let mut bytes = vec![0; WIDTH.header_bytes(2)];
    let (forward, reverse) = (Hops::from([egress.0]), Hops::from([4]));
    header::emit(&mut bytes, WIDTH, PacketType::Ethernet, &forward, &reverse).unwrap();
    header::set_priority(&mut bytes, WIDTH, priority(number));
    bytes.extend_from_slice(&frame(NEAR, 3));
    bytes
}

/// Receives frames at `port`; returns the frames that are sent.
fn give(plane: &mut Plane, port: PortNo, frames: &[Vec<u8>]) -> Vec<(PortNo, Vec<u8>)> {
    let mut out = Vec::new();
    for frame in frames {
        plane.receive(T0, port, FrameBuf::new(frame), T0, true, &mut out);
    }
    sent(out)
}

/// Returns the sent frames. A received pause has ended by then.
fn sent(out: Vec<Action>) -> Vec<(PortNo, Vec<u8>)> {
    let sent = out.into_iter().filter_map(|action| match action {
        Action::Transmit { port, frame, .. } => Some((port, frame.bytes().to_vec())),
        Action::Dropped { reason: Drop::MacControl, .. } => None,
        other => panic!("{other:?}"),
    });
    sent.collect()
}

/// Returns the next frame sent by `port`.
fn next(plane: &mut Plane, port: PortNo) -> Vec<(PortNo, Vec<u8>)> {
    let mut out = Vec::new();
    plane.tx_done(T0, port, &mut out);
    sent(out)
}

/// Returns the priorities that a frame pauses.
fn stops(frame: &[u8]) -> PrioritySet {
    assert!(mac_control::is_mac_control(frame));
    let Ok(MacControl::Pfc(pfc)) = MacControl::parse(frame, SWITCH) else { panic!() };
    let is_stop =
        |&of: &Priority| pfc.enabled.contains(of) && pfc.times[of.index()] != Quanta::ZERO;
    Priority::ALL.into_iter().filter(is_stop).collect()
}

fn stop(numbers: &[u8]) -> Vec<u8> {
    MacControl::Pfc(Pfc::of(set(numbers), Quanta::MAX)).emit(NEAR).to_vec()
}

#[test]
fn the_layer_of_a_route_decides_the_priority_and_the_tag_stays() {
    let mut plane = plane();
    for (layer, tag, between) in [(0, 3, 3), (1, 3, 4), (1, 4, 4), (0, 4, 3), (0, 5, 5), (1, 5, 5)]
    {
        let frame = frame(FAR[layer], tag);
        let mut sent = give(&mut plane, HOST, std::slice::from_ref(&frame));
        sent.extend(next(&mut plane, AXON));
        let view = HeaderView::parse(&sent[0].1, WIDTH).unwrap();
        assert_eq!((view.priority(), view.payload()), (priority(between), &frame[..]));
    }
}

#[test]
fn a_host_is_stopped_by_its_own_priority_whatever_the_layer_that_has_no_room() {
    let mut plane = plane();
    // The first takes the wire; 1,000 bytes are queued for layer 0 and 3,000 for layer 1.
    let frames = [FAR[0], FAR[0], FAR[1], FAR[1], FAR[1]].map(|to| frame(to, 3));
    let out = give(&mut plane, HOST, &frames);
    assert_eq!(out.len(), 2, "the frame and the stop");
    assert_eq!((out[1].0, stops(&out[1].1)), (HOST, set(&[3, 4])));
    let memory = plane.ports().dcb().unwrap().memory();
    let used = |of: u8| memory.group(HOST, priority(of)).unwrap().xoff;
    assert!(used(3) && !used(4), "counted as the host sent it");
    // The next switch has no room on layer 1 only.
    assert!(give(&mut plane, AXON, &[stop(&[4])]).is_empty());
    let (_, sent) = next(&mut plane, AXON).remove(0);
    assert_eq!(HeaderView::parse(&sent, WIDTH).unwrap().priority(), priority(3));
    let waits = plane.queue(AXON).frames;
    assert_eq!(waits, 3, "layer 1 is blocked");
}

#[test]
fn a_switch_is_stopped_by_layer_and_a_host_stops_all_layers_at_once() {
    let mut plane = plane();
    assert!(give(&mut plane, HOST, &[stop(&[3])]).is_empty());
    let out = give(&mut plane, AXON, &[4, 4, 4, 4].map(packet));
    assert_eq!(plane.queue(HOST).frames, 4, "the host has stopped what it knows as 3");
    assert_eq!((out.len(), out[0].0, stops(&out[0].1)), (1, AXON, set(&[4])));
    let out = give(&mut plane, OTHER_AXON, &[3, 3, 3, 3].map(packet));
    assert_eq!((out.len(), out[0].0, stops(&out[0].1)), (1, OTHER_AXON, set(&[3])));
    let resumed = give(
        &mut plane,
        HOST,
        &[MacControl::Pfc(Pfc::of(set(&[3]), Quanta(0))).emit(NEAR).to_vec()],
    );
    assert_eq!(resumed.len(), 1);
    assert_eq!(vlan::priority_of(&resumed[0].1), priority(3), "the tag as it was sent");
}

#[test]
fn hosts_where_a_switch_was_get_xoff_at_once_for_all_that_they_know_as_what_is_paused() {
    for wire_is_free in [true, false] {
        let mut plane = plane();
        plane.set_kind(HOST, PortKind::Axon);
        let out = give(&mut plane, HOST, &[3; 5].map(|number| packet_to(AXON, number)));
        assert_eq!((out.len(), out[1].0, stops(&out[1].1)), (2, HOST, set(&[3])));
        if wire_is_free {
            assert!(next(&mut plane, HOST).is_empty());
        }
        plane.set_kind(HOST, PortKind::Host);
        let out = if wire_is_free {
            assert!(plane.deadline() <= Some(T0) && plane.deadline().is_some());
            let mut out = Vec::new();
            plane.timeout(T0, &mut out);
            sent(out)
        } else {
            next(&mut plane, HOST)
        };
        assert_eq!((out.len(), out[0].0, stops(&out[0].1)), (1, HOST, set(&[3, 4])));
        assert!(plane.deadline() > Some(T0), "and again at half time");
    }
}

#[test]
fn a_host_is_stopped_by_all_names_of_a_priority_also_where_one_of_them_has_pfc() {
    let mut plane = plane();
    plane.ports_mut().set_pfc(T0, HOST, set(&[3]), &mut Vec::new());
    let out = give(&mut plane, HOST, &vec![frame(FAR[0], 4); 5]);
    assert_eq!((out.len(), out[1].0, stops(&out[1].1)), (2, HOST, set(&[3, 4])));
    // Between switches priorities are not mapped.
    plane.ports_mut().set_pfc(T0, OTHER_AXON, set(&[3]), &mut Vec::new());
    assert!(give(&mut plane, OTHER_AXON, &[4; 5].map(packet)).iter().all(|(by, _)| *by == HOST));
}

#[test]
fn a_stop_is_not_left_behind_when_hosts_go() {
    let mut plane = plane();
    let frames = vec![frame(FAR[1], 3); 5];
    give(&mut plane, HOST, &frames);
    plane.set_kind(HOST, PortKind::Unknown);
    while plane.queue(AXON).frames > 0 {
        next(&mut plane, AXON);
    }
    let sent: Vec<_> = next(&mut plane, HOST).into_iter().map(|(_, frame)| stops(&frame)).collect();
    assert!(sent.iter().all(|paused| paused.is_empty()), "{sent:?}");
    let memory = plane.ports().dcb().unwrap().memory();
    assert!(Priority::ALL.iter().all(|&of| !memory.group(HOST, of).unwrap().xoff));
}
