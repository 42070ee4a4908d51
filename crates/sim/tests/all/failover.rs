//! Backup routes: duration of a flow's silence after a cut, with them and without.

use crate::common::{self, Builder, HEARTBEAT, assert_sound, assert_whole, boot_on, ring};
use axon_fabric::model::FaultKind;
use axon_sim::{DataplaneKind, PingPlan, World};
use axon_wire::Span;

/// Interval between two requests.
const INTERVAL: Span = Span::from_micros(100);
/// Latency to the controller: without backups a repair takes at least twice this.
const FAR: Span = Span::from_millis(4);

/// Each scenario of this file as a test on each data plane that answers at once.
macro_rules! on_each_dataplane {
    ($($scenario:ident,)*) => {
        mod software {
            $(#[test] fn $scenario() { super::$scenario(super::DataplaneKind::Software); })*
        }
        mod reference {
            $(#[test] fn $scenario() { super::$scenario(super::DataplaneKind::Reference); })*
        }
        mod pipeline {
            $(#[test] fn $scenario() { super::$scenario(super::DataplaneKind::Pipeline); })*
        }
    };
}

on_each_dataplane! {
    a_cut_link_anywhere_silences_a_flow_for_less_than_a_millisecond,
    a_silent_link_anywhere_silences_a_flow_for_less_than_three_heartbeats,
    a_switch_that_fails_silences_flows_through_it_for_less_than_two_milliseconds,
    without_the_controller_backups_are_used_all_the_same,
    a_second_cut_after_the_first_finds_another_backup,
}

#[test]
fn a_data_plane_that_refuses_or_answers_late_finds_another_way_too() {
    let plane = DataplaneKind::Refusing;
    a_silent_link_anywhere_silences_a_flow_for_less_than_three_heartbeats(plane);
    without_the_controller_backups_are_used_all_the_same(plane);
}

/// A torus of three by three, one host at each switch.
fn torus() -> Builder {
    let mut builder = Builder::new(9);
    for at in 0..9 {
        let (row, column) = (at / 3, at % 3);
        builder.link(at, row * 3 + (column + 1) % 3);
        builder.link(at, (row + 1) % 3 * 3 + column);
    }
    for switch in 0..9 {
        builder.host(switch, true);
    }
    builder
}

/// A fabric with its controller at a high latency.
fn far(mut builder: Builder, backups: bool) -> Builder {
    builder.fabric.controller.wire.latency = FAR;
    builder.fabric.controller.backups = backups;
    builder
}

/// Longest time without an answer between two hosts after this fault, and the number of used
/// backups.
fn gap_of(
    builder: &Builder,
    plane: DataplaneKind,
    (from, to): (usize, usize),
    faults: &[FaultKind],
) -> (Span, u64) {
    let mut world = boot_on(builder, plane);
    assert_whole(&mut world);
    world.run_for(Span::from_millis(100));
    let target = world.address(to).expect("an address");
    let count = 3_000 + faults.len() as u16 * 2_000;
    let plan = PingPlan::steady(target, INTERVAL, count);
    let ping = world.ping(from, plan).expect("the host runs");
    world.run_for(Span::from_millis(100));
    for &fault in faults {
        world.inject(fault);
        world.run_for(Span::from_millis(200));
    }
    let limit = world.now() + Span::from_secs(2);
    world.run_until_true(limit, |world| world.ping_stats(ping).is_some_and(|stats| stats.done));
    let stats = world.ping_stats(ping).expect("it ran");
    assert!(stats.done && stats.received <= stats.sent, "no answer comes twice: {stats:?}");
    common::take_all(&mut world);
    assert_sound(&world);
    (stats.gap_max, used(&world))
}

fn used(world: &World) -> u64 {
    let switches = (0..world.fabric().switches.len()).filter_map(|at| world.switch(at));
    switches.map(|switch| switch.edges().counters().backups_used).sum()
}

/// Longest gap over every link of a fabric, with backups and without.
fn longest(
    make: impl Fn() -> Builder,
    plane: DataplaneKind,
    pair: (usize, usize),
    fault: impl Fn(usize) -> FaultKind,
) -> [Span; 2] {
    [true, false].map(|backups| {
        let builder = far(make(), backups);
        let links = 0..builder.fabric.links.len();
        let each = links.map(|link| gap_of(&builder, plane, pair, &[fault(link)]));
        let each: Vec<(Span, u64)> = each.collect();
        assert_eq!(each.iter().any(|&(_, used)| used > 0), backups);
        each.into_iter().map(|(gap, _)| gap).max().expect("a link")
    })
}

fn a_cut_link_anywhere_silences_a_flow_for_less_than_a_millisecond(plane: DataplaneKind) {
    for (name, [with, without]) in [
        ("ring", longest(|| ring(5, 1, true), plane, (0, 2), FaultKind::LinkDown)),
        ("torus", longest(torus, plane, (0, 4), FaultKind::LinkDown)),
    ] {
        println!("{name}, cut: {with} with backups, {without} without");
        assert!(with < Span::from_millis(1), "{name}: {with}");
        assert!(without > FAR * 2, "{name}: {without}");
    }
}

fn a_silent_link_anywhere_silences_a_flow_for_less_than_three_heartbeats(plane: DataplaneKind) {
    let [with, without] = longest(torus, plane, (0, 4), FaultKind::LinkSilent);
    println!("torus, silent: {with} with backups, {without} without");
    assert!(with > HEARTBEAT && with < HEARTBEAT * 3, "{with}");
    assert!(without > with + FAR, "{without}");
}

fn a_switch_that_fails_silences_flows_through_it_for_less_than_two_milliseconds(
    plane: DataplaneKind,
) {
    let builder = far(torus(), true);
    for switch in (1..9).filter(|&switch| switch != 4) {
        let (gap, _) = gap_of(&builder, plane, (0, 4), &[FaultKind::SwitchDown(switch)]);
        assert!(gap < Span::from_millis(2), "s{}: {gap}", switch + 1);
    }
}

fn without_the_controller_backups_are_used_all_the_same(plane: DataplaneKind) {
    let builder = far(ring(4, 1, true), true);
    let faults = [FaultKind::ControllerDown, FaultKind::LinkDown(0)];
    let (gap, used) = gap_of(&builder, plane, (0, 1), &faults);
    assert!(used > 0 && gap < Span::from_millis(1), "{used} used, {gap}");
}

fn a_second_cut_after_the_first_finds_another_backup(plane: DataplaneKind) {
    // Every switch of a torus has four links, two of which may fail.
    let builder = far(torus(), true);
    for (first, second) in [(0, 1), (1, 0), (0, 8), (8, 9)] {
        let faults = [FaultKind::LinkDown(first), FaultKind::LinkDown(second)];
        let (gap, _) = gap_of(&builder, plane, (0, 1), &faults);
        assert!(gap < Span::from_millis(1), "{first}, then {second}: {gap}");
    }
}

#[test]
fn what_an_edge_has_decided_by_itself_the_controller_takes_over() {
    let mut world = boot_on(&far(torus(), true), DataplaneKind::Software);
    assert_whole(&mut world);
    world.inject(FaultKind::LinkDown(0));
    world.run_for(Span::from_millis(100));
    // The registry of every edge equals the controller's.
    let (mut compared, controller) = (0, world.controller().expect("it runs").controller());
    assert!(used(&world) > 0, "edges were first");
    for (_, route) in controller.flows().iter() {
        let node = controller.graph().switch(route.at.switch).incarnation.node;
        let mac = controller.hosts().get(route.destination).expect("a host").mac;
        let edge = world.switch(node.0 as usize - 1).expect("on").edge();
        let flow = edge.flows().find(|&(port, to, _)| (port, to) == (route.at.port, mac));
        assert_eq!(flow.map(|(_, _, flow)| flow.route.clone()), Some(route.to_install()));
        compared += 1;
    }
    assert_eq!(compared, 72);
    world.inject(FaultKind::LinkUp(0));
    world.run_for(Span::from_secs(1));
    assert_whole(&mut world);
}

/// Longest gap over every link of a fabric of bridges with rapid spanning trees (IEEE 802.1Q clause
/// 13), whose hellos are 2 s apart. Requests are a millisecond apart.
fn longest_of_bridges(topology: &str, (from, to): (usize, usize), silent: bool) -> Span {
    let text = format!("name: t\nprogram: bridge\ntopology: {topology}\n");
    let fabric = common::fabric(&text);
    let gap = |link: usize| {
        let mut world = World::new(&fabric, 1);
        world.run_for(Span::from_secs(5));
        let target = world.address(to).expect("an address");
        let plan = PingPlan::steady(target, Span::from_millis(1), 12_000);
        let ping = world.ping(from, plan).expect("the host runs");
        world.run_for(Span::from_millis(500));
        world.inject(match silent {
            true => FaultKind::LinkSilent(link),
            false => FaultKind::LinkDown(link),
        });
        let limit = world.now() + Span::from_secs(15);
        world.run_until_true(limit, |world| world.ping_stats(ping).is_some_and(|stats| stats.done));
        let stats = world.ping_stats(ping).expect("it ran");
        assert!(stats.done && stats.received > 5_000, "link {link}: {stats:?}");
        stats.gap_max
    };
    (0..fabric.links.len()).map(gap).max().expect("a link")
}

#[test]
fn beside_it_rapid_spanning_trees_on_the_same_graphs() {
    for (name, topology, pair) in [
        // The ring of `make failover`.
        ("ring of 4", "{ring: {switches: 4}}", (0, 2)),
        ("ring", "{ring: {switches: 5}}", (0, 2)),
        ("torus", "{torus: {rows: 3, cols: 3}}", (0, 4)),
    ] {
        let cut = longest_of_bridges(topology, pair, false);
        let silent = longest_of_bridges(topology, pair, true);
        println!("{name}, bridges with RSTP: cut {cut}, silent {silent}");
        // A silent neighbour counts as lost after three missed hellos.
        assert!(silent > Span::from_secs(4), "{name}: {silent}");
        assert!(cut > Span::from_millis(1), "{name}: {cut}");
    }
}
