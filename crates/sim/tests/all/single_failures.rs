//! One link or one switch fails in a saturated fabric of lossless links: there is no deadlock, and
//! the other flows continue.
//!
//! `AXON_FABRICS=100` tests every failure in as many random fabrics (`make prove-failures`);
//! without it the tests take a sample.

use crate::common;
use axon_fabric::failure::Failed;
use axon_fabric::model::{Fabric, FaultKind, RouterKind};
use axon_fabric::samples::ring_with_chords;
use axon_node::Drop;
use axon_sim::World;
use axon_sim::deadlock::cycle;
use axon_wire::{Span, Time};
use oorandom::Rand64;
use std::fmt::Write;

const ROUTERS: [RouterKind; 2] = [RouterKind::UpDown, RouterKind::Layered];

/// Requested number of random fabrics, if set.
fn wanted() -> Option<u64> {
    std::env::var("AXON_FABRICS").ok()?.parse().ok()
}

/// A fabric of lossless links with little memory. Every host sends to one other as fast as it can.
fn fabric(seed: u64, router: RouterKind) -> Fabric {
    let (classes, layers) = match router {
        RouterKind::Layered => (
            "  - { priorities: [0, 1, 2, 5, 6], ets: 40 }\n  \
             - { priorities: [4], ets: 10, lossless: true }\n",
            "  layers: [[3, 4]]\n",
        ),
        _ => ("  - { priorities: [0, 1, 2, 4, 5, 6], ets: 50 }\n", ""),
    };
    let mut text = format!(
        "name: random{seed}\nseed: {seed}\n{}links: {{ rate: 10Gbps }}\ncontroller: {{ router: {} \
         }}\ndcb:\n  classes:\n{classes}  - {{ priorities: [3], ets: 50, lossless: true }}\n  \
         - {{ priorities: [7] }}\n{layers}  buffers: {{ lossless_share: 0B }}\ntraffic:\n",
        ring_with_chords(seed),
        router.name()
    );
    // Each sends to the host a drawn number of switches away: a permutation.
    let hosts = text.matches("{ at: s").count() as u64;
    let by = Rand64::new(u128::from(seed)).rand_range(1..hosts);
    for from in 0..hosts {
        let to = (from + by) % hosts + 1;
        let _ = writeln!(text, "- {{ udp: {{}}, from: h{}, to: h{to}, priority: 3 }}", from + 1);
    }
    common::fabric(&text)
}

/// Saturates a fabric, injects a failure, and looks for a deadlock. Returns the number of flows
/// that continue half a millisecond later, and of those that do not.
fn saturate(fabric: &Fabric, seed: u64, failed: Failed) -> (usize, usize) {
    let mut world = World::new(fabric, seed);
    let limit = Time::ZERO + Span::from_secs(10);
    assert!(world.run_until_true(limit, World::is_ready), "seed {seed}: {:?}", world.unready());
    world.start_traffic();
    let name = failed.name(fabric);
    let go_on = |world: &mut World, span: Span| {
        let end = world.now() + span;
        world.run_until_true(end, |world| cycle(world).is_some());
        assert_eq!(cycle(world), None, "seed {seed}, {name}");
    };
    go_on(&mut world, Span::from_micros(500));
    let fault = match failed {
        Failed::Link(link) => FaultKind::LinkDown(link),
        Failed::Switch(switch) => FaultKind::SwitchDown(switch),
    };
    world.inject(fault);
    go_on(&mut world, Span::from_micros(1_500));
    let received = |world: &World| -> Vec<u64> {
        world.flows().report().iter().map(|flow| flow.received_bytes).collect()
    };
    let before = received(&world);
    go_on(&mut world, Span::from_micros(500));
    let moved = before.iter().zip(received(&world)).filter(|&(before, after)| after > *before);
    let moved = moved.count();
    for station in world.engine().stations() {
        let lost = station.accounts().dropped[Drop::HeadroomFull as usize];
        assert_eq!(lost, 0, "seed {seed}: {} has lost what was not to be lost", station.name());
    }
    (moved, before.len() - moved)
}

#[test]
fn a_saturated_fabric_goes_on_whatever_fails() {
    let every = wanted().is_some();
    for router in ROUTERS {
        let (mut runs, mut moved, mut silent) = (0, 0, 0);
        for seed in 0..wanted().unwrap_or(4) {
            let fabric = fabric(seed, router);
            let all: Vec<Failed> = Failed::each(&fabric).collect();
            let chosen = all.iter().enumerate().filter(|(at, _)| every || at % 9 == 0);
            for (_, &failed) in chosen {
                let (on, off) = saturate(&fabric, seed, failed);
                (runs, moved, silent) = (runs + 1, moved + on, silent + off);
            }
        }
        println!("{}: {runs} runs, {moved} flows go on, {silent} do not", router.name());
        // At a failed switch two flows stop.
        assert!(moved > silent * 5, "{}: {moved} go on, {silent} do not", router.name());
    }
}
