//! Congestion signalling from queues to the sources of the frames that fill them, and the host port
//! as the edge of the congestion notification domain.

use axon_node::{Action, Dataplane, Drop, PortKind, PortSetting, SettingError};
use axon_plane::dcb::DcbConfig;
use axon_plane::ecn::{self, Codepoint, NotCapable, Profile};
use axon_plane::notification::{CnConfig, EcnConfig};
use axon_plane::qcn::{InputPriority, Treatment};
use axon_plane::{Plane, PlaneConfig};
use axon_wire::cn::{CnTag, Cnm, CnmFormat, CnmFrame, Tagged};
use axon_wire::header::{self, HeaderView, PacketType};
use axon_wire::priority::{Priority, PrioritySet};
use axon_wire::vlan::{self, VlanTag};
use axon_wire::{Bytes, FrameBuf, HopWidth, Hops, MacAddr, PortNo, Rate, Route, Time};

const WIDTH: HopWidth = HopWidth::Eight;
const SWITCH: MacAddr = MacAddr([2, 0, 0, 0, 0, 0xaa]);
const NEAR: MacAddr = MacAddr([2, 0, 0, 0, 1, 1]);
const FAR: MacAddr = MacAddr([2, 0, 0, 0, 1, 2]);
/// Hosts at two ports, an Axon at the third.
const HOST: PortNo = PortNo(0);
const OTHER_HOST: PortNo = PortNo(1);
const AXON: PortNo = PortNo(2);
const T0: Time = Time::ZERO;

fn priority(number: u8) -> Priority {
    Priority::new(number).unwrap()
}

/// Priority 3 is in the domain.
fn domain() -> CnConfig {
    CnConfig::new(3, PrioritySet::only(priority(3)))
}

fn plane(change: impl FnOnce(&mut DcbConfig)) -> Plane {
    let mut config = PlaneConfig::with_ports(3, SWITCH);
    let mut dcb = DcbConfig::lossy(vec![Rate::gbps(10); 3], SWITCH);
    change(&mut dcb);
    config.dcb = Some(Box::new(dcb));
    let mut plane = Plane::new(config);
    for (port, kind) in
        [(HOST, PortKind::Host), (OTHER_HOST, PortKind::Host), (AXON, PortKind::Axon)]
    {
        plane.set_kind(port, kind);
        plane.link(T0, port, true, &mut Vec::new());
    }
    plane.install(HOST, FAR, &Route::from([2, 7])).unwrap();
    plane
}

/// Builds a frame from the near host to the far one: a tag if it has a priority, a CN-TAG if it has
/// a flow, then IPv4 with these two bits.
fn frame(tag: Option<Priority>, flow: Option<u16>, ecn: u8) -> Vec<u8> {
    let mut frame = [FAR.0, NEAR.0].concat();
    if let Some(priority) = tag {
        frame.extend_from_slice(&VlanTag { vid: 5, ..VlanTag::of_priority(priority) }.emit());
    }
    if let Some(flow) = flow {
        frame.extend_from_slice(&CnTag { flow }.emit());
    }
    frame.extend_from_slice(&[8, 0, 0x45, ecn]);
    frame.resize(1_400, 0x11);
    frame
}

/// Builds an Axon packet from a distant host, which is at port 8 of the first of two hops.
fn packet(forward: &[u16], frame: &[u8]) -> Vec<u8> {
    let forward: Hops = forward.iter().copied().map(PortNo).collect();
    let reverse = Hops::from([4, 8]);
    let mut bytes = vec![0; WIDTH.header_bytes(forward.len() + 2)];
    header::emit(&mut bytes, WIDTH, PacketType::Ethernet, &forward, &reverse).unwrap();
    header::set_priority(&mut bytes, WIDTH, vlan::priority_of(frame));
    bytes.extend_from_slice(frame);
    bytes
}

/// Gives `frame` to the plane this many times; returns all frames sent, and the reasons of drops.
fn give(
    plane: &mut Plane,
    port: PortNo,
    (frame, times): (&[u8], usize),
) -> (Vec<(PortNo, FrameBuf)>, Vec<Drop>) {
    let (mut out, mut sent, mut drops) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..times {
        plane.receive(T0, port, FrameBuf::new(frame), T0, true, &mut out);
        for action in out.drain(..) {
            match action {
                Action::Transmit { port, frame, .. } => sent.push((port, frame)),
                Action::Dropped { reason, .. } => drops.push(reason),
                other => panic!("unexpected: {other:?}"),
            }
        }
    }
    (sent, drops)
}

