//! Keys that are changed while a fabric runs.

use crate::common::{boot, pairs, ring, start_steady, unreached};
use axon_fabric::assemble::switch_id;
use axon_link::keys::of_switch;
use axon_node::keys::Key;
use axon_node::{Done, Keys, Request, Secret};
use axon_sim::World;
use axon_wire::Span;
use oorandom::Rand64;

/// Initial key of the nodes.
const OLD: Key = [7; 32];
const NEW: Key = [8; 32];

/// Keys of a node: master keys for the controller, a switch's own keys for a switch.
fn keys(world: &World, station: usize, current: Key, other: Option<Key>) -> Keys {
    let secret = |master: Key| match station == world.layout().controller_station() {
        true => Secret::Master(master),
        false => Secret::Switch(of_switch(&master, switch_id(station))),
    };
    Keys { current: secret(current), other: other.map(secret) }
}

fn rekey(world: &mut World, station: usize, current: Key, other: Option<Key>) {
    let request = Request::Rekey(Box::new(keys(world, station, current, other)));
    assert_eq!(world.engine_mut().command(station, request), Some(Ok(Done::Rekeyed)));
}

/// Control messages that were refused, at all nodes.
fn refused(world: &World) -> u64 {
    let switches = (0..world.fabric().switches.len()).filter_map(|switch| world.switch(switch));
    let at_switches: u64 = switches.map(|node| node.refusals().total()).sum();
    at_switches + world.controller().map_or(0, |node| node.refusals().total())
}

#[test]
fn keys_are_changed_in_three_steps_and_nothing_is_lost_nor_refused() {
    for seed in 0..4 {
        let mut world = boot(&ring(4, 4, true));
        let before = refused(&world);
        let steady = start_steady(&mut world, 0, 8, Span::from_secs(5));
        let mut random = Rand64::new(seed);
        let hosts: Vec<usize> = (0..16).collect();
        let mut fresh: Vec<_> = pairs(&hosts).into_iter().filter(|pair| pair.0 < pair.1).collect();
        for (current, other) in [(OLD, Some(NEW)), (NEW, Some(OLD)), (NEW, None)] {
            let mut stations: Vec<usize> = (0..=world.layout().controller_station()).collect();
            while !stations.is_empty() {
                let next = random.rand_range(0..stations.len() as u64) as usize;
                rekey(&mut world, stations.swap_remove(next), current, other);
                // Long enough for a silent neighbour to be declared lost.
                world.run_for(Span::from_millis(100));
                // A route that no host has requested yet.
                let pair = fresh.swap_remove(random.rand_range(0..fresh.len() as u64) as usize);
                assert_eq!(unreached(&mut world, &[pair], 1), [], "seed {seed}");
            }
        }
        world.run_until_true(world.now() + Span::from_secs(6), |world| {
            world.ping_stats(steady).is_none_or(|stats| stats.done)
        });
        let stats = world.ping_stats(steady).unwrap();
        assert_eq!((stats.sent, stats.received), (5000, 5000), "seed {seed}");
        assert_eq!(refused(&world), before, "seed {seed}");
    }
}

#[test]
fn a_step_that_is_left_out_is_an_outage_until_it_is_done() {
    let mut world = boot(&ring(4, 1, true));
    let before = refused(&world);
    let steady = start_steady(&mut world, 0, 2, Span::from_secs(7));
    world.run_for(Span::from_millis(100));
    // s1 has only the new keys, all others the old ones.
    rekey(&mut world, 0, NEW, None);
    let lost = |world: &World| {
        let stats = world.ping_stats(steady).unwrap();
        stats.sent - stats.received
    };
    world.run_for(Span::from_secs(1));
    assert!(refused(&world) > before);
    assert!(lost(&world) <= 1, "its data plane forwards, as if its node restarted");
    let restart_max = world.fabric().timers.restart_max();
    world.run_for(restart_max);
    assert!(lost(&world) > 500, "{} lost", lost(&world));
    rekey(&mut world, 0, OLD, Some(NEW));
    world.run_for(Span::from_secs(3));
    assert_eq!(unreached(&mut world, &[(0, 2), (2, 0)], 3), []);
}
