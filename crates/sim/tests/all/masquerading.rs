//! Tables that are far too small: hosts are given masqueraded addresses and reach each other all
//! the same.

use crate::common::{self, Builder, assert_sound, boot, pairs, ring, unreached};
use axon_fabric::cam::Cam;
use axon_sim::World;
use axon_sim::host::apps::{AppId, TcpOptions, TcpPlan};
use axon_wire::{MacAddr, PortNo, Span};
use std::collections::BTreeSet;

const PORT: u16 = 5_000;
const TRANSFER: u64 = 20_000;

fn with_cam(mut builder: Builder, entries: usize, route_memory: usize) -> Builder {
    builder.fabric.cam = Cam { entries: Some(entries), route_memory };
    builder
}

/// Lets each host send to each other over TCP, one at a time; returns how many transfers are done
/// after so long each.
fn transfers(world: &mut World, patience: Span) -> usize {
    let hosts = world.fabric().hosts.len();
    let options = TcpOptions { buffer_bytes: 8_192, ..TcpOptions::default() };
    for host in 0..hosts {
        world.host_mut(host).unwrap().tcp_listen(PORT, options, None);
    }
    let mut done = 0;
    for step in 1..hosts {
        let start = |world: &mut World, host: usize| {
            let target = world.address((host + step) % hosts).unwrap();
            let plan = TcpPlan { target, port: PORT, bytes: Some(TRANSFER), options };
            let now = world.now();
            let id = world.host_mut(host).unwrap().tcp_send(plan, now);
            world.nudge_host(host);
            id
        };
        let ids: Vec<AppId> = (0..hosts).map(|host| start(world, host)).collect();
        let is_done = |world: &World, host: usize| {
            let stats = world.host(host).unwrap().flow_stats(ids[host]);
            stats.is_some_and(|stats| stats.done.is_some())
        };
        let limit = world.now() + patience;
        world.run_until_true(limit, |world| (0..hosts).all(|host| is_done(world, host)));
        done += (0..hosts).filter(|&host| is_done(world, host)).count();
    }
    done
}

fn misdelivered(world: &World) -> u64 {
    (0..world.fabric().hosts.len()).map(|host| world.host(host).unwrap().misdelivered()).sum()
}

/// Entries in the tables of all switches, and in their route memories, at the fullest port.
fn fullest(world: &World) -> (usize, usize) {
    let switches = (0..world.fabric().switches.len()).filter_map(|at| world.switch(at));
    let ports = switches.flat_map(|switch| axon_node::Dataplane::snapshot(switch.plane()).ports);
    let sizes = ports.map(|port| (port.routes.len(), port.masqueraded.len()));
    sizes.fold((0, 0), |most, has| (most.0.max(has.0), most.1.max(has.1)))
}

/// Frames that the control planes of all edges have forwarded, and corrections that they sent.
fn slow(world: &World) -> (u64, u64) {
    let switches = (0..world.fabric().switches.len()).filter_map(|at| world.switch(at));
    let counters = switches.map(|switch| switch.edge().counters());
    counters.fold((0, 0), |sum, one| (sum.0 + one.slow_path, sum.1 + one.macs_corrected))
}

#[test]
fn with_tables_of_four_entries_64_hosts_reach_each_other_only_by_masquerading() {
    let hosts: Vec<usize> = (0..64).collect();
    let [with, without] = [4_096, 0].map(|route_memory| {
        let mut world = boot(&with_cam(ring(8, 8, true), 4, route_memory));
        let silent = unreached(&mut world, &pairs(&hosts), 20).len();
        let patience = Span::from_millis(if route_memory == 0 { 200 } else { 2_000 });
        let before = slow(&world).0;
        let done = transfers(&mut world, patience);
        let (slow, _) = slow(&world);
        let fullest = fullest(&world);
        println!(
            "route memory {route_memory}: {silent} of 4032 pings unanswered, {done} of 4032 \
             transfers done, fullest port {fullest:?}, {} frames by software",
            slow - before
        );
        assert_eq!(misdelivered(&world), 0);
        common::take_all(&mut world);
        assert_sound(&world);
        (silent, done, fullest)
    });
    assert_eq!(with, (0, 4_032, (4, 59)));
    assert!(without.1 < 4_032 && without.2 == (4, 0), "{without:?}");
}

#[test]
fn after_a_restart_of_a_switch_what_its_hosts_were_given_before_leads_nowhere() {
    let builder = with_cam(ring(3, 2, true), 1, 64);
    let mut world = boot(&builder);
    let hosts: Vec<usize> = (0..6).collect();
    assert_eq!(unreached(&mut world, &pairs(&hosts), 20), []);
    let given = |world: &World| -> Vec<(PortNo, MacAddr)> {
        let edge = world.switch(0).unwrap().edge();
        let mac = |(port, to, _)| edge.masquerade_of(port, to).map(|mac| (port, mac));
        edge.flows().filter_map(mac).collect()
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
    // By port and address: what the data plane has, and what the edge knows of it.
    let has = |world: &World| -> BTreeSet<(PortNo, MacAddr, MacAddr)> {
        let snapshot = axon_node::Dataplane::snapshot(world.switch(0).unwrap().plane());
        let ports = (0..).map(PortNo).zip(snapshot.ports);
        let entries = ports.flat_map(|(port, is)| {
            is.masqueraded.into_iter().map(move |one| (port, one.key.destination, one.destination))
        });
        entries.collect()
    };
    let knows = |world: &World| -> BTreeSet<(PortNo, MacAddr, MacAddr)> {
        let edge = world.switch(0).unwrap().edge();
        let mac = |(port, to, _)| edge.masquerade_of(port, to).map(|mac| (port, mac, to));
        edge.flows().filter_map(mac).collect()
    };
    let before = has(&world);
    assert!(before.len() >= 6 && before == knows(&world), "{before:?}");
    let corrected = slow(&world).1;
    world.crash_node(0);
    world.run_for(Span::from_millis(300));
    world.restart_node(0);
    // Longer than anything stands that nobody decides about.
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
    world.nudge_host(5);
    assert_eq!(unreached(&mut world, &pairs(&hosts), 50), []);
    assert_eq!(misdelivered(&world), 0);
    assert_sound(&world);
}