/// Returns all frames queued for `port`.
fn drain(plane: &mut Plane, port: PortNo) -> Vec<FrameBuf> {
    let (mut out, mut sent) = (Vec::new(), Vec::new());
    while plane.queue(port).frames > 0 {
        plane.tx_done(T0, port, &mut out);
        for action in out.drain(..) {
            let Action::Transmit { frame, .. } = action else { panic!("unexpected: {action:?}") };
            sent.push(frame);
        }
    }
    sent
}

#[test]
fn a_host_has_the_priorities_of_the_regeneration_table_and_no_others() {
    let mut plane = plane(|_| ());
    let mut table = [Priority::ZERO; 8];
    table[3] = priority(3);
    let setting = PortSetting::Regeneration(Box::new(table));
    plane.set_port(T0, HOST, setting, &mut Vec::new()).unwrap();
    assert_eq!(plane.snapshot().ports[0].regeneration, Some(table));
    let mut send = |number| {
        let (mut sent, drops) =
            give(&mut plane, HOST, (&frame(Some(priority(number)), None, 0), 1));
        assert_eq!(drops, []);
        plane.tx_done(T0, AXON, &mut Vec::new());
        let (_, sent) = sent.pop().unwrap();
        let view = HeaderView::parse(sent.bytes(), WIDTH).unwrap();
        (view.priority().value(), vlan::priority_of(view.payload()).value())
    };
    assert_eq!([send(3), send(0), send(7), send(5)], [(3, 3), (0, 0), (0, 0), (0, 0)]);
    assert_eq!(plane.counters().port(HOST).regenerated, 2);
    // The setting survives a re-synchronisation, and ends with one that does not contain it.
    let mut wanted = plane.snapshot();
    plane.resynchronise(T0, &wanted, &mut Vec::new()).unwrap();
    assert_eq!(plane.snapshot().ports[0].regeneration, Some(table));
    wanted.ports[0].regeneration = None;
    plane.resynchronise(T0, &wanted, &mut Vec::new()).unwrap();
    assert_eq!(plane.snapshot().ports[0].regeneration, None);
}

#[test]
fn a_forged_stream_of_cnms_does_not_reach_hosts_that_have_sent_little() {
    let mut plane = plane(|dcb| dcb.cn = Some(domain()));
    plane.link(T0, HOST, true, &mut Vec::new());
    let sampled = frame(Some(priority(3)), Some(7), 0);
    let answered = Tagged::parse(&sampled).unwrap();
    let said = Cnm { feedback: 63, ..Cnm::default() };
    let format = CnmFormat::default();
    let forged = CnmFrame::answer(&answered, SWITCH, priority(6), said, 64, &format);
    let forged = packet(&[HOST.0], &forged.emit(&format));
    let came = |plane: &mut Plane| {
        let mut count = 0;
        for _ in 0..1000 {
            let (sent, drops) = give(plane, AXON, (&forged, 1));
            assert!(drops.iter().all(|&drop| drop == Drop::CnmLimit), "{drops:?}");
            count += sent.len();
            plane.tx_done(T0, HOST, &mut Vec::new());
        }
        count
    };
    assert_eq!(came(&mut plane), 64, "a burst");
    assert_eq!(plane.counters().port(AXON).dropped(Drop::CnmLimit), 936);
    // A twentieth of 150,000 bytes for each.
    give(&mut plane, HOST, (&frame(None, None, 0), 11));
    assert_eq!(came(&mut plane), 2);
}

fn cnm(frame: &[u8]) -> CnmFrame {
    CnmFrame::parse(frame, &CnmFormat { strict: true, ..CnmFormat::default() }).unwrap()
}

#[test]
fn the_first_switch_signals_the_host_itself() {
    let mut plane = plane(|dcb| dcb.cn = Some(domain()));
    let frame = frame(Some(priority(3)), Some(77), 0);
    let (sent, drops) = give(&mut plane, HOST, (&frame, 200));
    assert!(drops.is_empty());
    assert_eq!(sent[0].0, AXON, "the first frame finds the wire free");
    let (port, first) = &sent[1];
    assert_eq!(*port, HOST);
    let cnm = cnm(first.bytes());
    assert_eq!((cnm.destination, cnm.source), (NEAR, SWITCH));
    assert_eq!((cnm.cn, cnm.vlan.unwrap().vid), (Some(CnTag { flow: 77 }), 5));
    assert_eq!(cnm.vlan.unwrap().pcp, priority(6));
    assert_eq!((cnm.cnm.destination, cnm.cnm.priority), (FAR, priority(3)));
    assert_eq!(cnm.cnm.cpid, 0x0200_0000_00aa_0013, "port 2, class 3");
    assert!(cnm.cnm.feedback > 0 && cnm.cnm.offset < 0 && cnm.cnm.delta > 0);
    let counters = plane.counters();
    let cnms = counters.port(AXON).cnms;
    assert_eq!(cnms, 1 + plane.queue(HOST).frames, "all but the first wait for the host's wire");
    assert!((5..20).contains(&cnms), "{cnms} for 280 kB");
}

