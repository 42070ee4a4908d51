//! Records that the probe units of one plane append, and the packets that receive them (thesis 000
//! §3.2.2).

use axon_node::{Action, Drop, PortKind, Punt};
use axon_plane::{Plane, PlaneConfig, ProbeUnits};
use axon_wire::header::{self, HeaderView, PacketType};
use axon_wire::probe::{self, ProbeHead, ProbeOptions, ProbeRecord, ProbeUnit, ProbeView};
use axon_wire::{Bytes, FrameBuf, HopWidth, Hops, MacAddr, NodeId, PortNo, Span, Time};

const MAC: MacAddr = MacAddr([2, 0, 0, 7, 8, 9]);
const WIDTH: HopWidth = HopWidth::Eight;

fn at(nanos: u64) -> Time {
    Time::from_nanos(nanos)
}

/// Ports 0 and 1 lead to Axons, 2 and 3 to hosts.
fn plane(units: ProbeUnits) -> Plane {
    let config = PlaneConfig { probe_units: units, ..PlaneConfig::with_ports(4, MAC) };
    let mut plane = Plane::new(config);
    for port in 0..4 {
        plane.link(Time::ZERO, PortNo(port), true, &mut Vec::new());
        plane.set_kind(PortNo(port), if port < 2 { PortKind::Axon } else { PortKind::Host });
    }
    plane
}

fn head(options: ProbeOptions, body_bytes: u16) -> ProbeHead {
    ProbeHead { options, body_bytes, sequence: 3, origin: NodeId(7) }
}

fn packet(packet_type: PacketType, hops: &Hops, head: &ProbeHead) -> FrameBuf {
    let mut bytes = vec![0; WIDTH.header_bytes(hops.len())];
    header::emit(&mut bytes, WIDTH, packet_type, hops, &[]).unwrap();
    bytes.extend_from_slice(&head.emit());
    FrameBuf::new(&bytes)
}

fn records(packet: &FrameBuf) -> Vec<ProbeRecord> {
    let view = HeaderView::parse(packet.bytes(), WIDTH).unwrap();
    ProbeView::parse(view.payload()).unwrap().records().collect()
}

fn record(unit: ProbeUnit, port: u16, queued: u64, nanos: u64) -> ProbeRecord {
    ProbeRecord { unit, port: PortNo(port), queued: Bytes(queued), time: at(nanos) }
}

#[test]
fn a_probe_is_stamped_when_it_comes_and_when_it_starts_to_leave() {
    let mut plane = plane(ProbeUnits::default());
    let mut out = Vec::new();
    let hops = Hops::from([1, 5]);
    let probe = packet(PacketType::Probe, &hops, &head(ProbeOptions::ALL, 50));
    for _ in 0..3 {
        plane.receive(at(100), PortNo(0), probe.clone(), at(900), true, &mut out);
    }
    for now in [1000, 2000] {
        plane.tx_done(at(now), PortNo(1), &mut out);
    }
    let sent: Vec<Vec<ProbeRecord>> = out
        .iter()
        .map(|action| match action {
            Action::Transmit { frame, complete_at, .. } => {
                assert_eq!(*complete_at, at(900), "stamps do not change when the tail is here");
                records(frame)
            }
            other => panic!("{other:?}"),
        })
        .collect();
    let length = probe.bytes().len() as u64 + 16;
    let came = record(ProbeUnit::Ingress, 0, 0, 100);
    assert_eq!(sent[0], [came, record(ProbeUnit::Egress, 1, 0, 100)]);
    assert_eq!(sent[1], [came, record(ProbeUnit::Egress, 1, length, 1000)]);
    assert_eq!(sent[2], [came, record(ProbeUnit::Egress, 1, 0, 2000)]);
}

