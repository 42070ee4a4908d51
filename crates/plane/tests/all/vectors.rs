//! Runs the golden cases of `vectors/`; `BLESS=1` rewrites them.

use crate::samples;
use axon_node::{
    Action, Dataplane, Drop, Input, PortKind, PortSetting, Punt, RouteChange, RouteKey, RouteTicket,
};
use axon_plane::reference::{self, Reference, Verdict};
use axon_plane::{Plane, PlaneConfig, Step, forward};
use axon_wire::congestion::Congestion;
use axon_wire::constants::version;
use axon_wire::envelope::{Envelope, EnvelopeError};
use axon_wire::header::{self, HeaderError, HeaderView, PacketType};
use axon_wire::mac_control::{MacControl, MacControlError, Pfc, Quanta};
use axon_wire::message::Message;
use axon_wire::probe::{ProbeError, ProbeHead, ProbeOptions, ProbeRecord, ProbeUnit, ProbeView};
use axon_wire::vlan;
use axon_wire::{
    Bytes, FrameBuf, HopWidth, Hops, Incarnation, MacAddr, NodeId, PortNo, Priority, PrioritySet,
    Time,
};
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors")
}

fn read(file: &str) -> String {
    std::fs::read_to_string(folder().join(file)).expect("the vectors are part of the repository")
}

/// Runs every case of one file through `answer`, and compares or, with `BLESS=1`, rewrites the
/// right side of `=>`.
fn check(file: &str, answer: impl Fn(&[&str]) -> String) {
    let (blessed, differences) = answers(file, answer);
    if std::env::var_os("BLESS").is_some_and(|value| value == "1") {
        // Replaced in one step, since other tests read the file meanwhile.
        let written = folder().join(file).with_extension("blessed");
        std::fs::write(&written, blessed).expect("the vectors can be written");
        std::fs::rename(&written, folder().join(file)).expect("the vectors can be replaced");
    } else {
        assert!(differences.is_empty(), "{}", differences.join("\n"));
    }
}

/// Returns the file with these answers, and its differences from the present one.
fn answers(file: &str, answer: impl Fn(&[&str]) -> String) -> (String, Vec<String>) {
    let text = read(file);
    let mut blessed = String::new();
    let mut differences = Vec::new();
    let mut cases = 0;
    for (index, line) in text.lines().enumerate() {
        if line.is_empty() || line.starts_with('#') {
            blessed += &format!("{line}\n");
            continue;
        }
        cases += 1;
        let (inputs, expected) = line.split_once(" => ").unwrap_or((line, ""));
        let fields: Vec<&str> = inputs.split(' ').collect();
        let answer = answer(&fields);
        if answer != expected {
            let number = index + 1;
            differences
                .push(format!("{file}:{number}: {inputs}\n  file: {expected}\n  code: {answer}"));
        }
        blessed += &format!("{inputs} => {answer}\n");
    }
    assert!(cases > 0, "{file} holds no case");
    (blessed, differences)
}

fn bytes(word: &str) -> Vec<u8> {
    if word == "-" {
        return Vec::new();
    }
    assert!(word.len().is_multiple_of(2), "{word}: half a byte");
    let byte = |at| u8::from_str_radix(&word[at..at + 2], 16).expect("hex digits");
    (0..word.len()).step_by(2).map(byte).collect()
}

