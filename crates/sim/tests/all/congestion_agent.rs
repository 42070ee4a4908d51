//! A congestion responder beside a programmable switch: it gets copies of marked frames and reads
//! the queues of its switch.
#![allow(clippy::disallowed_types, reason = "a node must be Send, and a test looks into it")]

use crate::common;
use axon_agents::packet::{Ends, Ipv4, udp};
use axon_node::{Action, Input, Node, Shortcuts};
use axon_sim::World;
use axon_sim::agents::reports;
use axon_sim::station::StationNode;
use axon_wire::cn::{self, CnmFormat, CnmFrame};
use axon_wire::{FrameBuf, PortNo, Span, Time};
use std::sync::{Arc, Mutex};

/// Two hosts send to the third at the rate of their links. The frames of the first to UDP port 5001
/// are marked.
const FABRIC: &str = "name: t\nprogram: bridge\n\
    topology: {listed: {switches: [s1, s2], hosts: {h1: s1, h2: s2, h3: s1}, links: [[s1, s2]]}}\n\
    links: {rate: 1Gbps, latency: 1us, queue: 256KiB}\n";
const AGENT: &str = "agents: [{at: s1, congestion: {egress: h1, set_point: 20kB}, \
    select: [{protocol: udp, destination_port: 5001}], latency: 200us}]\n";

const SET_POINT: i64 = 20_000;
/// Frames of each sender; every eighth is marked.
const FRAMES: u64 = 120;
const MARKS: u64 = 8;
const PAYLOAD_BYTES: usize = 1400;
/// Length of a frame with Ethernet, IPv4 and UDP headers.
const FRAME_BYTES: u64 = PAYLOAD_BYTES as u64 + 42;
/// Time at which the bridges forward.
const START: Span = Span::from_secs(8);

/// Frames received by a host: marked frames, others, and CNMs.
#[derive(Debug, Default)]
struct Seen {
    marked: u64,
    plain: u64,
    cnms: Vec<CnmFrame>,
}

/// A host that sends its frames one after the other, and stores received frames.
struct Host {
    ends: Ends,
    marks: bool,
    left: u64,
    next_at: Time,
    seen: Arc<Mutex<Seen>>,
}

impl Node for Host {
    fn handle(&mut self, now: Time, input: Input, out: &mut Vec<Action>) {
        let mut seen = self.seen.lock().expect("no panic");
        if let Input::Frame { frame, .. } = &input {
            let bytes = frame.bytes();
            let ports = Ipv4::parse(bytes).and_then(|ip| ip.ports(bytes));
            match ports {
                Some((_, 5001)) => seen.marked += 1,
                Some((_, 5000)) => seen.plain += 1,
                _ if cn::is_cnm(bytes) => {
                    seen.cnms.push(CnmFrame::parse(bytes, &CnmFormat::default()).expect("a CNM"));
                }
                _ => {}
            }
        } else if matches!(input, Input::Timeout) && now >= self.next_at && self.left > 0 {
            self.left -= 1;
            let is_marked = self.marks && self.left.is_multiple_of(MARKS);
            self.ends.ports.1 = if is_marked { 5001 } else { 5000 };
            let frame = FrameBuf::new(&udp(&self.ends, &[&[0; PAYLOAD_BYTES]]));
            let port = PortNo(0);
            out.push(Action::Transmit { port, frame, complete_at: now, intact: true });
            self.next_at = now + Span::from_nanos(8 * (FRAME_BYTES + 24) + 20);
        }
    }

    fn deadline(&self) -> Option<Time> {
        (self.left > 0).then_some(self.next_at)
    }
}

impl Shortcuts for Host {}

