//! The tester has its own codec. It agrees with the golden vectors, and none of its files reads or
//! writes frames with the code under test.

use axon_conformance::frames::{self, FlowControl, NoFlowControl};
use axon_wire::MacAddr;
use std::path::Path;

fn vectors() -> String {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/dcb.txt");
    std::fs::read_to_string(file).unwrap()
}

fn bytes(hex: &str) -> Vec<u8> {
    let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex");
    (0..hex.len()).step_by(2).map(byte).collect()
}

fn mac(hex: &str) -> MacAddr {
    MacAddr(bytes(hex).try_into().expect("six bytes"))
}

fn word(hex: &str) -> u16 {
    u16::from_str_radix(hex, 16).expect("hex")
}

/// Returns the tester's result for the left side of a vector, in the format of the right side.
fn answer(left: &[&str]) -> String {
    match left {
        ["pause", source, time] => frames::hex(&frames::pause(mac(source), word(time))),
        ["pfc", source, enabled, times] => {
            let times = core::array::from_fn(|at| word(&times[4 * at..4 * at + 4]));
            frames::hex(&frames::pfc(mac(source), word(enabled), times))
        }
        ["read", own, frame] => match frames::flow_control_of(mac(own), &bytes(frame)) {
            Ok(FlowControl::Pause(time)) => format!("pause {time:04x}"),
            Ok(FlowControl::Pfc(vector, times)) => {
                let times: String = times.iter().map(|time| format!("{time:04x}")).collect();
                format!("pfc {vector:02x} {times}")
            }
            Err(NoFlowControl::Short) => "error short".into(),
            Err(NoFlowControl::Ethertype) => "error ethertype".into(),
            Err(NoFlowControl::Source) => "error source".into(),
            Err(NoFlowControl::Opcode) => "error opcode".into(),
            Err(NoFlowControl::Destination) => "error destination".into(),
        },
        ["tags", frame] => match frames::tags_of(&bytes(frame)) {
            Some((priority, kind, at)) => format!("{priority} {kind:04x} {at}"),
            None => "error short".into(),
        },
        other => panic!("the tester knows no case {other:?}"),
    }
}

#[test]
fn the_tester_agrees_with_every_golden_vector_of_dcb() {
    let text = vectors();
    let cases = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut kinds = [("pause", 0), ("pfc", 0), ("read", 0), ("tags", 0)];
    for line in cases {
        let (left, right) = line.split_once(" => ").expect(line);
        let left: Vec<&str> = left.split(' ').collect();
        assert_eq!(answer(&left), right, "{line}");
        let kind = kinds.iter_mut().find(|(kind, _)| *kind == left[0]).expect(line);
        kind.1 += 1;
    }
    assert!(kinds.iter().all(|(_, count)| *count >= 2), "{kinds:?}");
}

/// Returns all sources below a folder, each with its text up to the tests.
fn sources(folder: &Path) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(sources(&path));
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let end = text.find("#[cfg(test)]\nmod ").unwrap_or(text.len());
        all.push((path.to_str().unwrap().to_owned(), text[..end].to_owned()));
    }
    all
}

/// The device under test is in `simulated`, and `linux.rs` contains its packet sockets.
#[test]
fn the_tester_takes_units_from_the_code_under_test_and_nothing_else() {
    let all = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    let tester = |name: &str| !name.contains("/simulated/") && !name.ends_with("/linux.rs");
    let units = ["{", "Bytes", "MacAddr", "Priority", "Rate", "Span", "Time", "priority::"];
    // Codecs are imported in this form. `{cn::CnmFrame, ..}` would begin like this, too.
    let no_module = |rest: &str| !rest.starts_with('{') || !rest.contains("::");
    let mut uses = 0;
    for (name, text) in all.iter().filter(|(name, _)| tester(name)) {
        for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
            for part in line.split("axon_").skip(1) {
                let rest = part.strip_prefix("wire::");
                let unit = rest.is_some_and(|rest| {
                    no_module(rest) && units.iter().any(|unit| rest.starts_with(unit))
                });
                assert!(unit, "{name}: {line}");
                uses += 1;
            }
        }
    }
    assert!(uses > 20, "{uses}");
}
