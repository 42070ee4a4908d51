//! Frames at a port between switches: Axon packets of every type, and link-local frames.

use super::*;
use crate::samples;
use axon_wire::congestion::Congestion;
use axon_wire::constants::{ethertype, version};
use axon_wire::envelope::Envelope;
use axon_wire::probe::{ProbeHead, ProbeOptions, ProbeRecord, ProbeUnit};
use axon_wire::{Bytes, Incarnation, NodeId, Time};

const FROM: Incarnation = Incarnation { node: NodeId(7), number: 0x0102_0304_0506_0708 };
const SEQUENCE: u64 = 1 << 40;

/// An ARP request from a host, and its fields.
pub fn arp() -> (Vec<u8>, Fields) {
    let mut body = vec![0, 1, 8, 0, 6, 4, 0, 1];
    body.extend_from_slice(&HOST.0);
    body.extend_from_slice(&[10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2]);
    let frame = ethernet(MacAddr::BROADCAST, ethertype::ARP, &body);
    let fields = vec![
        ("eth.dst", MacAddr::BROADCAST.to_string()),
        ("eth.type", "0x0806".into()),
        ("arp.opcode", "1".into()),
    ];
    (frame, fields)
}

/// An envelope around these sealed bytes, and its fields.
pub fn envelope(sealed: &[u8]) -> (Vec<u8>, Fields) {
    let fields = vec![
        ("axon.envelope.version", version::ENVELOPE.to_string()),
        ("axon.envelope.length", sealed.len().to_string()),
        ("axon.envelope.node", format!("0x{}", FROM.node)),
        ("axon.envelope.incarnation", format!("{:#018x}", FROM.number)),
        ("axon.envelope.sequence", SEQUENCE.to_string()),
        ("axon.envelope.sealed", hex(sealed)),
    ];
    (Envelope { from: FROM, sequence: SEQUENCE, sealed }.emit(), fields)
}

/// A probe with the records of two units of one switch, and its fields.
pub fn probe(body_bytes: u16) -> (Vec<u8>, Fields) {
    let head = ProbeHead {
        options: ProbeOptions::INGRESS | ProbeOptions::QUEUED,
        body_bytes,
        sequence: 4_000_000_000,
        origin: NodeId(7),
    };
    let record = |unit, port, queued, ticks| {
        let (port, queued, time) = (PortNo(port), Bytes(queued), Time::from_ticks(ticks));
        ProbeRecord { unit, port, queued, time }.emit()
    };
    let mut bytes = head.emit();
    bytes.extend_from_slice(&record(ProbeUnit::Ingress, 2, 0, 1000));
    bytes.extend_from_slice(&record(ProbeUnit::Egress, 700, 1514, 53_050));
    let fields = vec![
        ("axon.probe.version", version::PROBE.to_string()),
        ("axon.probe.options", "0x05".into()),
        ("axon.probe.wants_ingress", "1".into()),
        ("axon.probe.wants_egress", "0".into()),
        ("axon.probe.wants_queued", "1".into()),
        ("axon.probe.body_bytes", body_bytes.to_string()),
        ("axon.probe.sequence", "4000000000".into()),
        ("axon.probe.origin", "0x0000000000000007".into()),
        ("axon.probe.unit", "1,2".into()),
        ("axon.probe.port", "2,700".into()),
        ("axon.probe.queued", "0,1514".into()),
        ("axon.probe.ticks", "1000,53050".into()),
        ("axon.probe.residence_ns", "520.5".into()),
    ];
    (bytes, fields)
}

/// A congestion message, and its fields.
pub fn congestion() -> (Vec<u8>, Fields) {
    let message = Congestion {
        egress: PortNo(3),
        host_port: PortNo(700),
        queued: Bytes(131_072),
        switch: MacAddr([2, 1, 1, 1, 1, 1]),
        destination: OTHER,
        source: HOST,
    };
    let fields = vec![
        ("axon.congestion.version", version::CONGESTION.to_string()),
        ("axon.congestion.egress", "3".into()),
        ("axon.congestion.host_port", "700".into()),
        ("axon.congestion.queued", "131072".into()),
        ("axon.congestion.switch", "02:01:01:01:01:01".into()),
        ("axon.congestion.destination", OTHER.to_string()),
        ("axon.congestion.source", HOST.to_string()),
    ];
    (message.emit(), fields)
}

fn payload(packet_type: PacketType) -> (Vec<u8>, Fields) {
    match packet_type {
        PacketType::Ethernet => arp(),
        PacketType::Control => envelope(b"opaque to the dissector"),
        PacketType::Probe => probe(20),
        PacketType::Error => (vec![0xaa, 0xbb], vec![("data.data", "aabb".into())]),
        PacketType::Congestion => congestion(),
    }
}