#[test]
fn units_stand_where_the_device_has_them() {
    let units = ProbeUnits {
        ingress: Span::from_nanos(40),
        ingress_per_byte: Span::ZERO,
        egress: Span::from_nanos(7),
        egress_per_byte: Span::from_nanos(1),
    };
    let mut plane = plane(units);
    let mut out = Vec::new();
    let probe = packet(PacketType::Probe, &Hops::from([1, 5]), &head(ProbeOptions::ALL, 50));
    let bytes = probe.bytes().len() as u64;
    plane.receive(at(100), PortNo(0), probe, at(100), true, &mut out);
    let Some(Action::Transmit { frame, .. }) = out.pop() else { panic!("it is sent") };
    let left = 100 + 7 + bytes + 16;
    let expected = [record(ProbeUnit::Ingress, 0, 0, 60), record(ProbeUnit::Egress, 1, 0, left)];
    assert_eq!(records(&frame), expected);
}

#[test]
fn only_probes_are_stamped_and_only_as_they_ask() {
    let mut plane = plane(ProbeUnits::default());
    let hops = Hops::from([1, 5]);
    for (packet_type, options, expected) in [
        (PacketType::Probe, ProbeOptions::INGRESS, 1),
        (PacketType::Probe, ProbeOptions::EGRESS, 1),
        (PacketType::Probe, ProbeOptions::QUEUED, 0),
        (PacketType::Ethernet, ProbeOptions::ALL, 0),
        (PacketType::Control, ProbeOptions::ALL, 0),
    ] {
        let mut out = Vec::new();
        let frame = packet(packet_type, &hops, &head(options, 50));
        plane.receive(at(5), PortNo(0), frame, at(5), true, &mut out);
        plane.tx_done(at(5), PortNo(1), &mut out);
        let Action::Transmit { frame, .. } = &out[0] else { panic!("{out:?}") };
        assert_eq!(records(frame).len(), expected);
    }
}

#[test]
fn a_probe_without_room_goes_on_without_its_record() {
    let mut plane = plane(ProbeUnits::default());
    let most = plane.config().probe_bytes_max();
    let body = (most - WIDTH.header_bytes(2) - 20) as u16;
    let probe = packet(PacketType::Probe, &Hops::from([1, 5]), &head(ProbeOptions::ALL, body));
    let mut out = Vec::new();
    plane.receive(at(5), PortNo(0), probe, at(5), true, &mut out);
    let Action::Transmit { frame, .. } = &out[0] else { panic!("{out:?}") };
    assert_eq!(records(frame), [record(ProbeUnit::Ingress, 0, 0, 5)]);
    assert_eq!(plane.counters().port(PortNo(1)).unstamped, 1);
}

#[test]
fn what_claims_to_be_a_probe_and_is_none_harms_nobody() {
    let mut plane = plane(ProbeUnits::default());
    for bytes in [vec![0x30; 60], vec![0x30], vec![0x30, 0, 0x70, 1, 0, 0, 1]] {
        let mut out = Vec::new();
        plane.receive(at(5), PortNo(0), FrameBuf::new(&bytes), at(5), true, &mut out);
        assert_eq!(out.len(), 1);
        if let Action::Dropped { reason, frame, .. } = &out[0] {
            assert_eq!((*reason, frame.bytes()), (Drop::Malformed, &bytes[..]));
        }
    }
}

#[test]
fn an_ether_probe_goes_out_of_one_host_port_and_comes_back_by_another() {
    let mut plane = plane(ProbeUnits::default());
    let address = |port| probe::ether_address(MAC, PortNo(port));
    let frame = head(ProbeOptions::ALL, 46).emit_ether(address(3), address(2));
    let mut out = Vec::new();
    plane.send_raw(at(10), PortNo(2), FrameBuf::new(&frame), &mut out);
    let Some(Action::Transmit { port: PortNo(2), frame, .. }) = out.pop() else {
        panic!("it is sent")
    };
    plane.receive(at(700), PortNo(3), frame, at(800), true, &mut out);
    assert!(out.is_empty(), "its tail is missing");
    plane.timeout(at(800), &mut out);
    let Some(Action::Punt { ingress, frame, punt, .. }) = out.pop() else { panic!("it is punted") };
    assert_eq!((ingress, punt), (PortNo(3), Punt::EtherProbe));
    let view = ProbeView::parse(&frame.bytes()[14..]).unwrap();
    let expected = [record(ProbeUnit::Egress, 2, 0, 10), record(ProbeUnit::Ingress, 3, 0, 700)];
    assert!(view.records().eq(expected));
}