/// A world of this fabric in which h2 and h3 send to h1, and the frames received by all three.
fn world(text: &str, threads: usize) -> (World, [Arc<Mutex<Seen>>; 3]) {
    let mut world = World::new(&common::fabric(text), 1);
    world.engine_mut().set_threads(threads);
    let hosts = [0, 1, 2].map(|host| world.fabric().hosts[host].clone());
    let seen = [0, 1, 2].map(|_| Arc::new(Mutex::new(Seen::default())));
    for (host, to) in [(0, 1), (1, 0), (2, 0)] {
        let address = |host: usize| hosts[host].ip.expect("a fixed address");
        let ends = Ends {
            macs: (hosts[host].mac, hosts[to].mac),
            addresses: (address(host), address(to)),
            ports: (4000, 5000),
        };
        // The receiver sends one frame, so that the bridges learn its port.
        let (left, early) =
            if host == 0 { (1, Span::from_millis(100)) } else { (FRAMES, Span::ZERO) };
        let next_at = Time::ZERO + START - early;
        let node = Host { ends, marks: host == 1, left, next_at, seen: seen[host].clone() };
        let station = world.layout().host_station(host);
        world.engine_mut().power_on(station, StationNode::Other(Box::new(node)));
    }
    world.run_for(START + Span::from_millis(50));
    (world, seen)
}

/// Queue length in a CNM, in bytes, rounded down to 64.
fn queue(cnm: &CnmFrame) -> i64 {
    SET_POINT - 64 * i64::from(cnm.cnm.offset)
}

#[test]
fn the_source_of_marked_frames_is_sent_the_length_of_the_queue_as_they_found_it() {
    let (world, seen) = world(&format!("{FABRIC}{AGENT}"), 1);
    let report = reports(&world).remove(0);
    assert_eq!(report.kind, "congestion");
    let marks = FRAMES / MARKS;
    let counters = ["samples", "unread", "other", "no_room"].map(|name| report.counters[name]);
    assert_eq!(counters, [marks, 0, 0, 0]);
    let [receiver, source, other] = seen.map(|seen| std::mem::take(&mut *seen.lock().unwrap()));
    // The frames themselves arrive as without the agent.
    assert_eq!((receiver.marked, receiver.plain), (marks, 2 * FRAMES - marks));
    assert!(receiver.cnms.is_empty() && other.cnms.is_empty(), "only the source of marks");
    assert_eq!(source.cnms.len() as u64, report.counters["cnms"]);
    assert!(source.cnms.len() as u64 > marks / 2, "{}", source.cnms.len());
    let switch = axon_fabric::assemble::switch_mac(0);
    for (number, cnm) in source.cnms.iter().enumerate() {
        assert_eq!((cnm.source, cnm.destination), (switch, world.fabric().hosts[1].mac));
        // As many frames of each sender have arrived as one has sent, and half of them have left.
        let before_last = (source.cnms.len() - 1 - number) as u64;
        let sent = FRAMES - before_last * MARKS;
        let expected = (sent * FRAME_BYTES) as i64;
        let found = queue(cnm);
        assert!((found - expected).abs() < 4 * FRAME_BYTES as i64, "{found}, about {expected}");
    }
    assert_eq!(world.engine().check_conservation(), Ok(()));
}

#[test]
fn a_responder_in_a_world_of_several_threads_is_the_same() {
    let run = |threads| {
        let (world, [_, source, _]) = world(&format!("{FABRIC}{AGENT}"), threads);
        let cnms = source.lock().unwrap().cnms.clone();
        (world.engine().trace_hash(), reports(&world).remove(0).counters, cnms)
    };
    assert_eq!(run(1), run(2));
}

#[test]
fn marks_for_a_port_without_a_queue_are_answered_by_nothing() {
    let text = format!("{FABRIC}{}", AGENT.replace("egress: h1", "egress: h3"));
    let (world, [receiver, source, _]) = world(&text, 1);
    let counters = reports(&world).remove(0).counters;
    assert_eq!((counters["samples"], counters["cnms"]), (FRAMES / MARKS, 0));
    assert!(source.lock().unwrap().cnms.is_empty());
    assert_eq!(receiver.lock().unwrap().marked, FRAMES / MARKS);
}
