//! The law of [`Shortcuts`](axon_node::Shortcuts), held in random worlds. Nodes driven by the
//! shortcuts, and nodes driven by `handle` alone with every `TxDone` as an event, send the same
//! frames and have the same counters, deadlines and telemetry.
//!
//! Light frames and threads, which must not change any result either, are held in the same way.

use crate::World;
use crate::engine::event::Without;
use crate::link::links::WireEnd;
use axon_fabric::model::{Fabric, FaultKind};
use axon_fabric::samples::ring_with_chords;
use axon_wire::{PortNo, Rate, Span, Time};
use oorandom::Rand32;
use std::fmt::Write;

/// Number of worlds drawn; `AXON_WORLDS` sets the number of further ones.
const WORLDS: u64 = 6;
/// Duration of a step. A world runs under traffic in steps, each of which may end with a fault.
const STEP: Span = Span::from_micros(500);
const STEPS: u64 = 6;

const ALL: Without = Without { shortcuts: false, light_frames: false };
const OTHERS: [Without; 3] = [
    Without { shortcuts: true, light_frames: false },
    Without { shortcuts: false, light_frames: true },
    Without { shortcuts: true, light_frames: true },
];
/// Number of threads, and events per window from which they are worthwhile: always, at times, and
/// never.
const THREADS: [(usize, u64); 3] = [(2, 0), (3, 2), (2, u64::MAX / 64)];

const LOSSLESS: &str = "  classes:\n  \
    - { priorities: [0, 1, 2, 5, 6], ets: 40, ecn: { threshold: 20kB } }\n  \
    - { priorities: [3, 4], ets: 60, lossless: true }\n  - { priorities: [7] }\n";

fn choose<'a>(dice: &mut Rand32, of: &[&'a str]) -> &'a str {
    of[dice.rand_range(0..of.len() as u32) as usize]
}

/// Returns traffic of one kind, between random hosts.
fn entry(dice: &mut Rand32, hosts: &[String], priority: u32) -> String {
    let from = dice.rand_range(0..hosts.len() as u32) as usize;
    let by = dice.rand_range(1..hosts.len() as u32) as usize;
    let one = &hosts[from];
    let others: Vec<&str> = (0..3)
        .map(|n| hosts[(from + by + n) % hosts.len()].as_str())
        .filter(|h| h != one)
        .collect();
    let pair = format!("from: {one}, to: {}", others[0]);
    let group = others.join(", ");
    let (app, ends) = match dice.rand_range(0..12) {
        0 => ("udp: { rate: 900Mbps, payload: 700 }", pair),
        1 => ("udp: {}", pair),
        2 => ("on_off: { on: { exponential: 20kB }, off: { exponential: 50us } }", pair),
        3 => ("tcp: { congestion_control: cubic }", pair),
        4 => ("tcp: { congestion_control: dctcp, bytes: 90kB }", pair),
        5 => ("tcp: { bytes: 200kB }", pair),
        6 => ("request_response: { request: 100B, response: 9kB }", pair),
        7 => ("request_response: { transport: udp, response: 800B }", pair),
        8 => ("file_service: { transactions: 20 }", pair),
        9 => ("ping: { interval: 40us }", pair),
        10 => ("incast: { bytes: 8KiB, rounds: 3 }", format!("to: {one}, hosts: [{group}]")),
        _ => ("all_reduce: { bytes: 64KiB }", format!("hosts: [{one}, {group}]")),
    };
    format!("- {{ {app}, {ends}, priority: {priority} }}\n")
}

