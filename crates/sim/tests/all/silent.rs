//! Hosts with fixed addresses that send nothing by themselves: others can reach them, and searches
//! for missing hosts are no burden to others.

use crate::common::{self, Builder, assert_sound, pairs, ring, unreached};
use axon_sim::{DataplaneKind, PingPlan, Setup, World};
use axon_simhost::arp_host::{ArpHosts, AskPlan};
use axon_wire::{Span, Time};
use std::net::Ipv4Addr;

/// A fabric whose ports know their kinds, and whose hosts have sent nothing.
fn silent(builder: &Builder, dataplane: DataplaneKind) -> World {
    let setup = Setup { seed: 1, dataplane, silent_hosts: true, ..Setup::default() };
    let mut world = World::begin(&builder.fabric, setup);
    world.set_host_retry(Span::from_millis(200));
    world.run_until(Time::ZERO + Span::from_secs(2));
    let known = world.controller().unwrap().controller().hosts().len();
    assert_eq!(known, 0, "nobody has said anything");
    world
}

#[test]
fn silent_hosts_reach_each_other_over_every_data_plane() {
    let [software, reference, pipeline] = DataplaneKind::SIMULATED;
    for dataplane in [software, reference, pipeline, DataplaneKind::Refusing] {
        let mut world = silent(&ring(4, 2, true), dataplane);
        let hosts: Vec<usize> = (0..8).collect();
        assert_eq!(unreached(&mut world, &pairs(&hosts), 30), [], "{}", dataplane.name());
        common::take_all(&mut world);
        assert_sound(&world);
        let counters = world.controller().unwrap().controller().counters();
        assert!(counters.seeks_found > 0 && counters.seeks_limited == 0, "{counters:?}");
    }
}

#[test]
fn the_first_ping_to_a_silent_host_is_answered_within_milliseconds() {
    let mut world = silent(&ring(3, 1, true), DataplaneKind::Software);
    let target = world.address(2).unwrap();
    let plan = PingPlan::until_reply(target, Span::from_secs(1), 1);
    let id = world.ping(0, plan).unwrap();
    world.run_for(Span::from_millis(20));
    assert_eq!(world.ping_stats(id).unwrap().received, 1, "no request was repeated");
}

#[test]
fn a_scan_of_a_thousand_addresses_reaches_each_host_with_a_bounded_number_of_frames() {
    let builder = ring(3, 2, true);
    let how = ArpHosts { retry: Span::from_secs(1), announce_within: None };
    let setup = Setup { seed: 1, arp_hosts: Some(how), ..Setup::default() };
    let mut world = World::begin(&builder.fabric, setup);
    world.run_until(Time::ZERO + Span::from_secs(2));
    // Frames that each host receives in ten seconds: in quiet ones an occasional Hello of its
    // switch.
    let received = |world: &mut World| {
        let count = |world: &World, host| world.nodes().arp_host(host).unwrap().received();
        let before: Vec<u64> = (0..6).map(|host| count(world, host)).collect();
        world.run_for(Span::from_secs(10));
        before.into_iter().zip(0..6).map(|(before, host)| count(world, host) - before).collect()
    };
    let quiet: Vec<u64> = received(&mut world);
    let targets = (0..1_000).map(|n| Ipv4Addr::from(0x0a00_8000 + n)).collect();
    let (first_at, interval) = (world.now(), Span::from_millis(2));
    world.nodes_mut().ask(0, AskPlan { targets, first_at, interval });
    let scanned: Vec<u64> = received(&mut world);
    for host in 1..6 {
        let frames = scanned[host] - quiet[host];
        assert!(frames <= 64 + 100, "h{}: {frames} more frames in ten seconds", host + 1);
        assert!(frames >= 64, "h{}: {frames} more frames: it was asked", host + 1);
    }
    let counters = world.controller().unwrap().controller().counters();
    assert!(counters.seeks_limited > 0, "{counters:?}");
    // A present host is found all the same, from another port.
    let target = vec![world.address(5).unwrap()];
    let plan = AskPlan { targets: target, first_at: world.now(), interval };
    world.nodes_mut().ask(2, plan);
    world.run_for(Span::from_millis(50));
    assert_eq!(world.nodes().arp_host(2).unwrap().stats().answered, 1);
    world.engine().check_conservation().unwrap();
}
