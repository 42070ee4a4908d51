//! Hosts with IPv4 and IPv6: addresses, neighbours, and every pair over both families.

use crate::common::{self, Builder, assert_sound, boot, ring};
use axon_fabric::model::FaultKind;
use axon_sim::{PingId, PingPlan, Setup, World};
use axon_wire::{Span, Time};
use std::net::{IpAddr, Ipv6Addr};

/// The fixed IPv6 address of a host.
fn ip6(host: usize) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, host as u16 + 0x10)
}

fn with_fixed(mut builder: Builder) -> Builder {
    for (index, host) in builder.fabric.hosts.iter_mut().enumerate() {
        host.ip6 = Some(ip6(index));
    }
    builder
}

/// A fabric whose edges advertise a prefix.
fn advertising(mut builder: Builder) -> Builder {
    let text = "name: a\ntopology: {line: {switches: 1}}\nipv6: {prefix: \"2001:db8:7::/64\"}\n";
    builder.fabric.ipv6 = common::fabric(text).ipv6;
    builder
}

/// A 5x5 torus with two hosts at each switch.
fn torus() -> Builder {
    let mut builder = Builder::new(25);
    for switch in 0..25 {
        let (x, y) = (switch % 5, switch / 5);
        builder.link(switch, (x + 1) % 5 + y * 5);
        builder.link(switch, x + (y + 1) % 5 * 5);
    }
    for switch in 0..50 {
        builder.host(switch / 2, true);
    }
    builder
}

/// Pings all pairs of hosts over both families; returns the pairs without an answer.
fn unreached(world: &mut World) -> Vec<(usize, IpAddr)> {
    let hosts: Vec<usize> = (0..world.fabric().hosts.len()).collect();
    let mut pings: Vec<(usize, IpAddr, Option<PingId>)> = Vec::new();
    for (from, to) in common::pairs(&hosts) {
        let v4 = world.address(to).expect("an address").into();
        let v6 = world.nodes().address6(to).expect("an IPv6 address").into();
        for target in [v4, v6] {
            let plan = PingPlan::until_reply(target, Span::from_millis(100), 30);
            pings.push((from, target, world.ping(from, plan)));
        }
    }
    let stats = |world: &World, id: &Option<PingId>| id.and_then(|id| world.ping_stats(id));
    let limit = world.now() + Span::from_secs(5);
    world.run_until_true(limit, |world| {
        pings.iter().all(|(_, _, id)| stats(world, id).is_none_or(|stats| stats.done))
    });
    let silent = |id| stats(world, id).is_none_or(|stats| stats.received == 0);
    pings.iter().filter(|(_, _, id)| silent(id)).map(|&(from, to, _)| (from, to)).collect()
}

#[test]
fn fifty_silent_hosts_on_a_torus_reach_each_other_over_both_families() {
    let builder = with_fixed(torus());
    let setup = Setup { seed: 1, silent_hosts: true, ..Setup::default() };
    let mut world = World::begin(&builder.fabric, setup);
    world.set_host_retry(Span::from_millis(200));
    world.run_until(Time::ZERO + Span::from_secs(2));
    let learned = (0..25).map(|at| world.switch(at).unwrap().edge().hosts().count());
    assert_eq!(learned.sum::<usize>(), 0, "nobody has sent a frame");
    // The first ping to a host that has never sent a frame, over IPv6.
    let plan = PingPlan::until_reply(ip6(49), Span::from_secs(1), 1);
    let first = world.ping(0, plan).unwrap();
    world.run_for(Span::from_millis(50));
    assert_eq!(world.ping_stats(first).unwrap().received, 1, "no request was repeated");
    let known = world.controller().unwrap().controller().hosts().len();
    assert_eq!(known, 2, "the other 48 are silent still");
    assert_eq!(unreached(&mut world), []);
    assert_sound(&world);
}

#[test]
fn addresses_come_of_advertisements_and_every_pair_has_both_families() {
    let mut world = boot(&advertising(ring(4, 2, false)));
    for host in 0..8 {
        let expected = axon_fabric::ipv6::address(world.fabric(), &world.fabric().hosts[host]);
        assert!(expected.is_some() && world.nodes().address6(host) == expected, "h{}", host + 1);
        assert_eq!(world.host(host).unwrap().addresses6().count(), 2, "and a link-local one");
    }
    assert_eq!(unreached(&mut world), []);
    assert_sound(&world);
}

#[test]
fn the_first_holder_of_an_address_keeps_it() {
    let mut builder = with_fixed(ring(3, 1, true));
    builder.fabric.hosts[2].ip6 = Some(ip6(0));
    let mut world = World::begin(&builder.fabric, Setup { seed: 1, ..Setup::default() });
    world.set_host_retry(Span::from_millis(200));
    // The third host comes up after the first has the address.
    world.inject(FaultKind::HostDown(2));
    let has = |world: &World| world.nodes().address6(0).is_some();
    assert!(world.run_until_true(common::BOOT, has));
    world.run_for(Span::from_secs(2));
    let plan = PingPlan::until_reply(ip6(0), Span::from_millis(100), 20);
    let ping = world.ping(1, plan).unwrap();
    world.run_for(Span::from_secs(1));
    assert_eq!(world.ping_stats(ping).unwrap().received, 1);
    world.inject(FaultKind::HostUp(2));
    world.run_for(Span::from_secs(5));
    assert_eq!(world.nodes().address6(2), None, "the address is taken");
    assert_eq!(world.nodes().address6(0), Some(ip6(0)));
    assert_eq!(world.host(2).unwrap().addresses6().count(), 1, "its link-local one");
    assert_sound(&world);
}
