//! Our own dissector, `docs/wireshark/axon.lua`, on frames of every type that the code writes: it
//! decodes each field as written and reports no frame as malformed, except those with a planted
//! fault.

mod axon_port;
mod constants;
mod faults;
mod host_port;

use crate::tshark::dissect_with;
use axon_wire::header::{self, HopWidth, PacketType};
use axon_wire::{MacAddr, PortNo, Priority};
use std::path::PathBuf;

/// Link type of captures at ports between switches: USER0.
const USER0: u32 = 147;
const HOST: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const OTHER: MacAddr = MacAddr([2, 0, 0, 0, 0, 9]);

/// Fields requested from tshark for each frame. A field that a case does not name must be absent.
const FIELDS: &[&str] = &[
    "axon.type",
    "axon.header_length",
    "axon.forward_count",
    "axon.reverse_count",
    "axon.priority",
    "axon.hop_bits",
    "axon.forward",
    "axon.reverse",
    "axon.envelope.version",
    "axon.envelope.length",
    "axon.envelope.node",
    "axon.envelope.incarnation",
    "axon.envelope.sequence",
    "axon.envelope.sealed",
    "axon.probe.version",
    "axon.probe.options",
    "axon.probe.wants_ingress",
    "axon.probe.wants_egress",
    "axon.probe.wants_queued",
    "axon.probe.body_bytes",
    "axon.probe.sequence",
    "axon.probe.origin",
    "axon.probe.unit",
    "axon.probe.port",
    "axon.probe.queued",
    "axon.probe.ticks",
    "axon.probe.residence_ns",
    "axon.congestion.version",
    "axon.congestion.egress",
    "axon.congestion.host_port",
    "axon.congestion.queued",
    "axon.congestion.switch",
    "axon.congestion.destination",
    "axon.congestion.source",
    "eth.dst",
    "eth.type",
    "arp.opcode",
    "vlan.priority",
    "macc.opcode",
    "macc.pause_time",
    "macc.cbfc.enbv",
    "lldp.chassis.id.mac",
    "lldp.dcbx.control.seq",
    "lldp.dcbx.ieee.pfc.numtcs",
    "data.data",
    "_ws.expert.message",
    "_ws.malformed",
];

/// Fields with their values as shown by tshark.
type Fields = Vec<(&'static str, String)>;

/// A frame, and the expected result of the dissector.
struct Case {
    name: String,
    frame: Vec<u8>,
    fields: Fields,
    /// True if tshark reports the frame as malformed.
    malformed: bool,
}

/// A well-formed frame.
fn good(name: impl Into<String>, frame: Vec<u8>, fields: Fields) -> Case {
    Case { name: name.into(), frame, fields, malformed: false }
}

/// A malformed frame, with this message.
fn bad(name: &str, frame: Vec<u8>, mut fields: Fields, message: &str) -> Case {
    fields.push(("_ws.expert.message", message.to_string()));
    Case { name: name.to_string(), frame, fields, malformed: true }
}

fn check(name: &str, link_type: u32, cases: &[Case]) {
    let frames: Vec<Vec<u8>> = cases.iter().map(|case| case.frame.clone()).collect();
    let Some(lines) = dissect_with(Some(&script()), link_type, name, &frames, FIELDS) else {
        return;
    };
    let mut differences = String::new();
    for (case, line) in cases.iter().zip(&lines) {
        for (name, _) in &case.fields {
            assert!(FIELDS.contains(name), "{name} is not among the fields");
        }
        let values: Vec<&str> = line.split('|').collect();
        assert_eq!(values.len(), FIELDS.len(), "{line}");
        for (field, found) in FIELDS.iter().zip(values) {
            let named = case.fields.iter().find(|(name, _)| name == field);
            let expected = match *field {
                "_ws.malformed" => if case.malformed { "_ws.malformed" } else { "" }.to_string(),
                _ => named.map(|(_, value)| value.clone()).unwrap_or_default(),
            };
            if found != expected {
                let case = &case.name;
                differences += &format!("{case}: {field} is {found:?}, expected {expected:?}\n");
            }
        }
    }
    assert!(differences.is_empty(), "{differences}");
}

fn script() -> PathBuf {
    root().join("docs/wireshark/axon.lua")
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// An Axon packet.
fn packet(
    width: HopWidth,
    packet_type: PacketType,
    (forward, reverse): (&[PortNo], &[PortNo]),
    priority: Priority,
    payload: &[u8],
) -> Vec<u8> {
    let mut bytes = vec![0xa5; 64];
    let length = header::emit(&mut bytes, width, packet_type, forward, reverse).unwrap();
    header::set_priority(&mut bytes, width, priority);
    bytes.truncate(length);
    bytes.extend_from_slice(payload);
    bytes
}

/// A packet with two hops of 8 bits and priority 0, and the fields of its header.
fn plain_packet(packet_type: PacketType, payload: &[u8]) -> (Vec<u8>, Fields) {
    let hops = ([PortNo(3)], [PortNo(4)]);
    let fields = vec![
        ("axon.type", (packet_type as u8).to_string()),
        ("axon.header_length", "8".into()),
        ("axon.forward_count", "1".into()),
        ("axon.reverse_count", "1".into()),
        ("axon.priority", "0".into()),
        ("axon.hop_bits", "8".into()),
        ("axon.forward", "3".into()),
        ("axon.reverse", "4".into()),
    ];
    let hops = (&hops.0[..], &hops.1[..]);
    (packet(HopWidth::Eight, packet_type, hops, Priority::ZERO, payload), fields)
}

/// An Ethernet frame, padded to the Ethernet minimum.
fn ethernet(destination: MacAddr, ethertype: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = [&destination.0[..], &HOST.0, &ethertype.to_be_bytes(), payload].concat();
    frame.resize(frame.len().max(60), 0);
    frame
}