fn hop_words(hops: &[PortNo]) -> String {
    let word = |hop: &PortNo| match *hop {
        PortNo::CONTROL => "control".to_string(),
        PortNo(number) => number.to_string(),
    };
    hops.iter().map(word).collect::<Vec<_>>().join(" ")
}

#[test]
fn every_packet_type_is_read_with_hops_of_every_width_and_with_its_priority() {
    let routes: [(&[u16], &[u16]); 5] = [
        (&[], &[]),
        (&[3], &[]),
        (&[], &[0]),
        (&[1, 14, u16::MAX], &[0, 4]),
        (&[7, 6, 5, 4, 3, 2, 1, 0], &[u16::MAX, 9, 8]),
    ];
    let mut cases = Vec::new();
    for width in [HopWidth::Four, HopWidth::Eight, HopWidth::Sixteen] {
        for (route, priority) in routes.iter().flat_map(|route| [(route, 0), (route, 5)]) {
            let [forward, reverse] =
                [route.0, route.1].map(|hops| hops.iter().copied().map(PortNo).collect::<Vec<_>>());
            for packet_type in PacketType::ALL {
                let (payload, mut fields) = payload(packet_type);
                let hops = (&forward[..], &reverse[..]);
                let priority = Priority::ALL[priority];
                let frame = packet(width, packet_type, hops, priority, &payload);
                // Without a hop the width is unknown, and 8 bits are shown.
                let none = forward.len() + reverse.len() == 0;
                let bits = if none { 8 } else { width.bits() };
                fields.extend([
                    ("axon.type", (packet_type as u8).to_string()),
                    ("axon.header_length", (frame.len() - payload.len()).to_string()),
                    ("axon.forward_count", forward.len().to_string()),
                    ("axon.reverse_count", reverse.len().to_string()),
                    ("axon.hop_bits", bits.to_string()),
                    ("axon.forward", hop_words(&forward)),
                    ("axon.reverse", hop_words(&reverse)),
                ]);
                if bits != 4 {
                    let priority = if width == HopWidth::Four { 0 } else { priority.value() };
                    fields.push(("axon.priority", priority.to_string()));
                }
                cases.push(good(format!("{packet_type:?}, {width:?}, {route:?}"), frame, fields));
            }
        }
    }
    check("packets", USER0, &cases);
}

#[test]
fn every_control_message_is_read_as_an_envelope_in_packets_and_link_frames() {
    let mut cases = Vec::new();
    for (name, (vlan, message)) in samples::all() {
        // Number of sealed bytes: the message and the tag.
        let sealed = [message.encode(vlan), vec![0x5e; 16]].concat();
        let (envelope, fields) = envelope(&sealed);
        let (frame, header) = plain_packet(PacketType::Control, &envelope);
        cases.push(good(format!("{name} in a packet"), frame, [header, fields.clone()].concat()));
        let frame = axon_wire::link::emit(HOST, &envelope);
        let ethernet = vec![
            ("eth.dst", axon_wire::link::DESTINATION.to_string()),
            ("eth.type", format!("{:#06x}", ethertype::LINK)),
        ];
        cases.push(good(format!("{name} in a link frame"), frame, [ethernet, fields].concat()));
    }
    check("messages", USER0, &cases);
}

#[test]
fn payloads_of_no_length_are_not_malformed() {
    let (empty, fields) = envelope(&[]);
    let (frame, header) = plain_packet(PacketType::Control, &empty);
    let sealed = |(name, _): &(&str, String)| *name != "axon.envelope.sealed";
    let fields = [header, fields.into_iter().filter(sealed).collect()].concat();
    let mut cases = vec![good("an envelope with nothing sealed", frame, fields)];
    let (frame, header) = plain_packet(PacketType::Error, &[]);
    cases.push(good("an error packet without payload", frame, header));
    let head = ProbeHead {
        options: ProbeOptions::default(),
        body_bytes: 16,
        sequence: 1,
        origin: NodeId(7),
    };
    let (frame, mut header) = plain_packet(PacketType::Probe, &head.emit());
    header.extend([
        ("axon.probe.version", version::PROBE.to_string()),
        ("axon.probe.options", "0x00".into()),
        ("axon.probe.wants_ingress", "0".into()),
        ("axon.probe.wants_egress", "0".into()),
        ("axon.probe.wants_queued", "0".into()),
        ("axon.probe.body_bytes", "16".into()),
        ("axon.probe.sequence", "1".into()),
        ("axon.probe.origin", "0x0000000000000007".into()),
    ]);
    cases.push(good("a probe without records", frame, header));
    check("empty", USER0, &cases);
}

#[test]
fn frames_of_the_link_are_read_between_packets() {
    check("link-local", USER0, &super::host_port::link_local());
}
