//! Planted faults: the dissector reports as malformed what the code refuses.

use super::axon_port::{congestion, envelope, probe};
use super::host_port::ether_probe;
use super::*;
use crate::tshark::ETHERNET;
use axon_wire::congestion::Congestion;
use axon_wire::constants::{address, ethertype, version};
use axon_wire::envelope::Envelope;
use axon_wire::probe::ProbeView;

/// Returns a payload with this byte replaced.
fn with(mut bytes: Vec<u8>, at: usize, byte: u8) -> Vec<u8> {
    bytes[at] = byte;
    bytes
}

fn in_packet(name: &str, packet_type: PacketType, payload: &[u8], message: &str) -> Case {
    let (frame, fields) = plain_packet(packet_type, payload);
    bad(name, frame, fields, message)
}

#[test]
fn every_other_version_is_malformed() {
    let formats = [
        ("an envelope", PacketType::Control, version::ENVELOPE, envelope(b"opaque").0),
        ("a probe", PacketType::Probe, version::PROBE, probe(16).0),
        ("a congestion message", PacketType::Congestion, version::CONGESTION, congestion().0),
    ];
    let mut cases = Vec::new();
    for (name, packet_type, ours, bytes) in formats {
        for other in [0, ours - 1, ours + 1, u8::MAX] {
            let bytes = with(bytes.clone(), 0, other);
            assert!(Envelope::parse(&bytes).is_err(), "the code refuses it too");
            assert!(ProbeView::parse(&bytes).is_err() && Congestion::parse(&bytes).is_err());
            let message = format!("Not {name}: version {other}, where {ours} was expected");
            cases.push(in_packet(name, packet_type, &bytes, &message));
        }
    }
    check("versions", USER0, &cases);
}

#[test]
fn other_versions_in_plain_ethernet_are_malformed() {
    let frame = axon_wire::link::emit(HOST, &with(envelope(b"opaque").0, 0, 2));
    let fields = vec![
        ("eth.dst", address::NEAREST_BRIDGE.to_string()),
        ("eth.type", format!("{:#06x}", ethertype::LINK)),
    ];
    let expected = version::ENVELOPE;
    let message = format!("Not an envelope: version 2, where {expected} was expected");
    let link = bad("a link frame of version 2", frame, fields, &message);
    let (frame, mut fields) = ether_probe();
    fields.truncate(2);
    let message = format!("Not a probe: version 9, where {} was expected", version::PROBE);
    let probe = bad("an ether probe of version 9", with(frame, 14, 9), fields, &message);
    check("versions-in-ethernet", ETHERNET, &[link, probe]);
}

#[test]
fn what_is_cut_short_is_malformed() {
    let (envelope, probe, congestion) = (envelope(b"opaque").0, probe(16).0, congestion().0);
    let cases = [
        ("a cut head", PacketType::Control, &envelope[..26], "26 bytes, where at least 27 were"),
        ("a cut message", PacketType::Control, &envelope[..32], "5 bytes sealed, where 6 were"),
        ("no message", PacketType::Control, &[], "0 bytes, where at least 27 were"),
        ("a cut head", PacketType::Probe, &probe[..15], "15 bytes, where at least 16 were"),
        (
            "a cut one",
            PacketType::Congestion,
            &congestion[..27],
            "27 bytes, where at least 28 were",
        ),
    ];
    let cases = cases.map(|(name, packet_type, bytes, message)| {
        let format = match packet_type {
            PacketType::Control => "an envelope",
            PacketType::Probe => "a probe",
            _ => "a congestion message",
        };
        in_packet(name, packet_type, bytes, &format!("Not {format}: {message} expected"))
    });
    check("cut", USER0, &cases);
}

#[test]
fn probes_that_contradict_themselves_are_malformed() {
    let good = probe(16).0;
    let cases = [
        ("body", with(good.clone(), 3, 15), "15 bytes of body, where at least 16 were expected"),
        ("length", with(good.clone(), 3, 49), "48 bytes, where 49 of body were expected"),
        ("tail", good[..47].to_vec(), "31 bytes of records, which are 16 bytes each"),
        ("unit", with(good.clone(), 32, 3), "record of unit 3"),
    ];
    let cases = cases.map(|(name, bytes, message)| {
        assert!(ProbeView::parse(&bytes).is_err(), "the code refuses it too");
        in_packet(name, PacketType::Probe, &bytes, &format!("Not a probe: {message}"))
    });
    check("probes", USER0, &cases);
}

#[test]
fn headers_that_the_code_refuses_are_malformed() {
    let header = |first: &str, length: &str| -> Fields {
        vec![
            ("axon.type", first.into()),
            ("axon.header_length", length.into()),
            ("axon.forward_count", "1".into()),
            ("axon.reverse_count", "1".into()),
        ]
    };
    let (good, fields) = plain_packet(PacketType::Error, &[]);
    let mut cases = Vec::new();
    for packet_type in [6, 15] {
        let frame = with(good.clone(), 0, packet_type << 4);
        let mut fields = fields.clone();
        fields[0].1 = packet_type.to_string();
        let message = format!("Unassigned packet type {packet_type}");
        cases.push(bad("type", frame, fields, &message));
    }
    let message = "Bad header length: 9 bytes do not hold 2 hops of 4, 8 or 16 bits";
    cases.push(bad("length", with(good.clone(), 2, 0x90), header("4", "9"), message));
    let message = "Bad header length: 7 bytes, where 8 were expected";
    cases.push(bad("cut", good[..7].to_vec(), header("4", "8"), message));
    for case in &cases {
        assert!(header::HeaderView::parse(&case.frame, HopWidth::Eight).is_err(), "{}", case.name);
    }
    check("headers", USER0, &cases);
}