#[test]
fn a_switch_in_the_middle_sends_it_back_the_way_that_the_packet_came() {
    let mut plane = plane(|dcb| dcb.cn = Some(domain()));
    let packet = packet(&[2, 9], &frame(Some(priority(3)), None, 0));
    let (sent, _) = give(&mut plane, AXON, (&packet, 200));
    assert_eq!(sent.len(), 1, "CNMs wait for the same wire");
    let frames = drain(&mut plane, AXON);
    let views = frames.iter().map(|frame| HeaderView::parse(frame.bytes(), WIDTH).unwrap());
    let cnms: Vec<_> = views.filter(|view| view.forward() == Hops::from([4, 8])).collect();
    assert_eq!(cnms.len() as u64, plane.counters().port(AXON).cnms);
    assert!(cnms.len() > 4);
    for view in cnms {
        assert_eq!((view.forward(), view.priority()), (Hops::from([4, 8]), priority(6)));
        assert_eq!(cnm(view.payload()).destination, NEAR);
        assert_eq!(cnm(view.payload()).cn, Some(CnTag { flow: 0 }));
    }
}

#[test]
fn the_last_switch_samples_what_waits_for_a_host() {
    let mut plane = plane(|dcb| dcb.cn = Some(domain()));
    let packet = packet(&[1], &frame(Some(priority(3)), None, 0));
    let (sent, _) = give(&mut plane, AXON, (&packet, 200));
    let (port, first) = &sent[1];
    let view = HeaderView::parse(first.bytes(), WIDTH).unwrap();
    assert_eq!((*port, view.forward()), (AXON, Hops::from([4, 8])), "by the port it came in by");
    assert_eq!(cnm(view.payload()).cnm.cpid & 0xffff, 0x000b, "port 1, class 3");
    assert!(plane.counters().port(OTHER_HOST).cnms > 4);
}

#[test]
fn other_priorities_and_empty_queues_cause_no_cnms() {
    let mut plane = plane(|dcb| dcb.cn = Some(domain()));
    give(&mut plane, HOST, (&frame(Some(priority(4)), Some(7), 0), 200));
    give(&mut plane, HOST, (&frame(None, Some(7), 0), 200));
    assert_eq!(plane.counters().total().cnms, 0);
    drain(&mut plane, AXON);
    plane.tx_done(T0, AXON, &mut Vec::new());
    for _ in 0..1_000 {
        give(&mut plane, HOST, (&frame(Some(priority(3)), Some(7), 0), 1));
        plane.tx_done(T0, AXON, &mut Vec::new());
    }
    assert_eq!(plane.counters().total().cnms, 0);
}

#[test]
fn a_queue_over_its_threshold_marks_ip_inside_axon_packets_and_at_host_ports() {
    let profile = Profile::Threshold(Bytes(20_000));
    let marking = |not_capable| {
        plane(move |dcb| {
            dcb.ecn.iter_mut().for_each(|port| port[0] = Some(EcnConfig { profile, not_capable }));
        })
    };
    for out in [2, 1] {
        let mut plane = marking(NotCapable::Drop);
        let packet =
            |ecn| packet(&[out, 9][..if out == 2 { 2 } else { 1 }], &frame(None, None, ecn));
        let (_, drops) = give(&mut plane, AXON, (&packet(2), 40));
        assert!(drops.is_empty());
        let marked = plane.counters().port(PortNo(out)).ecn_marked;
        assert!((24..=25).contains(&marked), "{marked} of 39 that wait, 15 below the threshold");
        let (_, drops) = give(&mut plane, AXON, (&packet(0), 3));
        assert_eq!(drops, [Drop::Ecn; 3]);
        let waited = drain(&mut plane, PortNo(out));
        let points = waited.iter().map(|frame| {
            let view = HeaderView::parse(frame.bytes(), WIDTH);
            let of_axon = header::is_axon(frame.bytes()).then(|| view.unwrap().payload());
            ecn::codepoint(of_axon.unwrap_or(frame.bytes())).unwrap()
        });
        assert_eq!(points.filter(|point| *point == Codepoint::Ce).count() as u64, marked);
    }
    let mut plane = marking(NotCapable::Pass);
    let (_, drops) = give(&mut plane, HOST, (&frame(None, None, 0), 40));
    assert!(drops.is_empty(), "a class that must not lose anything");
    let mut plane = marking(NotCapable::Drop);
    let (_, drops) = give(&mut plane, HOST, (&frame(Some(priority(3)), None, 0), 40));
    assert!(drops.is_empty(), "a class without a marker");
}

