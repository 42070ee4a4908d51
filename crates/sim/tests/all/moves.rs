//! Hosts that move from a port of one switch to a port of another: the time for which they are
//! unreachable, with the default timers of a fabric.

use crate::common::{self, Builder, assert_sound, assert_whole, ring, states, unreached};
use axon_fabric::model::{AxonPorts, End, FaultKind, Timers};
use axon_sim::{DataplaneKind, PingPlan, PingStats, Setup, World};
use axon_wire::{Span, Time};

/// Maximum gap of a move.
const GAP_MAX: Span = Span::from_millis(200);
/// Time for which the cable is in no port.
const UNPLUGGED: Span = Span::from_millis(50);
/// Moves of one run.
const MOVES: usize = 20;

/// Four switches in a ring with a host and a spare port each. Ports that are not in the file are
/// host ports.
fn with_spare_ports() -> (Builder, Vec<End>) {
    let mut builder = ring(4, 1, true);
    builder.fabric.timers = Timers::default();
    builder.fabric.port_policies.axon = AxonPorts::Links;
    let spare = builder.spare_ports();
    (builder, spare)
}

fn begin(builder: &Builder, dataplane: DataplaneKind, silent_hosts: bool) -> World {
    let setup = Setup { seed: 1, dataplane, silent_hosts, ..Setup::default() };
    let mut world = World::begin(&builder.fabric, setup);
    world.set_host_retry(Span::from_millis(200));
    world.run_until(Time::ZERO + Span::from_secs(2));
    assert!(world.all_have_addresses(), "{}", states(&world));
    world
}

/// Time for which no request of a ping was answered. Requests that wait for a route are answered
/// once there is one, so the longest wait counts, and so do consecutive lost requests.
fn silence(stats: &PingStats) -> Span {
    stats.rtt_max.map_or(stats.gap_max, |rtt| stats.gap_max.max(rtt))
}

/// Time for which requests of h1 to h2 go without an answer while h2 is moved to this port.
fn gap_of_move(world: &mut World, to: End, unplugged: Span) -> Span {
    let target = world.address(1).expect("an address");
    let plan = PingPlan::steady(target, Span::from_millis(1), 1_000);
    let ping = world.ping(0, plan).expect("the host runs");
    world.run_for(Span::from_millis(200));
    let before = world.ping_stats(ping).expect("it runs");
    assert!(before.received > 190, "{before:?}");
    world.inject(FaultKind::HostDown(1));
    world.run_for(unplugged);
    world.move_host(1, to);
    world.inject(FaultKind::HostUp(1));
    let limit = world.now() + Span::from_secs(3);
    world.run_until_true(limit, |world| world.ping_stats(ping).is_some_and(|stats| stats.done));
    let stats = world.ping_stats(ping).expect("it ran");
    assert!(stats.done && stats.received <= stats.sent, "no answer comes twice: {stats:?}");
    silence(&stats)
}

/// Gaps of this many moves, from spare port to spare port.
fn gaps(dataplane: DataplaneKind, silent: bool, unplugged: Span) -> Vec<Span> {
    let (builder, spare) = with_spare_ports();
    let mut world = begin(&builder, dataplane, silent);
    let tries = if silent { 3 } else { 1 };
    assert_eq!(unreached(&mut world, &[(0, 1)], tries), []);
    let moved = |n: usize| spare[n % spare.len()];
    let gaps: Vec<Span> =
        (0..MOVES).map(|n| gap_of_move(&mut world, moved(n), unplugged)).collect();
    assert_whole(&mut world);
    assert_sound(&world);
    gaps
}

#[test]
fn a_host_that_moves_is_silent_for_less_than_200_ms_whether_it_says_so_or_not() {
    let [software, reference, pipeline] = DataplaneKind::SIMULATED;
    for dataplane in [software, reference, pipeline] {
        for silent in [false, true] {
            let mut gaps = gaps(dataplane, silent, UNPLUGGED);
            gaps.sort_unstable();
            let (least, most) = (gaps[0], gaps[MOVES - 1]);
            let (name, median) = (dataplane.name(), gaps[MOVES / 2]);
            println!("{name}, silent {silent}: {MOVES} moves, median {median}, most {most}");
            assert!(
                least + Span::from_millis(5) >= UNPLUGGED && most < GAP_MAX,
                "{name}, silent {silent}: {gaps:?}"
            );
        }
    }
}

#[test]
fn a_data_plane_that_refuses_or_answers_late_finds_a_host_that_moved_too() {
    let (builder, spare) = with_spare_ports();
    let mut world = begin(&builder, DataplaneKind::Refusing, false);
    common::take_all(&mut world);
    for to in [spare[2], spare[3]] {
        world.move_host(1, to);
        world.run_for(Span::from_millis(500));
        assert_whole(&mut world);
    }
}

#[test]
fn a_silent_host_whose_cable_is_out_for_seconds_is_found_when_it_is_back() {
    let (builder, spare) = with_spare_ports();
    let mut world = begin(&builder, DataplaneKind::Software, true);
    assert_eq!(unreached(&mut world, &[(0, 1)], 3), []);
    let target = world.address(1).expect("an address");
    for (n, &to) in spare.iter().enumerate() {
        // Longer than a round of requests, and shorter than the duration of set-ups.
        let unplugged = Span::from_millis(1_300 + 400 * n as u64);
        let plan = PingPlan::steady(target, Span::from_millis(5), 1_000);
        let ping = world.ping(0, plan).expect("the host runs");
        world.run_for(Span::from_millis(100));
        world.inject(FaultKind::HostDown(1));
        world.run_for(unplugged);
        world.move_host(1, to);
        world.inject(FaultKind::HostUp(1));
        world.run_for(Span::from_secs(5));
        let gap = silence(&world.ping_stats(ping).expect("it ran"));
        println!("out for {unplugged}: {gap}");
        let late = Span::from_millis(100);
        assert!(gap + late >= unplugged && gap < unplugged + late, "{gap}");
    }
    assert_sound(&world);
}
