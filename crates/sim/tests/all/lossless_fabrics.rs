//! Random fabrics whose headroom suffices by the formula lose nothing, with any traffic of their
//! hosts. With one frame less than the formula requires, they lose frames.

use crate::common::{fabric, pick};
use axon_fabric::dcb::{cable_ends, frame_bytes, headroom, needed};
use axon_fabric::model::Fabric;
use axon_node::Drop;
use axon_sim::World;
use axon_wire::{Rate, Span, Time};
use oorandom::Rand64;
use std::fmt::Write;

/// Number of fabrics of the first test.
const FABRICS: u64 = 1_000;

/// Runs the fabric's traffic for `span`, with a host that hardly reads. Returns the frames that
/// found no room, and the hops that frames have passed meanwhile.
fn run(fabric: &Fabric, seed: u64, span: Span, slow: Option<usize>) -> (u64, u64) {
    let mut world = World::new(fabric, seed);
    let limit = Time::ZERO + Span::from_secs(10);
    assert!(world.run_until_true(limit, World::is_ready), "seed {seed}: {:?}", world.unready());
    if let Some(host) = slow {
        world.with_host(host, |node, _| node.rx_ring_mut().set_rate(Some(Rate::mbps(10)))).unwrap();
    }
    let before = world.engine().packet_hops();
    world.start_traffic();
    world.run_for(span);
    let mut lost = 0;
    for station in world.engine().stations() {
        let dropped = station.accounts().dropped;
        for reason in [Drop::QueueFull, Drop::HeadroomFull] {
            let count = dropped[reason as usize];
            if count > 0 {
                println!("{}: {count} {}", station.name(), reason.name());
            }
            lost += count;
        }
    }
    (lost, world.engine().packet_hops() - before)
}

/// Random topology, rates, cables, devices, frames, shares; all hosts send as fast as they can in
/// two lossless priorities, several of them to the same host.
fn random_text(seed: u64) -> String {
    let mut random = Rand64::new(u128::from(seed));
    let random = &mut random;
    let (topology, hosts) = pick(
        random,
        &[
            ("{ line: { switches: 1, hosts_per_switch: 4 } }", 4),
            ("{ line: { switches: 3, hosts_per_switch: 2 } }", 6),
            ("{ ring: { switches: 3, hosts_per_switch: 2 } }", 6),
            ("{ ring: { switches: 4, hosts_per_switch: 1 } }", 4),
            ("{ star: { switches: 4, hosts_per_switch: 2 } }", 6),
        ],
    );
    let rate = pick(random, &["1Gbps", "10Gbps", "25Gbps", "100Gbps"]);
    let latency = pick(random, &["10ns", "500ns", "2us", "10us"]);
    let device = pick(random, &["ideal", "axon-netfpga", "axon-netfpga-stored"]);
    let mtu = pick(random, &[576, 1500, 9000]);
    let share = pick(random, &["0B", "10kB", "1/2", "1/8"]);
    let reaction = pick(random, &["0s", "614.4ns", "2us"]);
    let quanta = pick(random, &[1_000, 4_000, 65_535]);
    let mut text = format!(
        "name: random\ntopology: {topology}\nlinks: {{ rate: {rate}, latency: {latency} }}\n\
         device: {device}\nmtu: {mtu}\ncontroller: {{ router: up_down }}\ndcb:\n  \
         quanta: {quanta}\n  classes:\n  - {{ priorities: [0, 1, 2, 5, 6], ets: 20 }}\n  \
         - {{ priorities: [3], ets: 50, lossless: true }}\n  \
         - {{ priorities: [4], ets: 30, lossless: true }}\n  - {{ priorities: [7] }}\n  \
         buffers: {{ lossless_share: {share}, reaction: {reaction} }}\ntraffic:\n"
    );
    let busy = random.rand_range(1..hosts + 1);
    for from in 1..=hosts {
        for priority in [3, 4] {
            let any = random.rand_range(1..hosts + 1);
            let to = if random.rand_range(0..2) == 0 { busy } else { any };
            let payload = random.rand_range(18..mtu - 27);
            if to != from {
                let _ = writeln!(
                    text,
                    "- {{ udp: {{ payload: {payload} }}, from: h{from}, to: h{to}, \
                     priority: {priority} }}"
                );
            }
        }
    }
    if !text.contains("- { udp") {
        text += "- { udp: {}, from: h1, to: h2, priority: 3 }\n";
    }
    text
}

#[test]
fn nothing_is_lost_in_random_fabrics_with_the_headroom_that_they_need() {
    let mut hops = 0;
    for seed in 1..=FABRICS {
        let mut text = random_text(seed);
        if seed.is_multiple_of(3) {
            // Then 4 replaces 3 on further routes, and frames that hosts send with 4 are treated as
            // 3.
            let layers = "router: layered }\ndcb:\n  layers: [[3, 4]]";
            text = text.replace("router: up_down }\ndcb:", layers);
            assert!(text.contains(layers));
        }
        let slow = seed.is_multiple_of(2).then_some(0);
        let (lost, gone) = run(&fabric(&text), seed, Span::from_micros(200), slow);
        assert_eq!(lost, 0, "seed {seed}:\n{text}");
        hops += gone;
    }
    assert!(hops > FABRICS * 100, "{hops} hops: too little to say anything");
}

/// A host that hardly reads has paused its port, because of the frames of an eighth host. Then
/// three hosts begin to send to it at line rate; three more keep the ports to those busy, so that
/// the PFC frames to them are delayed.
fn bound(headroom: &str, latency: &str, seed: u64) -> String {
    let mut text = format!(
        "name: bound\ntopology: {{ line: {{ switches: 1, hosts_per_switch: 8 }} }}\n\
         links: {{ rate: 10Gbps, latency: {latency} }}\ndcb:\n  classes:\n  \
         - {{ priorities: [0, 1, 2, 4, 5, 6], ets: 50 }}\n  \
         - {{ priorities: [3], lossless: true, ets: 50 }}\n  - {{ priorities: [7] }}\n  \
         buffers: {{ lossless_share: 8kB, reaction: 0s{headroom} }}\ntraffic:\n\
         - {{ udp: {{}}, from: h8, to: h4, priority: 3 }}\n"
    );
    let mut random = Rand64::new(u128::from(seed));
    for from in 1..=3 {
        let start = 2_000_000 + random.rand_range(0..5_000);
        let _ = writeln!(
            text,
            "- {{ udp: {{}}, from: h{from}, to: h4, priority: 3, start: {start}ns }}\n\
             - {{ udp: {{}}, from: h{}, to: h{from} }}",
            from + 4
        );
    }
    text
}

#[test]
fn the_bound_is_tight_with_one_frame_less_something_is_lost() {
    for latency in ["10ns", "1us", "20us"] {
        let whole = fabric(&bound("", latency, 0));
        let dcb = whole.dcb.as_deref().unwrap();
        let end = cable_ends(&whole, 0)[0].unwrap();
        let formula = headroom(&whole, dcb, end);
        let less = needed(&formula).0 - frame_bytes(&formula).0;
        let less = format!(", headroom: {less}B");
        let lost = |headroom: &str| -> u64 {
            let text = |seed| bound(headroom, latency, seed);
            let span = Span::from_micros(2_500);
            (1..=20).map(|seed| run(&fabric(&text(seed)), seed, span, Some(3)).0).sum()
        };
        assert_eq!(lost(""), 0, "{latency}");
        assert!(lost(&less) > 0, "{latency}: the bound is not tight");
    }
}
