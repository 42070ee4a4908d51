//! Forwarding servers as control programs: BCube and DCell (paper 004 §5.1 and appendix A).

use crate::common::{self, pairs, unreached};
use axon_fabric::model::{End, FaultKind};
use axon_sim::World;
use axon_sim::apps::{AppId, Plan, TcpOptions, TcpPlan};
use axon_wire::{Span, Time};

const BCUBE: &str = include_str!("../../../../scenarios/bcube.yaml");
const DCELL: &str = include_str!("../../../../scenarios/dcell.yaml");

fn boot(text: &str) -> World {
    let mut world = World::new(&common::fabric(text), 1);
    assert!(world.run_until_true(Time::ZERO + Span::from_secs(5), World::is_ready));
    world
}

fn link_between(world: &World, a: usize, b: usize) -> usize {
    let joins = |ends: [End; 2]| ends.map(|end| end.switch) == [a, b];
    let mut links = world.fabric().links.iter();
    links.position(|link| joins([link.a, link.b])).expect("a link")
}

/// Asserts that every pair pings within `tries` requests, and that every frame is accounted for.
fn assert_all_pairs(world: &mut World, tries: u16, context: &str) {
    let hosts: Vec<usize> = (0..world.fabric().hosts.len()).collect();
    let silent = unreached(world, &pairs(&hosts), tries);
    assert!(silent.is_empty(), "{context}: no answer: {silent:?}");
    world.engine().check_conservation().unwrap_or_else(|fault| panic!("{context}: {fault}"));
}

#[test]
fn all_pairs_of_bcube_1_with_16_servers_ping_at_once_and_after_failures() {
    let mut world = boot(BCUBE);
    assert_all_pairs(&mut world, 1, "whole");
    let link = link_between(&world, 1, 16);
    world.inject(FaultKind::LinkDown(link));
    assert_all_pairs(&mut world, 6, "server 01 is cut off from its switch of level 0");
    world.inject(FaultKind::LinkUp(link));
    world.run_for(Span::from_secs(1));
    world.inject(FaultKind::SwitchDown(20));
    assert_all_pairs(&mut world, 6, "a switch of level 1 has no power");
    world.inject(FaultKind::SwitchUp(20));
    world.inject(FaultKind::LinkSilent(link));
    world.run_for(Span::from_secs(1));
    assert_all_pairs(&mut world, 6, "a link has carrier and passes nothing");
}

#[test]
fn all_pairs_of_dcell_1_with_20_servers_ping_at_once_and_after_failures() {
    let mut world = boot(DCELL);
    assert_all_pairs(&mut world, 1, "whole");
    let link = link_between(&world, 0, 4);
    world.inject(FaultKind::LinkDown(link));
    assert_all_pairs(&mut world, 1, "a link between cells has no carrier: at once by a proxy");
    world.inject(FaultKind::LinkUp(link));
    world.inject(FaultKind::SwitchDown(21));
    assert_all_pairs(&mut world, 2, "the switch of a cell has no power");
    world.inject(FaultKind::SwitchUp(21));
    world.run_for(Span::from_secs(1));
    world.inject(FaultKind::LinkSilent(link));
    world.run_for(Span::from_secs(1));
    assert_all_pairs(&mut world, 1, "a link has carrier and passes nothing");
}

#[test]
fn a_server_of_bcube_without_power_is_gone_around() {
    let mut world = boot(BCUBE);
    let address = world.address(4).unwrap();
    let reach = |world: &mut World| unreached(world, &[(1, 4)], 6).is_empty();
    assert!(reach(&mut world), "{address}");
    for middle in [0, 5] {
        world.inject(FaultKind::SwitchDown(middle));
        world.run_for(Span::from_secs(1));
        assert!(reach(&mut world), "server {middle} has no power");
        world.inject(FaultKind::SwitchUp(middle));
        world.run_for(Span::from_secs(1));
    }
}

/// Starts an endless connection from host 1, of server 01, to host 4, of server 10.
fn connect(world: &mut World, port: u16) -> AppId {
    let options = TcpOptions { buffer_bytes: 1 << 18, ..TcpOptions::default() };
    let target = world.address(4).unwrap();
    let sink =
        world.with_host(4, |host, now| host.start(Plan::TcpSink { port, options }, now)).unwrap();
    let plan = TcpPlan { target, port, bytes: None, options };
    world.with_host(1, |host, now| host.start(Plan::Tcp(plan), now)).unwrap();
    sink
}

/// Current rates of connections to host 4, in kb/s.
fn rates(world: &mut World, sinks: &[AppId]) -> Vec<u64> {
    let bytes = |world: &World| -> Vec<u64> {
        let of = |&sink| world.flow_stats(4, sink).unwrap().received.bytes.0;
        sinks.iter().map(of).collect()
    };
    let before = bytes(world);
    world.run_for(Span::from_secs(1));
    bytes(world).iter().zip(before).map(|(after, before)| (after - before) * 8 / 1000).collect()
}

/// True if two rates are each within 5 % of their mean.
fn is_shared(both: &[u64]) -> bool {
    let sum: u64 = both.iter().sum();
    both.iter().all(|&one| (2 * one).abs_diff(sum) * 20 <= sum)
}

#[test]
fn two_connections_share_two_parallel_paths_equally_and_carry_twice_as_much_as_one() {
    let mut world = boot(BCUBE);
    let first = connect(&mut world, 5001);
    world.run_for(Span::from_millis(500));
    let alone = rates(&mut world, &[first])[0];
    assert!(alone > 850_000, "{alone} kb/s");
    let second = connect(&mut world, 5002);
    world.run_for(Span::from_millis(500));
    let both = rates(&mut world, &[first, second]);
    let sum: u64 = both.iter().sum();
    assert!(10 * sum >= 17 * alone, "{both:?}, alone {alone} kb/s");
    assert!(is_shared(&both), "{both:?}");
}

#[test]
fn two_connections_that_start_together_take_a_path_each() {
    let mut world = boot(BCUBE);
    let sinks = [5001, 5002].map(|port| connect(&mut world, port));
    world.run_for(Span::from_millis(500));
    let both = rates(&mut world, &sinks);
    let sum: u64 = both.iter().sum();
    assert!(sum > 1_700_000 && is_shared(&both), "{both:?}");
}

#[test]
fn connections_that_share_a_path_part_when_they_ask_again() {
    // Slow links, since the test takes long.
    let mut world = boot(&BCUBE.replace("rate: 1Gbps", "rate: 50Mbps"));
    // While the path by 11 is broken both use 00.
    let link = link_between(&world, 1, 21);
    world.inject(FaultKind::LinkDown(link));
    let sinks = [5001, 5002].map(|port| connect(&mut world, port));
    world.run_for(Span::from_secs(2));
    let shared: u64 = rates(&mut world, &sinks).iter().sum();
    assert!((40_000..50_000).contains(&shared), "{shared} kb/s over one path");
    world.inject(FaultKind::LinkUp(link));
    // They probe every ten to eleven seconds.
    world.run_for(Span::from_secs(22));
    let parted: u64 = rates(&mut world, &sinks).iter().sum();
    assert!(10 * parted >= 17 * shared, "{parted} kb/s, before {shared} kb/s");
}
