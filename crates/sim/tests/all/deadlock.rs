//! Deadlocks: those that traffic causes are among those that the routes predict. Routes that go up
//! and then down, or are divided into layers, cause none.

use crate::common::{self, pick};
use axon_fabric::model::{Fabric, RouterKind};
use axon_fabric::planned::Planned;
use axon_node::Drop;
use axon_prove::{Buffer, Dependencies, Verdict};
use axon_sim::World;
use axon_sim::deadlock::cycle;
use axon_wire::{Priority, Span, Time};
use oorandom::Rand64;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Fabrics of the random test.
const FABRICS: u64 = 100;

fn fabric(text: &str, router: RouterKind) -> Fabric {
    let mut fabric = common::fabric(text);
    fabric.controller.router = router;
    fabric
}

/// Pairs of buffers that may wait for each other by the routes of the fabric's flows, and whether
/// they form a cycle. Replies and address resolution are in no lossless priority.
fn predicted(fabric: &Fabric, seed: u64) -> (BTreeSet<(Buffer, Buffer)>, bool) {
    let mut planned =
        Planned::new(fabric, fabric.controller.router.build(seed, fabric.layers()), seed);
    let (mut all, mut pairs) = (Dependencies::default(), BTreeSet::new());
    for (flow, &(from, to)) in fabric.traffic.iter().flat_map(|entry| &entry.flows).enumerate() {
        assert!(planned.ask(from, to));
        let route = planned.route(from, to).unwrap();
        let priority = match fabric.layers() {
            1 => Priority::new(3).unwrap(),
            _ => fabric.priority_on(route.layer),
        };
        all.add(flow as u32, priority, route.steps());
        let buffers: Vec<Buffer> = route
            .steps()
            .map(|step| Buffer { from: step.switch, egress: step.egress, priority })
            .collect();
        pairs.extend(buffers.windows(2).map(|pair| (pair[0], pair[1])));
    }
    (pairs, matches!(all.verdict(), Verdict::Cycle(_)))
}

/// Runs the traffic for `span`, or until there is a deadlock; returns its buffers, in order.
fn run(fabric: &Fabric, seed: u64, span: Span) -> Option<Vec<Buffer>> {
    let mut world = World::new(fabric, seed);
    let limit = Time::ZERO + Span::from_secs(10);
    assert!(world.run_until_true(limit, World::is_ready), "seed {seed}: {:?}", world.unready());
    world.start_traffic();
    let end = world.now() + span;
    world.run_until_true(end, |world| cycle(world).is_some());
    for station in world.engine().stations() {
        let lost = station.accounts().dropped[Drop::HeadroomFull as usize];
        assert_eq!(lost, 0, "seed {seed}: {} has lost what was not to be lost", station.name());
    }
    let cycle = cycle(&world)?;
    Some(cycle.waits.iter().map(|wait| wait.buffer).collect())
}

/// True if each buffer waits for the next, and the last for the first, by the routes.
fn is_predicted(deadlock: &[Buffer], pairs: &BTreeSet<(Buffer, Buffer)>) -> bool {
    let next = deadlock.iter().cycle().skip(1);
    deadlock.iter().zip(next).all(|(&here, &on)| pairs.contains(&(here, on)))
}

#[test]
fn five_switches_in_a_ring_deadlock_in_the_cycle_that_their_routes_let_one_expect() {
    let text = include_str!("../../../../scenarios/deadlock5.yaml");
    let fabric = fabric(text, RouterKind::ShortestPath);
    let (pairs, cycle) = predicted(&fabric, fabric.seed);
    let deadlock = run(&fabric, fabric.seed, Span::from_millis(500)).expect("a deadlock");
    assert_eq!(deadlock.len(), 5);
    assert!(cycle && is_predicted(&deadlock, &pairs), "{deadlock:?}");
    // The deadlock persists; a run reports it, and fails.
    let options = axon_sim::Options {
        duration: Some(Span::from_millis(300)),
        ..axon_sim::Options::default()
    };
    let report = axon_sim::run(&fabric, options);
    let deadlock = report.deadlock.as_ref().expect("a deadlock");
    assert_eq!((deadlock.cycle.len(), deadlock.cycle.first()), (6, deadlock.cycle.last()));
    assert!(deadlock.at_ns > report.boot_ns && !report.passed());
}

/// Frames of another priority in the same class, for a host with a slow link, are in a queue that
/// may send. They do not release the frames that wait for each other.
#[test]
fn a_deadlock_is_seen_though_a_priority_of_the_same_class_can_go_on() {
    let text = include_str!("../../../../scenarios/deadlock5.yaml")
        .replace("    - { priorities: [4], ets: 10, lossless: true }\n", "")
        .replace("  layers: [[3, 4]]\n", "")
        .replace("priorities: [3], ets: 50", "priorities: [3, 4], ets: 60")
        .replace("    priority: 3\n", "    priority: 3\n    start: 100ms\n")
        .replace(
            "    links: [[",
            "      h11: { at: s2, ip: 10.0.77.11, rate: 20kbps }\n    links: [[",
        )
        + "  - { udp: { count: 5 }, from: h1, to: h11, priority: 4 }\n";
    let fabric = fabric(&text, RouterKind::ShortestPath);
    let deadlock = run(&fabric, fabric.seed, Span::from_millis(500)).expect("a deadlock");
    assert!(deadlock.iter().all(|buffer| buffer.priority.value() == 3), "{deadlock:?}");
    assert_eq!(deadlock.len(), 5);
}