/// Returns a fabric with traffic.
fn fabric(seed: u64) -> Fabric {
    let dice = &mut Rand32::new(seed);
    let topology = ring_with_chords(seed);
    let hosts: Vec<String> =
        (1..=topology.matches("{ at: s").count()).map(|n| format!("h{n}")).collect();
    // Each kind occurs in every six worlds.
    let kind = seed % 3;
    let (lossless, vlans, small_tables) = (kind == 0, kind == 1, kind == 2);
    let ipv6 = seed % 2 == 1;
    let rate = choose(dice, &["1Gbps", "10Gbps"]);
    let latency = choose(dice, &["300ns", "1us", "7us"]);
    let queue = choose(dice, &["16KiB", "64KiB", "128KiB"]);
    let noise = choose(dice, &["", ", loss_ppm: 3000", ", bit_error_rate: 2e-7"]);
    let mut text = format!(
        "name: w\nseed: {seed}\n{topology}\
         links: {{ rate: {rate}, latency: {latency}, queue: {queue}{noise} }}\n\
         hop_width: {}\ndevice: {}\n",
        choose(dice, &["8", "16"]),
        choose(dice, &["ideal", "axon-netfpga", "store-and-forward"]),
    );
    if lossless {
        text.push_str("controller: { router: up_down }\ndcb:\n");
        text.push_str(LOSSLESS);
    }
    if vlans {
        let half = hosts.len() / 2;
        let (one, other) = (hosts[..half].join(", "), hosts[half..].join(", "));
        let _ = write!(
            text,
            "vlans:\n- {{ id: 10, access: [{one}], dhcp: {{ subnet: 192.168.1.0/24 }} }}\n\
             - {{ id: 20, access: [{other}], dhcp: {{ subnet: 192.168.2.0/24 }} }}\n"
        );
    }
    if small_tables {
        text.push_str("cam: { entries: 2 }\n");
    }
    if ipv6 {
        text.push_str("ipv6: { prefix: \"fd00:10::/64\" }\n");
    }
    text.push_str("traffic:\n");
    for _ in 0..12 {
        let priority = if lossless { dice.rand_range(0..5) } else { 0 };
        text.push_str(&entry(dice, &hosts, priority));
    }
    axon_fabric::parse("w.yaml".as_ref(), &text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Visible results of a run.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    hash: u64,
    packet_hops: u64,
    events: u64,
    captured: Vec<(Time, Vec<u8>)>,
    /// Nodes after each step.
    nodes: Vec<String>,
    /// Flows, and drops.
    report: String,
}

/// Returns the deadlines, counters and telemetry of the nodes, and the accounts of their stations.
fn nodes(world: &mut World) -> String {
    let (now, mut text) = (world.now(), String::new());
    let stations = world.engine().stations().len();
    for number in 0..stations {
        let station = world.engine_mut().station_mut(number);
        let deadline = station.node.as_node().deadline();
        let (accounts, counters) = (station.accounts(), station.node.counters());
        let _ = writeln!(text, "{} {deadline:?} {accounts:?} {counters:?}", station.name());
    }
    for switch in 0..world.fabric().switches.len() {
        let telemetry = world.switch(switch).map(|node| node.telemetry(now));
        let _ = writeln!(text, "{telemetry:?}");
    }
    let telemetry = world.controller().map(|node| node.telemetry(now));
    let _ = writeln!(text, "{telemetry:?}");
    text
}

fn run(fabric: &Fabric, seed: u64, without: Without, (threads, worth): (usize, u64)) -> Seen {
    let dice = &mut Rand32::new(!seed);
    let mut world = World::new(fabric, seed);
    world.engine_mut().set_worth(worth);
    assert_eq!(world.engine_mut().set_threads(threads), threads, "seed {seed}");
    world.engine_mut().shards_mut().iter_mut().for_each(|shard| shard.common.without = without);
    let limit = Time::ZERO + Span::from_secs(20);
    assert!(world.run_until_true(limit, World::is_ready), "seed {seed}: {:?}", world.unready());
    let switches = fabric.switches.len() as u32;
    for _ in 0..3 {
        let station = dice.rand_range(0..switches) as usize;
        let port = PortNo(dice.rand_range(0..3) as u16);
        world.engine_mut().capture(WireEnd { station, port });
    }
    world.start_traffic();
    let (links, hosts) = (fabric.links.len() as u32, fabric.hosts.len() as u32);
    let mut seen = Vec::new();
    for _ in 0..STEPS {
        world.run_for(STEP);
        seen.push(nodes(&mut world));
        let link = dice.rand_range(0..links) as usize;
        let switch = dice.rand_range(0..switches) as usize;
        let host = dice.rand_range(0..hosts) as usize;
        match dice.rand_range(0..9) {
            0 => world.inject(FaultKind::LinkDown(link)),
            1 => world.inject(FaultKind::LinkUp(link)),
            2 => world.inject(FaultKind::LinkSilent(link)),
            3 => world.inject(FaultKind::SwitchDown(switch)),
            4 => world.inject(FaultKind::SwitchUp(switch)),
            // With flow control, a slow host pauses its port.
            5 => world.inject(FaultKind::HostSlow(host, Some(Rate::mbps(100)))),
            6 => world.inject(FaultKind::SwitchStopped(switch)),
            7 => world.inject(FaultKind::SwitchGoesOn(switch)),
            _ => {}
        }
    }
    world.run_for(STEP);
    seen.push(nodes(&mut world));
    world.engine().check_conservation().unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
    let captured = world.engine_mut().take_captured();
    Seen {
        hash: world.engine().trace_hash(),
        packet_hops: world.engine().packet_hops(),
        events: world.engine().events(),
        captured: captured.into_iter().map(|captured| (captured.at, captured.frame)).collect(),
        nodes: seen,
        report: format!("{:?}", world.flows().report()),
    }
}

#[test]
fn random_worlds_are_the_same_with_all_that_saves_work_and_without() {
    let worlds = std::env::var("AXON_WORLDS").ok().and_then(|worlds| worlds.parse().ok());
    let (mut hops, mut captured) = (0, 0);
    for seed in 0..worlds.unwrap_or(WORLDS) {
        let fabric = fabric(seed);
        let fast = run(&fabric, seed, ALL, (1, 0));
        (hops, captured) = (hops + fast.packet_hops, captured + fast.captured.len());
        let same = |other: Seen, how: &str| {
            let lines = |seen: &Seen| seen.nodes.join("\n").lines().map(String::from).collect();
            let [other_lines, lines]: [Vec<String>; 2] = [lines(&other), lines(&fast)];
            for (other, line) in other_lines.iter().zip(&lines) {
                assert_eq!(other, line, "seed {seed}, {how}");
            }
            assert!(other == fast, "seed {seed}, {how}: {other:?}\n{fast:?}");
        };
        for without in OTHERS {
            let mut other = run(&fabric, seed, without, (1, 0));
            if without.shortcuts {
                assert!(fast.events < other.events, "seed {seed}: {} events", other.events);
                other.events = fast.events;
            }
            same(other, &format!("{without:?}"));
        }
        let threads = THREADS[seed as usize % THREADS.len()];
        same(run(&fabric, seed, ALL, threads), &format!("threads {threads:?}"));
    }
    assert!(hops > 50_000 && captured > 1_000, "{hops} packet-hops, {captured} captured");
}
