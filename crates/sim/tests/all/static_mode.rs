//! Fabrics without a controller: every switch decides by the fabric file.

use crate::common::{
    self, Builder, HEARTBEAT, assert_sound, assert_whole, boot, boot_on, line, pairs, ring,
    unreached,
};
use axon_fabric::assemble::switch_id;
use axon_fabric::model::{End, FaultKind, StatedPath};
use axon_fabric::planned::Planned;
use axon_node::{Done, HostPair, PolicyChange, Request};
use axon_sim::{DataplaneKind, PingPlan, Setup, World};
use axon_wire::message::LinkEnd;
use axon_wire::{Hops, PortNo, Span, Time};
use oorandom::Rand64;

fn alone(mut builder: Builder) -> Builder {
    builder.fabric.make_static();
    builder
}

/// A connected graph of switches with a host or two each.
fn random(seed: u64) -> Builder {
    let mut random = Rand64::new(u128::from(seed));
    let mut below = |limit: usize| random.rand_range(0..limit as u64) as usize;
    let switches = 3 + below(8);
    let mut builder = Builder::new(switches);
    for switch in 1..switches {
        let other = below(switch);
        builder.link(switch, other);
    }
    for _ in 0..below(switches) {
        let a = below(switches);
        let b = (a + 1 + below(switches - 1)) % switches;
        builder.link(a, b);
    }
    for switch in 0..switches {
        for _ in 0..1 + below(2) {
            let fixed = below(2) == 0;
            builder.host(switch, fixed);
        }
    }
    builder
}

/// The route from one host to another at its edge.
fn route(world: &World, from: usize, to: usize) -> Option<Hops> {
    let (source, target) = (&world.fabric().hosts[from], &world.fabric().hosts[to]);
    let edge = world.switch(source.switch)?.edge();
    let mut flows = edge.flows();
    let found = flows.find(|&(port, mac, _)| (port, mac) == (source.port, target.mac));
    found.map(|(_, _, flow)| flow.route.hops.clone())
}

#[test]
fn all_pairs_of_random_graphs_reach_each_other_without_a_controller() {
    let planes = [DataplaneKind::Software, DataplaneKind::Pipeline, DataplaneKind::Refusing];
    for (seed, plane) in (0..9).zip(planes.into_iter().cycle()) {
        let mut world = boot_on(&alone(random(seed)), plane);
        assert!(world.controller().is_none());
        assert_whole(&mut world);
    }
}

#[test]
fn silent_hosts_are_found_where_the_file_has_them_and_where_it_has_not() {
    let builder = alone(ring(4, 1, true));
    let setup = Setup { seed: 1, silent_hosts: true, ..Setup::default() };
    let mut world = World::begin(&builder.fabric, setup);
    world.run_until(Time::ZERO + Span::from_secs(2));
    assert_eq!(unreached(&mut world, &pairs(&[0, 1, 2, 3]), 30), []);

    // At another port than in the file: no switch has received its frames, and all edges are
    // queried.
    let mut builder = alone(ring(4, 1, true));
    let spare = builder.free_port(1);
    let setup = Setup { seed: 1, silent_hosts: true, ..Setup::default() };
    let mut world = World::begin(&builder.fabric, setup);
    world.move_host(3, spare);
    world.run_until(Time::ZERO + Span::from_secs(10));
    assert_eq!(unreached(&mut world, &[(0, 3), (3, 0)], 30), []);
    assert_sound(&world);
}

#[test]
fn edges_take_the_routes_that_the_plan_proves() {
    for (seed, router) in (0..6).flat_map(|seed| [(seed, "shortest_path"), (seed, "up_down")]) {
        let mut builder = alone(random(seed));
        let router = axon_fabric::model::RouterKind::named(router).unwrap();
        builder.fabric.set_router(router).unwrap();
        let mut world = boot(&builder);
        let hosts: Vec<usize> = (0..world.fabric().hosts.len()).collect();
        assert_eq!(unreached(&mut world, &pairs(&hosts), 30), []);
        let fabric = world.fabric().clone();
        let mut planned = Planned::new(&fabric, axon_fabric::static_mode::router(&fabric, 9), 9);
        for (from, to) in pairs(&hosts) {
            planned.ask(from, to);
            let planned = planned.route(from, to).expect("a route").to_install().hops;
            assert_eq!(route(&world, from, to), Some(planned), "{router:?}, {from} to {to}");
        }
    }
}

/// A ring of five in which h1 reaches h2 by the longer path, with a configured backup.
fn stated() -> Builder {
    let mut builder = ring(5, 1, true);
    let fabric = &mut builder.fabric;
    let link = |at: usize, backwards: bool| {
        let link = &fabric.links[at];
        if backwards { [link.b, link.a] } else { [link.a, link.b] }
    };
    let links = [4, 3, 2, 1].map(|at| link(at, true)).to_vec();
    let path = StatedPath { from: 0, to: 1, links, backup: vec![link(0, false)] };
    fabric.paths = vec![path];
    alone(builder)
}

