//! Tables that are far too small: hosts are given masqueraded addresses and still reach each other.

use crate::common::{self, Builder, assert_sound, boot, pairs, ring, unreached};
use axon_fabric::cam::Cam;
use axon_sim::World;
use axon_simhost::apps::{AppId, Plan, TcpOptions, TcpPlan};
use axon_wire::{MacAddr, PortNo, Span};
use std::collections::BTreeSet;

const PORT: u16 = 5_000;
const TRANSFER: u64 = 20_000;
/// Interval between the starts of a host's transfers, with and without masquerading.
const ROUND: Span = Span::from_millis(200);

fn with_cam(mut builder: Builder, entries: u32, route_memory: u32) -> Builder {
    builder.fabric.cam = Cam { entries: Some(entries), masquerade: route_memory > 0, route_memory };
    builder
}

/// Lets each host send to each other over TCP, one transfer of each host in each round; the next
/// begins after `round` in any case. Returns the number of transfers that completed within their
/// round, and in the end.
fn transfers(world: &mut World, round: Span) -> (usize, usize) {
    let hosts = world.fabric().hosts.len();
    let options = TcpOptions { buffer_bytes: 8_192, ..TcpOptions::default() };
    for host in 0..hosts {
        world
            .with_host(host, |node, now| node.start(Plan::TcpSink { port: PORT, options }, now))
            .unwrap();
    }
    let (mut all, mut in_time): (Vec<(usize, AppId)>, usize) = (Vec::new(), 0);
    for step in 1..hosts {
        for host in 0..hosts {
            let target = world.address((host + step) % hosts).unwrap();
            let plan = TcpPlan { target, port: PORT, bytes: Some(TRANSFER), options };
            all.push((
                host,
                world.with_host(host, |node, now| node.start(Plan::Tcp(plan), now)).unwrap(),
            ));
        }
        world.run_for(round);
        let of_round = &all[all.len() - hosts..];
        in_time += of_round.iter().filter(|transfer| is_done(world, transfer)).count();
    }
    (in_time, all.iter().filter(|transfer| is_done(world, transfer)).count())
}

/// Lets each host send to each other over TCP, all at once. Returns the number of transfers
/// completed after each of these spans, and of frames that the control planes of edges had
/// forwarded by then.
fn transfers_at_once(world: &mut World, looks: &[Span]) -> Vec<(usize, u64)> {
    let hosts: Vec<usize> = (0..world.fabric().hosts.len()).collect();
    let options = TcpOptions { buffer_bytes: 8_192, ..TcpOptions::default() };
    for &host in &hosts {
        world
            .with_host(host, |node, now| node.start(Plan::TcpSink { port: PORT, options }, now))
            .unwrap();
    }
    let (began, before) = (world.now(), slow(world).0);
    let mut all: Vec<(usize, AppId)> = Vec::new();
    for (from, to) in pairs(&hosts) {
        let target = world.address(to).unwrap();
        let plan = TcpPlan { target, port: PORT, bytes: Some(TRANSFER), options };
        all.push((
            from,
            world.with_host(from, |node, _| node.start(Plan::Tcp(plan), began)).unwrap(),
        ));
    }
    let look = |&look: &Span| {
        world.run_until(began + look);
        let done = all.iter().filter(|transfer| is_done(world, transfer)).count();
        (done, slow(world).0 - before)
    };
    looks.iter().map(look).collect()
}

fn is_done(world: &World, (host, id): &(usize, AppId)) -> bool {
    world.host(*host).unwrap().flow_stats(*id).is_some_and(|stats| stats.done.is_some())
}

fn misdelivered(world: &World) -> u64 {
    (0..world.fabric().hosts.len()).map(|host| world.host(host).unwrap().misdelivered()).sum()
}

/// Maximum number of entries at a port: in the tables of all switches, and in their route memories.
fn fullest(world: &World) -> (usize, usize) {
    let switches = (0..world.fabric().switches.len()).filter_map(|at| world.switch(at));
    let ports = switches.flat_map(|switch| axon_node::Dataplane::snapshot(switch.plane()).ports);
    let sizes = ports.map(|port| (port.routes.len(), port.masqueraded.len()));
    sizes.fold((0, 0), |most, has| (most.0.max(has.0), most.1.max(has.1)))
}

/// Number of frames that the control planes of all edges have forwarded, and of corrections that
/// they sent.
fn slow(world: &World) -> (u64, u64) {
    let switches = (0..world.fabric().switches.len()).filter_map(|at| world.switch(at));
    let counters = switches.map(|switch| switch.edges().counters());
    counters.fold((0, 0), |sum, one| (sum.0 + one.slow_path, sum.1 + one.macs_corrected))
}

#[test]
fn with_tables_of_four_entries_64_hosts_reach_each_other_in_time_only_by_masquerading() {
    let hosts: Vec<usize> = (0..64).collect();
    // Both runs have the same rounds.
    let run = &|route_memory: u32| {
        let mut world = boot(&with_cam(ring(8, 8, true), 4, route_memory));
        let silent = unreached(&mut world, &pairs(&hosts), 20).len();
        let before = slow(&world).0;
        let (in_time, done) = transfers(&mut world, ROUND);
        let (slow, _) = slow(&world);
        let fullest = fullest(&world);
        println!(
            "route memory {route_memory}: {silent} of 4032 pings unanswered; of 4032 transfers in \
             63 rounds of {ROUND} {in_time} done in their round, {done} in the end; fullest port \
             {fullest:?}, {} frames by software",
            slow - before
        );
        assert_eq!(misdelivered(&world), 0);
        common::take_all(&mut world);
        assert_sound(&world);
        (silent, in_time, done, fullest)
    };
    let [with, without] = std::thread::scope(|scope| {
        [4_096, 0].map(|memory| scope.spawn(move || run(memory))).map(|one| one.join().unwrap())
    });
    assert_eq!(with, (0, 4_032, 4_032, (4, 59)));
    assert!(without.1 < 4_032 && without.3 == (4, 0), "{without:?}");
}