#[test]
fn the_same_ring_up_and_down_goes_on() {
    let text = include_str!("../../../../scenarios/deadlock5.yaml");
    let fabric = fabric(text, RouterKind::UpDown);
    assert!(!predicted(&fabric, fabric.seed).1);
    assert_eq!(run(&fabric, fabric.seed, Span::from_millis(500)), None);
}

/// The shortest path around the ring is open on two layers, but not on one.
#[test]
fn the_same_ring_on_two_layers_goes_on_with_shortest_paths() {
    let text = include_str!("../../../../scenarios/deadlock5.yaml");
    let fabric = fabric(text, RouterKind::Layered);
    assert!(!predicted(&fabric, fabric.seed).1);
    let mut planned = Planned::new(&fabric, RouterKind::Layered.build(1, fabric.layers()), 1);
    let mut on = [0; 2];
    for &(from, to) in fabric.traffic.iter().flat_map(|entry| &entry.flows) {
        planned.ask(from, to);
        let route = planned.route(from, to).unwrap();
        assert_eq!(route.len(), 2);
        on[route.layer.index()] += 1;
    }
    assert_eq!(on, [8, 2], "those through the lowest switch go on the second layer");
    assert_eq!(run(&fabric, fabric.seed, Span::from_millis(500)), None);
    let options = axon_sim::Options {
        duration: Some(Span::from_millis(300)),
        ..axon_sim::Options::default()
    };
    let report = axon_sim::run(&fabric, options);
    assert!(report.passed() && report.deadlock.is_none());
}

/// A ring or a torus of lossless links with little memory; all hosts send as fast as they can, to
/// two others each.
fn random_text(seed: u64) -> String {
    let mut random = Rand64::new(u128::from(seed));
    let random = &mut random;
    let (topology, hosts) = pick(
        random,
        &[
            ("{ ring: { switches: 3, hosts_per_switch: 2 } }", 6),
            ("{ ring: { switches: 4, hosts_per_switch: 2 } }", 8),
            ("{ ring: { switches: 5, hosts_per_switch: 2 } }", 10),
            ("{ ring: { switches: 6, hosts_per_switch: 2 } }", 12),
            ("{ torus: { rows: 3, cols: 3, hosts_per_switch: 1 } }", 9),
            ("{ torus: { rows: 4, cols: 4, hosts_per_switch: 1 } }", 16),
        ],
    );
    let share = pick(random, &["0B", "5kB", "20kB"]);
    let mut text = format!(
        "name: random\ntopology: {topology}\nlinks: {{ rate: 10Gbps }}\ndcb:\n  classes:\n  \
         - {{ priorities: [0, 1, 2, 4, 5, 6], ets: 50 }}\n  \
         - {{ priorities: [3], ets: 50, lossless: true }}\n  - {{ priorities: [7] }}\n  \
         buffers: {{ lossless_share: {share} }}\ntraffic:\n"
    );
    let around = pick(random, &[true, false]);
    for from in 0..hosts {
        for _ in 0..2 {
            let any = random.rand_range(1..hosts);
            let to = (from + if around { 4.min(hosts - 1) } else { any }) % hosts;
            let _ = writeln!(
                text,
                "- {{ udp: {{}}, from: h{}, to: h{}, priority: 3 }}",
                from + 1,
                to + 1
            );
        }
    }
    text
}

/// The fabric of `text` with a second priority for the same frames.
fn on_two_layers(text: &str) -> String {
    text.replace("[0, 1, 2, 4, 5, 6], ets: 50", "[0, 1, 2, 5, 6], ets: 40").replace(
        "- { priorities: [7] }",
        "- { priorities: [4], ets: 10, lossless: true }\n  - { priorities: [7] }\n  \
         layers: [[3, 4]]",
    )
}

#[test]
fn random_fabrics_deadlock_only_where_their_routes_have_a_cycle_never_up_and_down_or_on_layers() {
    let (mut found, mut expected) = (0, 0);
    for seed in 1..=FABRICS {
        let text = random_text(seed);
        let span = Span::from_millis(2);
        let shortest = fabric(&text, RouterKind::ShortestPath);
        let (pairs, cycle) = predicted(&shortest, seed);
        expected += u64::from(cycle);
        if let Some(deadlock) = run(&shortest, seed, span) {
            found += 1;
            assert!(cycle && is_predicted(&deadlock, &pairs), "seed {seed}: {deadlock:?}\n{text}");
        }
        for router in [RouterKind::UpDown, RouterKind::Layered] {
            let text =
                if router == RouterKind::Layered { on_two_layers(&text) } else { text.clone() };
            let fabric = fabric(&text, router);
            assert!(!predicted(&fabric, seed).1, "seed {seed}:\n{text}");
            assert_eq!(run(&fabric, seed, span), None, "seed {seed}:\n{text}");
        }
    }
    println!("{found} of {FABRICS} deadlocked, {expected} have a cycle");
    assert!(found >= 10, "{found} of {FABRICS} deadlocked: too few to say anything");
}