fn hex(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "-".into();
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn number(word: &str) -> u64 {
    u64::from_str_radix(word, 16).expect("a hex number")
}

fn width(word: &str) -> HopWidth {
    match word {
        "4" => HopWidth::Four,
        "8" => HopWidth::Eight,
        "16" => HopWidth::Sixteen,
        _ => panic!("{word} is no hop width"),
    }
}

fn port(word: &str) -> PortNo {
    if word == "cpu" { PortNo::CONTROL } else { PortNo(word.parse().expect("a port")) }
}

fn port_word(port: PortNo) -> String {
    if port == PortNo::CONTROL { "cpu".into() } else { port.0.to_string() }
}

fn hops(word: &str) -> Hops {
    if word == "-" { Hops::default() } else { word.split(',').map(port).collect() }
}

fn hops_word(hops: &Hops) -> String {
    let words: Vec<String> = hops.iter().map(|&hop| port_word(hop)).collect();
    if words.is_empty() { "-".into() } else { words.join(",") }
}

fn kinds(word: &str) -> Vec<PortKind> {
    let kind = |letter| match letter {
        'A' => PortKind::Axon,
        'H' => PortKind::Host,
        'U' => PortKind::Unknown,
        _ => panic!("{letter} is no kind of port"),
    };
    word.chars().map(kind).collect()
}

const TYPES: [(&str, PacketType); 5] = [
    ("ethernet", PacketType::Ethernet),
    ("control", PacketType::Control),
    ("probe", PacketType::Probe),
    ("error", PacketType::Error),
    ("congestion", PacketType::Congestion),
];

fn header_error(error: HeaderError) -> String {
    let word = match error {
        HeaderError::Truncated => "truncated",
        HeaderError::Length => "length",
        HeaderError::Type => "type",
        HeaderError::Unrepresentable => "unrepresentable",
    };
    format!("error {word}")
}

fn parse_case(hop_width: &str, packet: &str) -> String {
    let packet = bytes(packet);
    match HeaderView::parse(&packet, width(hop_width)) {
        Err(error) => header_error(error),
        Ok(view) => {
            let of_type =
                |(_, packet_type): &&(&str, PacketType)| *packet_type == view.packet_type();
            let (name, _) = TYPES.iter().find(of_type).expect("every type has a name");
            let (forward, reverse) = (hops_word(&view.forward()), hops_word(&view.reverse()));
            let payload = hex(view.payload());
            format!("ok {name} {} {forward} {reverse} {payload}", view.header_bytes())
        }
    }
}

fn emit_case(hop_width: &str, name: &str, forward: &str, reverse: &str) -> String {
    let (_, packet_type) = TYPES.iter().find(|(word, _)| *word == name).expect("a packet type");
    let mut dirty = vec![0xa5; 256];
    let (forward, reverse) = (hops(forward), hops(reverse));
    match header::emit(&mut dirty, width(hop_width), *packet_type, &forward, &reverse) {
        Err(error) => header_error(error),
        Ok(length) => format!("ok {}", hex(&dirty[..length])),
    }
}

fn set_priority_case(hop_width: &str, priority: &str, packet: &str) -> String {
    let (mut packet, width) = (bytes(packet), width(hop_width));
    let priority = Priority::new(number(priority) as u8).expect("a priority");
    header::set_priority(&mut packet, width, priority);
    let view = HeaderView::parse(&packet, width).expect("a header stays a header");
    format!("{} {}", view.priority(), hex(&packet))
}

#[test]
fn headers_parse_and_emit_as_in_the_vectors() {
    check("header.txt", |fields| match *fields {
        ["parse", width, packet] => parse_case(width, packet),
        ["emit", width, name, forward, reverse] => emit_case(width, name, forward, reverse),
        ["priority", width, priority, packet] => set_priority_case(width, priority, packet),
        _ => panic!("not a case: {fields:?}"),
    });
}

fn forward_case(hop_width: &str, ingress: &str, kinds_of: &str, packet: &str) -> String {
    let (mut packet, kinds) = (bytes(packet), kinds(kinds_of));
    let kind_of = |port: PortNo| kinds.get(port.index()).copied();
    let step = forward(&mut packet, width(hop_width), port(ingress), kind_of);
    match step {
        Step::Egress(port) => format!("egress {} {}", port_word(port), hex(&packet)),
        Step::Strip { port, header_bytes } => {
            format!("strip {} {}", port_word(port), hex(&packet[header_bytes..]))
        }
        Step::Punt(punt) => format!("punt-{} {ingress} {}", punt.name(), hex(&packet)),
        Step::Drop(reason) => format!("drop-{} - {}", reason.name(), hex(&packet)),
    }
}

#[test]
fn the_step_is_taken_as_in_the_vectors() {
    check("forward.txt", |fields| match *fields {
        [width, ingress, kinds, packet] => forward_case(width, ingress, kinds, packet),
        _ => panic!("not a case: {fields:?}"),
    });
}

/// Runs the step of the reference on a case; `BLESS=1` does not use it.
fn reference_step(hop_width: &str, ingress: &str, kinds_of: &str, packet: &str) -> String {
    let (mut packet, kinds) = (bytes(packet), kinds(kinds_of));
    let kind_of = |port: PortNo| kinds.get(port.index()).copied();
    match reference::step(&mut packet, width(hop_width), port(ingress), kind_of) {
        Verdict::Transit(port) => format!("egress {} {}", port_word(port), hex(&packet)),
        Verdict::Deliver { port, header_bytes } => {
            format!("strip {} {}", port_word(port), hex(&packet[header_bytes..]))
        }
        Verdict::Punt(punt) => format!("punt-{} {ingress} {}", punt.name(), hex(&packet)),
        Verdict::Unknown(_) => {
            format!("drop-{} - {}", Drop::EgressUnknown.name(), hex(&packet))
        }
        Verdict::Drop(reason) => format!("drop-{} - {}", reason.name(), hex(&packet)),
    }
}

#[test]
fn the_reference_takes_the_step_as_in_the_vectors() {
    let (_, differences) = answers("forward.txt", |fields| match *fields {
        [width, ingress, kinds, packet] => reference_step(width, ingress, kinds, packet),
        _ => panic!("not a case: {fields:?}"),
    });
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// Sends one frame through a data plane with these routes.
fn edge_case<D: Dataplane>(new: fn(PlaneConfig) -> D, fields: &[&str]) -> String {
    let [hop_width, ingress, kinds_of, routes, frame] = *fields else {
        panic!("not a case: {fields:?}");
    };
    let (kinds, ingress) = (kinds(kinds_of), port(ingress));
    let mut plane = new(PlaneConfig {
        hop_width: width(hop_width),
        frame_bytes_max: 40,
        ..PlaneConfig::with_ports(kinds.len() as u16, MacAddr([2; 6]))
    });
    let (now, mut out) = (Time::ZERO, Vec::new());
    for (index, &kind) in kinds.iter().enumerate() {
        let port = PortNo(index as u16);
        plane.set_port(now, port, PortSetting::Kind(kind), &mut out).expect("a port");
        plane.handle(now, Input::Link { port, up: true }, &mut out);
    }
    let routes = routes.split('+').filter_map(|route| route.split_once('/'));
    for (key, route) in routes {
        let (destination, source) =
            key.split_once('-').map_or((key, None), |(to, by)| (to, Some(by)));
        let key = RouteKey::from(mac(destination)).from_source(source.map(mac));
        let change = RouteChange::Install { port: ingress, key, route: hops(route).into() };
        assert_eq!(plane.change_route(now, RouteTicket(1), change), Some(Ok(())));
    }
    let frame = FrameBuf::new(&bytes(frame));
    let input = Input::Frame { port: ingress, frame, complete_at: now, intact: true };
    plane.handle(now, input, &mut out);
    match out.pop() {
        Some(Action::Transmit { port, frame, .. }) => {
            format!("transmit {} {}", port_word(port), hex(frame.bytes()))
        }
        Some(Action::Punt { ingress, frame, punt, .. }) => {
            format!("punt-{} {} {}", punt.name(), port_word(ingress), hex(frame.bytes()))
        }
        Some(Action::Dropped { reason, frame, .. }) => {
            format!("drop-{} - {}", reason.name(), hex(frame.bytes()))
        }
        other => panic!("one frame, one fate, but: {other:?}"),
    }
}

#[test]
fn the_edge_behaves_as_in_the_vectors() {
    check("edge.txt", |fields| edge_case(Plane::new, fields));
}

#[test]
fn the_edge_of_the_reference_behaves_as_in_the_vectors() {
    let (_, differences) = answers("edge.txt", |fields| edge_case(Reference::new, fields));
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

fn probe_case(fields: &[&str]) -> String {
    match *fields {
        ["head", options, body_bytes, sequence, origin] => hex(&ProbeHead {
            options: ProbeOptions(number(options) as u8),
            body_bytes: number(body_bytes) as u16,
            sequence: number(sequence) as u32,
            origin: NodeId(number(origin)),
        }
        .emit()),
        ["record", unit, port, queued, ticks] => hex(&ProbeRecord {
            unit: if unit == "ingress" { ProbeUnit::Ingress } else { ProbeUnit::Egress },
            port: PortNo(number(port) as u16),
            queued: Bytes(number(queued)),
            time: Time::from_ticks(number(ticks)),
        }
        .emit()),
        ["read", probe] => match ProbeView::parse(&bytes(probe)) {
            Err(ProbeError::Truncated) => "error truncated".into(),
            Err(ProbeError::Version(_)) => "error version".into(),
            Err(ProbeError::Body(_)) => "error body".into(),
            Err(ProbeError::Tail(_)) => "error tail".into(),
            Err(ProbeError::Unit(_)) => "error unit".into(),
            Ok(view) => format!("ok {}", view.records().count()),
        },
        ["congestion", egress, host_port, queued, switch, to, from] => {
            let message = Congestion {
                egress: PortNo(number(egress) as u16),
                host_port: PortNo(number(host_port) as u16),
                queued: Bytes(number(queued)),
                switch: mac(switch),
                destination: mac(to),
                source: mac(from),
            };
            assert_eq!(Congestion::parse(&message.emit()), Ok(message));
            hex(&message.emit())
        }
        _ => panic!("not a case: {fields:?}"),
    }
}

#[test]
fn probes_and_congestion_messages_are_written_as_in_the_vectors() {
    check("probe.txt", probe_case);
}

fn mac(word: &str) -> MacAddr {
    MacAddr(bytes(word).try_into().expect("six bytes"))
}

fn mac_control_case(own: &str, frame: &str) -> String {
    match MacControl::parse(&bytes(frame), mac(own)) {
        Err(MacControlError::Short(_)) => "error short".into(),
        Err(MacControlError::EtherType(_)) => "error ethertype".into(),
        Err(MacControlError::Destination(_)) => "error destination".into(),
        Err(MacControlError::Source(_)) => "error source".into(),
        Err(MacControlError::Opcode(_)) => "error opcode".into(),
        Err(MacControlError::Reserved(_)) => "error reserved".into(),
        Ok(MacControl::Pause(time)) => format!("pause {:04x}", time.0),
        Ok(MacControl::Pfc(pfc)) => {
            let times = pfc.times.map(|time| format!("{:04x}", time.0));
            format!("pfc {:02x} {}", pfc.enabled.bits(), times.concat())
        }
    }
}

fn pfc_case(source: &str, enabled: &str, times: &str) -> String {
    let times: [u8; 16] = bytes(times).try_into().expect("eight times");
    let times =
        core::array::from_fn(|n| Quanta(u16::from_be_bytes([times[2 * n], times[2 * n + 1]])));
    let enabled = PrioritySet::from_bits(number(enabled) as u8);
    hex(&MacControl::Pfc(Pfc { enabled, times }).emit(mac(source)))
}

#[test]
fn mac_control_and_tags_are_read_and_written_as_in_the_vectors() {
    check("dcb.txt", |fields| match *fields {
        ["pause", source, time] => {
            hex(&MacControl::Pause(Quanta(number(time) as u16)).emit(mac(source)))
        }
        ["pfc", source, enabled, times] => pfc_case(source, enabled, times),
        ["read", own, frame] => mac_control_case(own, frame),
        ["tags", frame] => match vlan::ethertype_of(&bytes(frame)) {
            None => "error short".into(),
            Some((ethertype, at)) => {
                format!("{} {ethertype:04x} {at}", vlan::priority_of(&bytes(frame)))
            }
        },
        _ => panic!("not a case: {fields:?}"),
    });
}

fn open_case(envelope: &str) -> String {
    match Envelope::parse(&bytes(envelope)) {
        Err(EnvelopeError::Truncated) => "error truncated".into(),
        Err(EnvelopeError::Version(_)) => "error version".into(),
        Ok(Envelope { from, sequence, sealed }) => {
            format!("ok {} {:016x} {sequence:016x} {}", from.node, from.number, hex(sealed))
        }
    }
}

fn seal_case(node: &str, incarnation: &str, sequence: &str, sealed: &str) -> String {
    let from = Incarnation { node: NodeId(number(node)), number: number(incarnation) };
    hex(&Envelope { from, sequence: number(sequence), sealed: &bytes(sealed) }.emit())
}

fn message_case(name: &str) -> String {
    let samples = samples::all();
    let Some((_, (vlan, message))) = samples.iter().find(|(sample, _)| *sample == name) else {
        panic!("{name} is no sample")
    };
    let bytes = message.encode(*vlan);
    let read = Message::decode(&bytes);
    assert_eq!(read, Some((*vlan, message.clone())), "{name} is read as written");
    hex(&bytes)
}

/// Returns the version of a format. The vectors contain it, so a new version also needs a new
/// second reader.
fn version_case(format: &str) -> String {
    let version = match format {
        "envelope" => version::ENVELOPE,
        "probe" => version::PROBE,
        "congestion" => version::CONGESTION,
        _ => panic!("{format} is no format"),
    };
    version.to_string()
}

#[test]
fn control_messages_are_encoded_as_in_the_vectors() {
    check("control.txt", |fields| match *fields {
        ["envelope", node, incarnation, sequence, sealed] => {
            seal_case(node, incarnation, sequence, sealed)
        }
        ["open", envelope] => open_case(envelope),
        ["message", name] => message_case(name),
        ["version", format] => version_case(format),
        _ => panic!("not a case: {fields:?}"),
    });
}

#[test]
fn every_sample_of_a_control_message_stands_in_the_vectors() {
    let text = read("control.txt");
    for (name, _) in samples::all() {
        assert!(text.contains(&format!("\nmessage {name} => ")), "no {name}");
    }
}

#[test]
fn every_fate_of_a_packet_stands_in_the_vectors() {
    let text = read("forward.txt") + &read("edge.txt");
    // Entries of a programmable data plane trap frames; this plane has no such entries.
    for punt in Punt::ALL.iter().filter(|punt| **punt != Punt::Trap) {
        assert!(text.contains(&format!("=> punt-{} ", punt.name())), "no {}", punt.name());
    }
    let one_frame_suffices = [
        Drop::Malformed,
        Drop::Oversized,
        Drop::NoSuchPort,
        Drop::PortUnknown,
        Drop::EgressUnknown,
        Drop::MacControl,
    ];
    for reason in one_frame_suffices {
        assert!(text.contains(&format!("=> drop-{} ", reason.name())), "no {}", reason.name());
    }
}