#[test]
fn all_at_once_they_reach_each_other_in_2_s_by_masquerading_and_without_it_not_in_5() {
    let hosts: Vec<usize> = (0..64).collect();
    let looks = [1, 2, 5, 10, 30, 60].map(Span::from_secs);
    let run = &|route_memory: u32| {
        let mut world = boot(&with_cam(ring(8, 8, true), 4, route_memory));
        assert_eq!(unreached(&mut world, &pairs(&hosts), 20), []);
        let done = transfers_at_once(&mut world, &looks);
        for (look, (done, slow)) in looks.iter().zip(&done) {
            println!(
                "route memory {route_memory}: after {look} {done} of 4032 transfers done, {slow} \
                 frames by software"
            );
        }
        assert_eq!(misdelivered(&world), 0);
        common::take_all(&mut world);
        assert_sound(&world);
        [done[1], done[2]]
    };
    let [with, without] = std::thread::scope(|scope| {
        [4_096, 0].map(|memory| scope.spawn(move || run(memory))).map(|one| one.join().unwrap())
    });
    assert_eq!(with, [(4_032, 0); 2]);
    assert!(without[1].0 < 3_900 && without[1].1 > 0, "{without:?}");
}

#[test]
fn after_a_restart_of_a_switch_what_its_hosts_were_given_before_leads_nowhere() {
    let builder = with_cam(ring(3, 2, true), 1, 64);
    let mut world = boot(&builder);
    let hosts: Vec<usize> = (0..6).collect();
    assert_eq!(unreached(&mut world, &pairs(&hosts), 20), []);
    let given = |world: &World| -> Vec<(PortNo, MacAddr)> {
        let edges = world.switch(0).unwrap().edges();
        let mac = |(port, to, _)| edges.masquerade_of(port, to).map(|mac| (port, mac));
        edges.plain().flows().filter_map(mac).collect()
    };
    let before = given(&world);
    assert!(before.len() >= 6, "{before:?}");
    world.start_switch(0);
    world.run_for(Span::from_secs(2));
    let corrected = slow(&world).1;
    assert_eq!(unreached(&mut world, &pairs(&hosts), 50), []);
    println!("{} corrections after the restart", slow(&world).1 - corrected);
    let after = given(&world);
    assert!(after.iter().all(|given| !before.contains(given)), "{before:?} {after:?}");
    assert_eq!(misdelivered(&world), 0);
    assert_sound(&world);
}

#[test]
fn what_hosts_were_given_goes_on_when_a_node_starts_anew_on_its_data_plane() {
    let mut world = boot(&with_cam(ring(3, 2, true), 1, 64));
    let hosts: Vec<usize> = (0..6).collect();
    assert_eq!(unreached(&mut world, &pairs(&hosts), 20), []);
    // By port and address: the entries of the data plane, and the edge's record of them.
    let has = |world: &World| -> BTreeSet<(PortNo, MacAddr, MacAddr)> {
        let snapshot = axon_node::Dataplane::snapshot(world.switch(0).unwrap().plane());
        let ports = (0..).map(PortNo).zip(snapshot.ports);
        let entries = ports.flat_map(|(port, is)| {
            is.masqueraded.into_iter().map(move |one| (port, one.key.destination, one.destination))
        });
        entries.collect()
    };
    let knows = |world: &World| -> BTreeSet<(PortNo, MacAddr, MacAddr)> {
        let edges = world.switch(0).unwrap().edges();
        let mac = |(port, to, _)| edges.masquerade_of(port, to).map(|mac| (port, mac, to));
        edges.plain().flows().filter_map(mac).collect()
    };
    let before = has(&world);
    assert!(before.len() >= 6 && before == knows(&world), "{before:?}");
    let corrected = slow(&world).1;
    world.engine_mut().crash_node(0);
    world.run_for(Span::from_millis(300));
    world.restart_node(0);
    // Longer than any entry stays without a decision.
    for _ in 0..3 {
        world.run_for(Span::from_secs(5));
        assert_eq!(unreached(&mut world, &pairs(&hosts), 1), []);
        assert_eq!((has(&world), knows(&world)), (before.clone(), before.clone()));
    }
    assert_eq!(slow(&world).1, corrected, "nobody was sent another address");
    assert_eq!(misdelivered(&world), 0);
    assert_sound(&world);
}

#[test]
fn a_destination_that_moves_keeps_the_address_that_stands_for_it() {
    let mut builder = with_cam(ring(3, 2, true), 1, 64);
    let spare = builder.spare_ports();
    let mut world = boot(&builder);
    let hosts: Vec<usize> = (0..6).collect();
    assert_eq!(unreached(&mut world, &pairs(&hosts), 20), []);
    world.move_host(5, spare[0]);
    world.run_for(Span::from_secs(3));
    assert_eq!(unreached(&mut world, &pairs(&hosts), 50), []);
    assert_eq!(misdelivered(&world), 0);
    assert_sound(&world);
}