#[test]
fn frames_take_the_stated_path_there_and_back_and_come_back_to_it() {
    let mut world = boot(&stated());
    assert_whole(&mut world);
    let long = world.fabric().paths[0].links.len() + 1;
    let lengths = |world: &World| {
        [(0, 1), (1, 0)].map(|(from, to)| route(world, from, to).map_or(0, |hops| hops.len()))
    };
    assert_eq!(lengths(&world), [long; 2]);
    assert_eq!(route(&world, 0, 2).map(|hops| hops.len()), Some(3), "others take the shortest");
    world.inject(FaultKind::LinkDown(3));
    world.run_for(HEARTBEAT * 3);
    assert_eq!(lengths(&world), [2; 2], "the stated backup");
    assert_whole(&mut world);
    world.inject(FaultKind::LinkUp(3));
    world.run_for(HEARTBEAT * 40);
    assert_whole(&mut world);
    assert_eq!(lengths(&world), [long; 2], "the link is back");
}

#[test]
fn a_cut_link_silences_a_flow_for_less_than_a_millisecond_and_everybody_is_reached_after() {
    let builder = alone(ring(5, 1, true));
    for link in 0..5 {
        let mut world = boot(&builder);
        assert_whole(&mut world);
        let target = world.address(2).unwrap();
        let plan = PingPlan::steady(target, Span::from_micros(100), 4_000);
        let ping = world.ping(0, plan).unwrap();
        world.run_for(Span::from_millis(100));
        world.inject(FaultKind::LinkDown(link));
        world.run_for(Span::from_secs(1));
        let stats = world.ping_stats(ping).unwrap();
        println!("link {link} cut: gap {}", stats.gap_max);
        assert!(stats.gap_max < Span::from_millis(1), "link {link}: {}", stats.gap_max);
        assert_whole(&mut world);
        world.inject(FaultKind::LinkUp(link));
        world.run_for(Span::from_secs(2));
        assert_whole(&mut world);
    }
}

#[test]
fn without_backups_the_edges_compute_new_paths_by_themselves() {
    let mut builder = ring(5, 1, true);
    builder.fabric.controller.backups = false;
    let mut world = boot(&alone(builder));
    assert_whole(&mut world);
    world.inject(FaultKind::LinkDown(0));
    world.run_for(HEARTBEAT);
    assert_eq!(route(&world, 0, 1).map(|hops| hops.len()), Some(5), "the other way round");
    assert_whole(&mut world);
    world.inject(FaultKind::LinkSilent(2));
    world.run_for(Span::from_secs(1));
    let parts = [[1, 2], [3, 4]].map(|part: [usize; 2]| pairs(&part)).concat();
    assert_eq!(unreached(&mut world, &parts, 30), []);
}

#[test]
fn parts_that_were_cut_off_from_each_other_are_whole_again_when_their_link_is_back() {
    let mut world = boot(&alone(line(4, 1, true)));
    assert_whole(&mut world);
    for fault in [FaultKind::LinkDown(1), FaultKind::LinkSilent(1)] {
        world.inject(fault);
        world.run_for(Span::from_secs(3));
        assert_eq!(unreached(&mut world, &[(0, 1), (2, 3)], 30), []);
        assert_eq!(unreached(&mut world, &[(0, 3)], 5), [(0, 3)]);
        world.inject(FaultKind::LinkUp(1));
        world.run_for(Span::from_secs(2));
        assert_whole(&mut world);
    }
}

#[test]
fn a_switch_that_restarts_is_met_again_and_a_host_that_moves_is_found() {
    let mut builder = ring(4, 2, true);
    let spare = builder.free_port(2);
    let mut world = boot(&alone(builder));
    assert_whole(&mut world);
    world.inject(FaultKind::SwitchDown(1));
    world.run_for(Span::from_secs(1));
    world.inject(FaultKind::SwitchUp(1));
    world.run_for(Span::from_secs(2));
    assert_whole(&mut world);
    world.move_host(0, spare);
    world.run_for(Span::from_secs(3));
    assert_whole(&mut world);
}

#[test]
fn a_cable_that_is_not_as_the_file_has_it_is_reported_and_not_used() {
    let mut builder = ring(4, 1, true);
    let [wrong, free] = [builder.free_port(0), builder.free_port(2)];
    let mut world = boot(&alone(builder));
    // A short cut across the ring that is not in the file.
    world.nodes_mut().connect(wrong, free, common::wire());
    world.run_for(Span::from_secs(1));
    let found = |world: &World, switch: usize| {
        world.switch(switch).unwrap().telemetry(world.now()).alone.unwrap().miscabled
    };
    let end = |End { switch, port }| LinkEnd { node: switch_id(switch), port };
    assert_eq!(found(&world, 0).len(), 1);
    let alarm = found(&world, 0)[0];
    assert_eq!((alarm.port, alarm.expected, alarm.found), (wrong.port, None, end(free)));
    assert_eq!(found(&world, 2)[0].found, end(wrong));
    assert_whole(&mut world);
    assert_eq!(route(&world, 0, 2).map(|hops| hops.len()), Some(3), "not by the short cut");
}