#[test]
fn hosts_outside_the_domain_leave_its_priorities_and_see_no_cn_tag() {
    let edge = Treatment { input: InputPriority::Moved(priority(2)), strip_tag: true };
    let mut plane = plane(|dcb| {
        let mut cn = domain();
        cn.treatments[0][3] = edge;
        dcb.cn = Some(cn);
    });
    let foreign = frame(Some(priority(3)), None, 0);
    let (sent, _) = give(&mut plane, HOST, (&foreign, 1));
    let view = HeaderView::parse(sent[0].1.bytes(), WIDTH).unwrap();
    assert_eq!(view.priority(), priority(2));
    assert_eq!(VlanTag::of_frame(view.payload()).unwrap().pcp, priority(2));
    assert_eq!(VlanTag::of_frame(view.payload()).unwrap().vid, 5);
    assert_eq!(plane.counters().port(HOST).cn_moved, 1);
    let tagged = frame(Some(priority(3)), Some(9), 0);
    let flow_at = |plane: &mut Plane, out| {
        let (sent, _) = give(plane, AXON, (&packet(&[out], &tagged), 1));
        let frame = sent[0].1.bytes().to_vec();
        plane.tx_done(T0, PortNo(out), &mut Vec::new());
        (Tagged::parse(&frame).unwrap().cn, frame.len())
    };
    assert_eq!(flow_at(&mut plane, 0), (None, 1_396));
    assert_eq!(flow_at(&mut plane, 1), (Some(CnTag { flow: 9 }), 1_400));
    let kept = Box::new([Treatment { input: InputPriority::Kept, strip_tag: false }; 8]);
    plane.set_port(T0, HOST, PortSetting::Defence(kept), &mut Vec::new()).unwrap();
    assert_eq!(flow_at(&mut plane, 0), (Some(CnTag { flow: 9 }), 1_400));
}

#[test]
fn a_plane_resynchronised_without_a_defence_has_that_of_its_start() {
    let mut plane = plane(|dcb| {
        let mut cn = domain();
        cn.treatments[0][3].input = InputPriority::Moved(priority(2));
        dcb.cn = Some(cn);
    });
    let at_start = plane.snapshot();
    let foreign = frame(Some(priority(3)), None, 0);
    let priority_of = |plane: &mut Plane| {
        let (sent, _) = give(plane, HOST, (&foreign, 1));
        plane.tx_done(T0, AXON, &mut Vec::new());
        HeaderView::parse(sent[0].1.bytes(), WIDTH).unwrap().priority()
    };
    assert_eq!(priority_of(&mut plane), priority(2));
    let kept = Box::new([Treatment { input: InputPriority::Kept, strip_tag: false }; 8]);
    let setting = PortSetting::Defence(kept);
    assert_eq!(plane.set_port(T0, HOST, setting.clone(), &mut Vec::new()), Ok(()));
    assert_eq!(priority_of(&mut plane), priority(3));
    assert_eq!(plane.resynchronise(T0, &at_start, &mut Vec::new()), Ok(()));
    assert_eq!((priority_of(&mut plane), plane.snapshot()), (priority(2), at_start));
    let mut plain = Plane::new(PlaneConfig::with_ports(3, SWITCH));
    let refused = plain.set_port(T0, HOST, setting, &mut Vec::new());
    assert_eq!(refused, Err(SettingError::Unsupported), "without DCB there is no domain");
}

#[test]
fn a_moved_frame_without_a_tag_keeps_its_new_priority_to_the_last_queue() {
    let mut plane = plane(|dcb| {
        let mut cn = CnConfig::new(3, PrioritySet::only(Priority::ZERO));
        cn.treatments[0][0].input = InputPriority::Moved(priority(1));
        dcb.cn = Some(cn);
    });
    plane.install(HOST, FAR, &Route::from([1])).unwrap();
    give(&mut plane, HOST, (&frame(None, None, 0), 200));
    assert!(plane.queue(OTHER_HOST).frames > 100);
    assert_eq!(plane.counters().port(OTHER_HOST).cnms, 0, "priority 1 has no point");
}

#[test]
fn a_host_cannot_slow_another_one_down() {
    let forged = CnmFrame {
        destination: FAR,
        source: NEAR,
        vlan: None,
        cn: Some(CnTag { flow: 77 }),
        cnm: Cnm { feedback: 63, cpid: 1, priority: priority(3), ..Cnm::default() },
    };
    let forged = forged.emit(&CnmFormat::default());
    let (sent, drops) = give(&mut plane(|dcb| dcb.cn = Some(domain())), HOST, (&forged, 1));
    assert_eq!((sent.len(), drops), (0, vec![Drop::ForgedCnm]));
    let (sent, drops) = give(&mut plane(|_| ()), HOST, (&forged[..30], 1));
    assert_eq!((sent.len(), drops), (0, vec![Drop::ForgedCnm]), "whole or not, domain or not");
}
