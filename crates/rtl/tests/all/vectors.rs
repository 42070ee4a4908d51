//! Golden cases of `vectors/forward.txt` and `vectors/edge.txt`, through the gates.
//!
//! A frame on a wire has at least 60 bytes, so the frames of the cases are padded. Where that, or
//! the size of the device, changes the answer, the software plane has the right one.

use crate::fates::{FRAME_BYTES_MIN, Fate, PORTS, Tested, WIDTHS, config, counted, gates, since};
use crate::probes;
use axon_node::{Dataplane, PortKind, PortSnapshot, RouteKey, Snapshot};
use axon_plane::Plane;
use axon_wire::header::{HeaderView, HopWidth};
use axon_wire::{Hops, MacAddr, PortNo, Route, Span};

/// A case: a frame that a switch receives, and its answer.
struct Case<'a> {
    ingress: PortNo,
    kinds: Vec<PortKind>,
    routes: Vec<(RouteKey, Route)>,
    frame: Vec<u8>,
    verdict: &'a str,
    port: &'a str,
    answer: Vec<u8>,
}

fn bytes(word: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&word[at..at + 2], 16).expect("hex digits");
    (0..word.len()).step_by(2).map(byte).collect()
}

fn port(word: &str) -> PortNo {
    if word == "cpu" { PortNo::CONTROL } else { PortNo(word.parse().expect("a port")) }
}

fn kind(letter: char) -> PortKind {
    match letter {
        'A' => PortKind::Axon,
        'H' => PortKind::Host,
        _ => PortKind::Unknown,
    }
}

fn routes(word: &str) -> Vec<(RouteKey, Route)> {
    let mac = |word: &str| MacAddr(bytes(word).try_into().expect("six bytes"));
    let route = |word: &str| {
        let (key, hops) = word.split_once('/')?;
        let (to, from) = key.split_once('-').map_or((key, None), |(to, from)| (to, Some(from)));
        let key = RouteKey::to(mac(to)).from_source(from.map(mac));
        Some((key, Route::from(hops.split(',').map(port).collect::<Hops>())))
    };
    word.split('+').filter_map(route).collect()
}

/// Returns the cases of a file for one hop width.
fn cases(text: &str, width: HopWidth) -> Vec<Case<'_>> {
    let (mut all, bits) = (Vec::new(), width.bits().to_string());
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let Some((inputs, answer)) = line.split_once(" => ") else { continue };
        let inputs: Vec<&str> = inputs.split(' ').collect();
        let (hop_bits, ingress, kinds, table, frame) = match inputs[..] {
            [bits, ingress, kinds, frame] => (bits, ingress, kinds, "-", frame),
            [bits, ingress, kinds, routes, frame] => (bits, ingress, kinds, routes, frame),
            _ => panic!("{line}: four or five fields"),
        };
        let &[verdict, port_word, answer] = &answer.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{line}: three fields of an answer");
        };
        if hop_bits == bits {
            all.push(Case {
                ingress: port(ingress),
                kinds: kinds.chars().map(kind).collect(),
                routes: routes(table),
                frame: bytes(frame.trim_matches('-')),
                verdict,
                port: port_word,
                answer: bytes(answer.trim_matches('-')),
            });
        }
    }
    all
}

/// Returns the answer of a data plane in the words of the files, and the frame.
fn answer<D: Dataplane>(tested: &mut Tested<D>, case: &Case<'_>) -> (String, Vec<u8>) {
    let unknown = PortSnapshot::default();
    let mut wanted = Snapshot { ports: vec![unknown; usize::from(PORTS)] };
    for (port, &kind) in wanted.ports.iter_mut().zip(&case.kinds) {
        port.kind = kind;
    }
    if let Some(port) = wanted.ports.get_mut(case.ingress.index()) {
        port.routes = case.routes.clone();
    }
    let mut out = Vec::new();
    tested.plane.resynchronise(tested.now, &wanted, &mut out).expect("kinds and routes alone");
    let before = counted(tested);
    let mut fates = match HeaderView::parse(&case.frame, tested.plane.capabilities().hop_width) {
        Ok(view) if case.ingress == PortNo::CONTROL => {
            let (kind, hops) = (view.packet_type(), view.forward());
            tested.plane.inject(tested.now, kind, &hops, view.payload(), &mut out);
            let mut fates = tested.fates(out);
            fates.extend(tested.rest());
            fates
        }
        _ => tested.receive(&[(Span::ZERO, case.ingress, case.frame.clone(), true)]),
    };
    let changes = since(&counted(tested), &before);
    let drops = ["_frames", "_bytes"].map(|end| move |name: &str| name.ends_with(end));
    let mut reasons = changes.keys().map(|key| key.1);
    match fates.pop() {
        Some(Fate::Sent { port, frame, intact: true }) => (format!("sent {}", port.0), frame),
        Some(Fate::Punted { ingress, punt, frame, .. }) => {
            let port =
                if ingress == PortNo::CONTROL { "cpu".into() } else { ingress.0.to_string() };
            (format!("punt-{} {port}", punt.name()), frame)
        }
        Some(other) => panic!("{other:?}"),
        None => {
            let reason = reasons.find(|name| !drops.iter().any(|is| is(name)));
            (format!("drop-{} -", reason.expect("one frame, one fate")), Vec::new())
        }
    }
}

/// Compares the answers to all cases of a file, of which most are those of the file.
fn check(name: &str, text: &str) {
    for width in WIDTHS {
        let Some(gates) = gates(width) else { continue };
        let (mut gates, mut plane) = (Tested::new(gates), Tested::new(Plane::new(config(width))));
        gates.set_ports(&[], |_| true);
        plane.set_ports(&[], |_| true);
        let (mut cases, mut others) = (cases(text, width), 0);
        // The control plane sends no packet that has taken hops.
        cases.retain(|case| {
            let view = HeaderView::parse(&case.frame, width);
            case.ingress != PortNo::CONTROL || view.is_ok_and(|view| view.reverse().is_empty())
        });
        for case in &mut cases {
            case.frame.resize(case.frame.len().max(FRAME_BYTES_MIN), 0);
            let (expected, mut frame) = answer(&mut plane, case);
            let (has, mut got) = answer(&mut gates, case);
            // The record of a probe, behind the padding, has a time, and clocks differ.
            let is_stamped = expected.starts_with("punt-ether_probe");
            if is_stamped {
                probes::clear_times(&mut frame, case.frame.len());
                probes::clear_times(&mut got, case.frame.len());
            }
            let at =
                format!("{name}, {width:?}: {} {} {:02x?}", case.verdict, case.port, case.frame);
            assert_eq!((has, got), (expected.clone(), frame.clone()), "{at}");
            let verdict = match case.verdict {
                "egress" | "strip" | "transmit" => "sent",
                other => other,
            };
            let is_other = is_stamped || expected != format!("{verdict} {}", case.port);
            others += usize::from(is_other);
            assert!(is_other || frame.is_empty() || frame.starts_with(&case.answer), "{at}");
        }
        assert!(3 * others < cases.len(), "{others} of {} have other answers", cases.len());
    }
}

#[test]
fn the_gates_take_hops_as_in_the_vectors() {
    check("forward.txt", include_str!("../../../../vectors/forward.txt"));
}

#[test]
fn the_gates_treat_frames_of_hosts_as_in_the_vectors() {
    check("edge.txt", include_str!("../../../../vectors/edge.txt"));
}
