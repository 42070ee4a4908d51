//! Constants of the wire outside `axon_wire::constants`: each equals the one there.

use super::root;
use axon_wire::constants::{address, ethertype, length, opcode, packet_type, probe, version};
use std::collections::BTreeMap;

fn read(file: &str) -> String {
    std::fs::read_to_string(root().join(file)).expect("a file of the repository")
}

/// Parses a number as written in Lua and Rust.
fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Returns the lines `local NAME = value` of the dissector whose name is in capitals and whose
/// value is a number or a string of hex digits.
fn of_the_dissector() -> BTreeMap<String, u64> {
    let text = read("docs/wireshark/axon.lua");
    let capitals = |name: &str| name.chars().all(|c| c.is_ascii_uppercase() || "_1".contains(c));
    let lines = text.lines().filter_map(|line| line.strip_prefix("local ")?.split_once(" = "));
    let constants = lines.filter(|(name, value)| capitals(name) && !value.starts_with('{'));
    let value = |text: &str| match text.strip_prefix('"') {
        Some(digits) => u64::from_str_radix(digits.trim_end_matches('"'), 16).ok(),
        None => number(text),
    };
    let known = |(name, text): (&str, &str)| {
        (name.to_string(), value(text).unwrap_or_else(|| panic!("{name} = {text}")))
    };
    constants.map(known).collect()
}

#[test]
fn the_dissector_has_the_constants_of_the_code() {
    let link_destination = address::NEAREST_BRIDGE.0;
    let link_destination = link_destination.iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte));
    let expected = [
        ("ETHERTYPE_LINK", ethertype::LINK.into()),
        ("ETHERTYPE_PROBE", ethertype::PROBE.into()),
        ("LINK_DESTINATION", link_destination),
        ("ETHER_PROBE_FIRST_BYTE", address::ETHER_PROBE_FIRST_BYTE.into()),
        ("ENVELOPE_VERSION", version::ENVELOPE.into()),
        ("PROBE_VERSION", version::PROBE.into()),
        ("CONGESTION_VERSION", version::CONGESTION.into()),
        ("ENVELOPE_BYTES", length::ENVELOPE as u64),
        ("PROBE_HEAD_BYTES", length::PROBE_HEAD as u64),
        ("PROBE_RECORD_BYTES", length::PROBE_RECORD as u64),
        ("CONGESTION_BYTES", length::CONGESTION as u64),
        ("HEADER_FIXED_BYTES", length::HEADER_FIXED as u64),
        ("HEADER_FIXED_BITS_OF_FOUR", length::HEADER_FIXED_BITS_OF_FOUR as u64),
        ("TYPE_ETHERNET", packet_type::ETHERNET.into()),
        ("TYPE_CONTROL", packet_type::CONTROL.into()),
        ("TYPE_PROBE", packet_type::PROBE.into()),
        ("TYPE_ERROR", packet_type::ERROR.into()),
        ("TYPE_CONGESTION", packet_type::CONGESTION.into()),
        ("UNIT_INGRESS", probe::UNIT_INGRESS.into()),
        ("UNIT_EGRESS", probe::UNIT_EGRESS.into()),
        ("OPTION_INGRESS", probe::OPTION_INGRESS.into()),
        ("OPTION_EGRESS", probe::OPTION_EGRESS.into()),
        ("OPTION_QUEUED", probe::OPTION_QUEUED.into()),
    ];
    let expected: BTreeMap<String, u64> =
        expected.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
    assert_eq!(of_the_dissector(), expected);
}

/// The tester shares no code with the codecs, so it repeats their constants.
#[test]
fn the_conformance_tester_has_the_constants_of_the_code() {
    let text = read("crates/conformance/src/frames.rs");
    let expected = [
        ("MAC_CONTROL_TYPE", ethertype::MAC_CONTROL),
        ("LLDP_TYPE", ethertype::LLDP),
        ("CNM_TYPE", ethertype::CNM),
        ("CN_TAG_TYPE", ethertype::CN_TAG),
        ("TAG_TYPE", ethertype::CUSTOMER_TAG),
        ("TRAFFIC_TYPE", ethertype::LINK),
        ("PAUSE", opcode::PAUSE),
        ("PFC", opcode::PFC),
    ];
    for (name, value) in expected {
        let line = format!("const {name}: u16 = {value:#06x};");
        assert!(text.contains(&line), "no {line}");
    }
    let line = format!("const SHORTEST: usize = {};", length::FRAME_MIN);
    assert!(text.contains(&line), "no {line}");
    let addresses = [
        ("MAC_CONTROL_GROUP", address::MAC_CONTROL),
        ("NEAREST_BRIDGE", address::NEAREST_BRIDGE),
        ("CUSTOMER_BRIDGE", address::NEAREST_CUSTOMER),
    ];
    for (name, value) in addresses {
        let [a, b, c, _, _, last] = value.0;
        let line =
            format!("const {name}: [u8; 6] = [{a:#04x}, {b:#04x}, {c:#04x}, 0, 0, {last:#04x}];");
        assert!(text.contains(&line), "no {line}");
    }
}

#[test]
fn pages_and_comments_have_the_constants_of_the_code() {
    let (link, probe) =
        (format!("0x{:04X}", ethertype::LINK), format!("0x{:04X}", ethertype::PROBE));
    let expected = [
        ("docs/wireshark/axon.lua", format!("Link frames (EtherType {link})")),
        ("docs/wireshark/axon.lua", format!("Ethernet of type {probe}")),
        ("docs/probes.md", format!("Ethernet frames of type {probe}")),
        ("docs/probes.md", format!("grows by {} bytes at every unit", length::PROBE_RECORD)),
        ("docs/probes.md", format!("take {} bytes of records", length::PROBE_RECORDS_MAX)),
        ("docs/demo.md", format!("link frame ({:#06x})", ethertype::LINK)),
        ("docs/baselines.md", format!("EtherType 0x{:04X}", ethertype::PORTLAND)),
        ("docs/conformance.md", format!("EtherType {link}")),
        ("crates/wire/src/link.rs", format!("the EtherType is {link}")),
        ("crates/wire/src/probe.rs", format!("probe (EtherType {probe})")),
    ];
    for (file, words) in expected {
        assert!(read(file).contains(&words), "{file} does not contain {words:?}");
    }
}

/// Covers names with braces, `axon.envelope.{version,length}`, and without.
#[test]
fn the_fields_that_the_demo_page_names_are_those_of_the_dissector() {
    let (page, script) = (read("docs/demo.md"), read("docs/wireshark/axon.lua"));
    let start = page.find("The fields are").expect("the page says which fields there are");
    let words = page[start..].split('`').filter(|word| word.starts_with("axon."));
    let mut count = 0;
    for word in words {
        let (stem, rest) = word.split_once('{').unwrap_or((word, ""));
        for name in rest.trim_end_matches('}').split(',') {
            let field = format!("\"{stem}{name}\"");
            assert!(script.contains(&field), "docs/demo.md names {field}");
            count += 1;
        }
    }
    assert!(count > 10, "only {count} fields found");
}
