//! The node of a switch that is killed and restarted while its data plane keeps forwarding:
//! established flows lose nothing, wherever they cross it.

use crate::common::{
    Builder, HEARTBEAT, assert_sound, assert_whole, boot_with, line, pairs, ring, unreached,
};
use axon_controller::Controller;
use axon_fabric::model::FaultKind;
use axon_sim::{PingId, PingPlan, World};
use axon_wire::{PortNo, Span};
use oorandom::Rand64;

/// Interval between two requests of a flow.
const INTERVAL: Span = Span::from_millis(5);

/// Starts steady pings between all pairs of hosts, for `span`, over existing routes.
fn flows(world: &mut World, span: Span) -> Vec<PingId> {
    let hosts: Vec<usize> = (0..world.fabric().hosts.len()).collect();
    assert_eq!(unreached(world, &pairs(&hosts), 30), []);
    let count = (span.as_millis() / INTERVAL.as_millis()) as u16;
    let start = |(from, to)| {
        let target = world.address(to).expect("an address");
        world.ping(from, PingPlan::steady(target, INTERVAL, count)).expect("the host runs")
    };
    pairs(&hosts).into_iter().map(start).collect()
}

/// Number of requests without an answer.
fn lost(world: &World, flows: &[PingId]) -> u64 {
    let stats = flows.iter().map(|&id| world.ping_stats(id).expect("its host runs"));
    let stats = stats.inspect(|stats| assert!(stats.done, "{stats:?}"));
    stats.map(|stats| u64::from(stats.sent) - u64::from(stats.received)).sum()
}

fn controller(world: &World) -> &Controller {
    world.controller().expect("it runs").controller()
}

/// Kills the nodes of switches one after another, each for less than the bound.
fn play(builder: &Builder, seed: u64) {
    let mut random = Rand64::new(u128::from(seed));
    let mut world = boot_with(builder, seed);
    let pings = flows(&mut world, Span::from_secs(8));
    let routes = controller(&world).flows().len();
    let moved = controller(&world).counters().routes_moved;
    let removed = controller(&world).counters().routes_removed;
    for _ in 0..3 {
        world.run_for(Span::from_millis(random.rand_range(0..200)));
        let switch = random.rand_range(0..world.fabric().switches.len() as u64) as usize;
        world.engine_mut().crash_node(switch);
        world.run_for(Span::from_millis(random.rand_range(1..1_500)));
        world.restart_node(switch);
        world.run_for(Span::from_millis(random.rand_range(400..600)));
    }
    world.run_for(Span::from_secs(9));
    assert_eq!(lost(&world, &pings), 0, "seed {seed}");
    let counters = controller(&world).counters();
    assert_eq!(counters.routes_moved - moved, 0, "seed {seed}: the graph has not changed");
    assert_eq!(counters.routes_removed - removed, 0, "seed {seed}: nor have the hosts");
    assert_eq!(controller(&world).flows().len(), routes, "seed {seed}");
    assert_sound(&world);
    assert_whole(&mut world);
}

#[test]
fn flows_through_nodes_that_are_killed_and_start_anew_lose_nothing_in_a_line() {
    let builder = line(3, 2, true);
    (0..20).for_each(|seed| play(&builder, seed));
}

#[test]
fn flows_through_nodes_that_are_killed_and_start_anew_lose_nothing_in_a_ring() {
    let builder = ring(4, 2, true);
    (100..120).for_each(|seed| play(&builder, seed));
}

#[test]
fn a_node_that_does_not_come_back_is_rerouted_around_after_a_while_although_its_plane_forwards() {
    let builder = ring(4, 1, true);
    let mut world = boot_with(&builder, 1);
    let hosts = [0, 1, 3];
    assert_eq!(unreached(&mut world, &pairs(&hosts), 30), []);
    world.engine_mut().crash_node(2);
    let neighbour = |world: &World| {
        let switch = world.switch(1).expect("it runs");
        let mut found = switch.discovery().neighbours().filter(|(_, found)| found.is_restarting());
        found.next().map(|(port, _)| port)
    };
    world.run_for(HEARTBEAT * 90);
    assert!(neighbour(&world).is_some());
    let links = |world: &World| world.switch(1).unwrap().discovery().neighbours().count();
    let before = links(&world);
    world.run_for(HEARTBEAT * 20);
    assert_eq!((neighbour(&world), links(&world)), (None, before - 1));
    assert_eq!(unreached(&mut world, &pairs(&hosts), 30), []);
    world.restart_node(2);
    world.run_for(Span::from_secs(2));
    assert_eq!(links(&world), before);
    assert_whole(&mut world);
}

#[test]
fn a_link_that_dies_beside_a_node_that_restarts_is_rerouted_around_at_once() {
    let mut world = boot_with(&ring(4, 1, true), 1);
    let hosts = [0, 1, 2, 3];
    assert_eq!(unreached(&mut world, &pairs(&hosts), 30), []);
    world.engine_mut().crash_node(2);
    world.run_for(HEARTBEAT * 10);
    // At the far end only the one neighbour reports it.
    world.inject(FaultKind::LinkSilent(2));
    world.run_for(HEARTBEAT * 4);
    assert_eq!(unreached(&mut world, &pairs(&[0, 1, 3]), 1), []);
    world.inject(FaultKind::LinkUp(2));
    world.restart_node(2);
    world.run_for(Span::from_secs(2));
    assert_whole(&mut world);
}

#[test]
fn a_host_that_moves_while_the_node_of_its_switch_is_down_is_found_at_its_new_place() {
    let mut builder = ring(4, 1, true);
    let spare = builder.spare_ports();
    let mut world = boot_with(&builder, 1);
    assert_whole(&mut world);
    world.engine_mut().crash_node(2);
    world.run_for(HEARTBEAT * 5);
    world.move_host(2, spare[0]);
    world.run_for(HEARTBEAT * 20);
    world.restart_node(2);
    world.run_for(Span::from_secs(8));
    assert_whole(&mut world);
    let port = PortNo(0);
    assert!(world.switch(2).unwrap().plane().routes_at(port).is_empty());
}