#[test]
fn two_cables_that_are_swapped_are_reported_with_what_was_expected_and_are_not_used() {
    let mut builder = Builder::new(3);
    // Two links between s1 and s2, and one from each to s3.
    for (a, b) in [(0, 1), (0, 1), (0, 2), (1, 2)] {
        builder.link(a, b);
    }
    for switch in 0..3 {
        builder.host(switch, true);
    }
    let builder = alone(builder);
    let mut swapped = builder.fabric.clone();
    let [first, second] = [swapped.links[0].b, swapped.links[1].b];
    (swapped.links[0].b, swapped.links[1].b) = (second, first);
    // The cables are those of `swapped`; the switches have the other file.
    let mut world = World::begin(&builder.fabric, Setup::default());
    for link in [0, 1] {
        let id = axon_sim::links::LinkId(link);
        world.engine_mut().disconnect(id);
    }
    for link in &swapped.links[..2] {
        world.nodes_mut().connect(link.a, link.b, link.wire);
    }
    world.run_for(Span::from_secs(2));
    let alone = world.switch(0).unwrap().telemetry(world.now()).alone.unwrap();
    assert_eq!(alone.miscabled.len(), 2);
    let ends: Vec<(Option<PortNo>, PortNo)> = alone
        .miscabled
        .iter()
        .map(|one| (one.expected.map(|end| end.port), one.found.port))
        .collect();
    assert_eq!(ends, [(Some(first.port), second.port), (Some(second.port), first.port)]);
    assert_eq!(unreached(&mut world, &pairs(&[0, 1, 2]), 30), []);
    assert_eq!(route(&world, 0, 1).map(|hops| hops.len()), Some(3), "by s3");
}

#[test]
fn a_pair_that_one_switch_denies_is_cut_off_at_both_ends_when_each_is_asked() {
    let mut world = boot(&alone(line(3, 1, true)));
    assert_whole(&mut world);
    let macs = [0, 2].map(|host: usize| world.fabric().hosts[host].mac);
    let change = PolicyChange::Pair(HostPair::of(macs[0], macs[1]), false);
    for switch in 0..3 {
        let done = world.engine_mut().command(switch, Request::Policy(change));
        assert!(matches!(done, Some(Ok(Done::Policy(_)))), "{done:?}");
    }
    world.run_for(Span::from_millis(50));
    assert_eq!([route(&world, 0, 2), route(&world, 2, 0)], [None, None]);
    assert_eq!(unreached(&mut world, &[(0, 2), (2, 0)], 10).len(), 2);
    assert_eq!(unreached(&mut world, &[(0, 1), (1, 2), (2, 1)], 30), []);
}

#[test]
fn the_same_seed_has_the_same_trace() {
    let hash = || {
        let mut world = common::boot_with(&alone(random(3)), 5);
        world.inject(FaultKind::LinkDown(0));
        world.run_for(Span::from_secs(1));
        world.engine().trace_hash()
    };
    assert_eq!(hash(), hash());
}

/// Round trip time of a first ping, set-up included, and the number of packets that crossed links
/// for it.
fn first_ping(builder: &Builder, (from, to): (usize, usize)) -> (Span, u64) {
    let mut world = boot(builder);
    let hops = |world: &mut World, ping: bool| {
        let before = world.engine().packet_hops();
        let target = world.address(to).unwrap();
        let plan = PingPlan::until_reply(target, Span::from_millis(500), 1);
        let id = ping.then(|| world.ping(from, plan).unwrap());
        world.run_for(Span::from_ticks(HEARTBEAT.ticks() / 4));
        let stats = id.and_then(|id| world.ping_stats(id));
        (stats.and_then(|stats| stats.rtt_max), world.engine().packet_hops() - before)
    };
    // Packets sent in the same time without a ping, equal in each heartbeat.
    let quiet = (0..4).map(|_| hops(&mut world, false).1).sum::<u64>();
    let (rtt, first) = hops(&mut world, true);
    let rest = (0..3).map(|_| hops(&mut world, false).1).sum::<u64>();
    (rtt.expect("an answer"), (first + rest).saturating_sub(quiet))
}

#[test]
fn a_set_up_needs_no_more_time_and_packets_than_with_a_controller() {
    for (name, make) in
        [("line of 5", line as fn(usize, usize, bool) -> Builder), ("ring of 6", ring)]
    {
        let switches = if name == "line of 5" { 5 } else { 6 };
        let mut central = make(switches, 1, true);
        central.fabric.controller.backups = false;
        let without = alone(Builder { fabric: central.fabric.clone() });
        let pair = (switches - 1, switches / 2);
        let [with, without] = [central, without].map(|builder| first_ping(&builder, pair));
        println!(
            "{name}, first ping: {} and {} packet-hops with a controller, {} and {} without",
            with.0, with.1, without.0, without.1
        );
        assert!(without.0 <= with.0 && without.1 <= with.1, "{name}: {without:?}, {with:?}");
    }
}
