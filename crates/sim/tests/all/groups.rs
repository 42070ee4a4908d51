//! Groups: a datagram to a group arrives at each member once and at no other host, with any
//! failures.

use crate::common::{self, Builder, boot, mac};
use axon_controller::policy::Group;
use axon_fabric::model::{FaultKind, Policy};
use axon_node::Subject;
use axon_sim::World;
use axon_sim::apps::{Plan, RawPlan};
use axon_sim::links::WireEnd;
use axon_wire::membership::{self, reports};
use axon_wire::{MacAddr, PortNo, Span};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const GROUP: Ipv4Addr = Ipv4Addr::new(239, 1, 2, 3);
const MDNS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0xfb);
/// A word that other frames do not contain.
const WORD: [u8; 6] = *b"stream";

/// A 5x5 torus with one host at each switch.
fn torus() -> Builder {
    let mut builder = Builder::new(25);
    for switch in 0..25 {
        let (x, y) = (switch % 5, switch / 5);
        builder.link(switch, (x + 1) % 5 + y * 5);
        builder.link(switch, x + (y + 1) % 5 * 5);
    }
    (0..25).for_each(|switch| {
        builder.host(switch, true);
    });
    builder
}

fn ip(host: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, host as u8 + 10)
}

/// An IP packet to a group that carries a word and a number.
fn datagram(from: MacAddr, group: IpAddr, number: u16) -> Vec<u8> {
    let mut frame = [&membership::mac_of(group).0[..], &from.0].concat();
    match group {
        IpAddr::V4(ip) => {
            frame.extend([8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 9, 253, 0, 0, 10, 0, 0, 10]);
            frame.extend(ip.octets());
        }
        IpAddr::V6(ip) => {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 26, 253, 9]);
            frame.extend("fe80::1".parse::<Ipv6Addr>().unwrap().octets());
            frame.extend(ip.octets());
        }
    }
    frame.extend(WORD);
    frame.extend(number.to_be_bytes());
    let bytes = frame.len() + 18;
    frame.resize(bytes, 0);
    frame
}

fn send(world: &mut World, host: usize, frames: Vec<Vec<u8>>, interval: Span) {
    let count = Some(frames.len() as u64);
    let plan = RawPlan { frames, interval, count };
    world.with_host(host, |node, now| node.start(Plan::Raw(plan), now)).unwrap();
}

fn report(world: &mut World, host: usize, joined: bool) {
    let v6 = (mac(host), Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1 + host as u16));
    let frames = vec![
        reports::igmp_v2((mac(host), ip(host)), GROUP, joined),
        reports::mld_v2(v6, if joined { 4 } else { 3 }, MDNS),
    ];
    send(world, host, frames, Span::from_micros(10));
}

/// Begins to capture the frames sent to hosts.
fn watch(world: &mut World) {
    for host in 0..world.fabric().hosts.len() {
        let station = world.layout().host_station(host);
        world.engine_mut().capture(WireEnd { station, port: PortNo(0) });
    }
}

/// Number of times that each host was sent each number of the stream since the last call.
fn delivered(world: &mut World) -> BTreeMap<usize, BTreeMap<u16, usize>> {
    let first = world.layout().host_station(0);
    let mut by_host: BTreeMap<usize, BTreeMap<u16, usize>> = BTreeMap::new();
    for one in world.engine_mut().take_captured().into_iter().filter(|one| !one.outbound) {
        let bytes = &one.frame[..];
        let Some(at) = bytes.windows(WORD.len()).position(|window| window == WORD) else {
            continue;
        };
        let number = u16::from_be_bytes([bytes[at + 6], bytes[at + 7]]);
        let of_host = by_host.entry(one.station - first).or_default();
        *of_host.entry(number).or_default() += 1;
    }
    by_host
}

fn stream(world: &mut World, from: usize, group: IpAddr, count: u16) {
    let frames = (0..count).map(|number| datagram(mac(from), group, number)).collect();
    send(world, from, frames, Span::from_millis(5));
    world.run_for(Span::from_millis(5) * u64::from(count) + Span::from_secs(1));
}

/// Asserts that each of these hosts has received each of `count` numbers once, and no other host
/// any.
fn assert_once(world: &mut World, hosts: &[usize], count: u16) {
    let had = delivered(world);
    assert_eq!(had.keys().copied().collect::<Vec<_>>(), hosts);
    for (host, numbers) in had {
        let expected: BTreeMap<u16, usize> = (0..count).map(|number| (number, 1)).collect();
        assert_eq!(numbers, expected, "h{}", host + 1);
    }
}

#[test]
fn twenty_members_on_a_torus_have_each_frame_once_and_nobody_else_any() {
    let mut world = boot(&torus());
    let members: Vec<usize> = (4..24).collect();
    members.iter().for_each(|&host| report(&mut world, host, true));
    world.run_for(Span::from_millis(200));
    watch(&mut world);
    for group in [IpAddr::V4(GROUP), IpAddr::V6(MDNS)] {
        stream(&mut world, 0, group, 100);
        assert_once(&mut world, &members, 100);
        // A member that sends does not receive its own datagrams.
        stream(&mut world, 4, group, 10);
        assert_once(&mut world, &members[1..], 10);
    }
    // Half of them leave, and stay members for two more seconds.
    members[..10].iter().for_each(|&host| report(&mut world, host, false));
    world.run_for(Span::from_secs(3));
    stream(&mut world, 0, GROUP.into(), 20);
    assert_once(&mut world, &members[10..], 20);
    let counters = world.switch(0).unwrap().edges().counters();
    assert_eq!((counters.group_frames, counters.group_limited), (220, 0), "{counters:?}");
    println!("220 frames, {} copies", counters.group_copies);
    world.engine().check_conservation().unwrap();
}

#[test]
fn after_a_failure_on_the_way_members_go_on_and_none_has_a_frame_twice() {
    let mut world = boot(&torus());
    let members: Vec<usize> = (1..21).collect();
    members.iter().for_each(|&host| report(&mut world, host, true));
    world.run_for(Span::from_millis(200));
    stream(&mut world, 0, GROUP.into(), 1);
    watch(&mut world);
    let frames = (0..200).map(|number| datagram(mac(0), GROUP.into(), number)).collect();
    send(&mut world, 0, frames, Span::from_millis(5));
    world.run_for(Span::from_millis(300));
    // The first link of switch 1, which carries copies to several members.
    world.inject(FaultKind::LinkDown(0));
    world.run_for(Span::from_secs(2));
    let had = delivered(&mut world);
    assert_eq!(had.keys().copied().collect::<Vec<_>>(), members);
    let mut lost = 0;
    for (host, numbers) in &had {
        assert!(numbers.values().all(|&times| times == 1), "h{} has one twice", host + 1);
        let late = (100..200).all(|number| numbers.contains_key(&number));
        assert!(late, "h{} has not gone on: {numbers:?}", host + 1);
        lost += 200 - numbers.len();
    }
    println!("lost {lost} of {} copies", 200 * members.len());
    world.engine().check_conservation().unwrap();
}

#[test]
fn nothing_crosses_between_tenants_and_a_broadcast_goes_to_nobody_or_to_all_that_may_have_it() {
    for broadcast in [false, true] {
        let mut builder = torus();
        let mut policy = Policy::default();
        let tenants = ["a", "b"].map(|name| policy.add_tenant(name));
        for host in 0..24 {
            policy.put(Subject::Mac(mac(host)), tenants[host % 2]);
        }
        policy.put(Subject::Mac(mac(24)), Group::Shared);
        builder.fabric.policy = policy;
        builder.fabric.groups.broadcast = broadcast;
        let mut world = boot(&builder);
        (0..25).for_each(|host| report(&mut world, host, true));
        world.run_for(Span::from_millis(200));
        watch(&mut world);
        let of_tenant: Vec<usize> = (1..25).filter(|&host| host % 2 == 0).collect();
        stream(&mut world, 0, GROUP.into(), 10);
        assert_once(&mut world, &of_tenant, 10);
        stream(&mut world, 0, Ipv4Addr::BROADCAST.into(), 10);
        assert_once(&mut world, if broadcast { &of_tenant } else { &[] }, 10);
        world.engine().check_conservation().unwrap();
    }
}

#[test]
fn a_storm_of_one_host_leaves_others_a_bounded_number_of_frames_and_tables_are_bounded() {
    let mut builder = common::ring(4, 2, true);
    builder.fabric.groups.frames_per_second = 100;
    let mut world = boot(&builder);
    (0..8).for_each(|host| report(&mut world, host, true));
    world.run_for(Span::from_millis(200));
    stream(&mut world, 0, GROUP.into(), 1);
    world.run_for(Span::from_secs(2));
    watch(&mut world);
    let frames = (0..20_000).map(|number| datagram(mac(0), GROUP.into(), number)).collect();
    send(&mut world, 0, frames, Span::from_micros(100));
    world.run_for(Span::from_secs(3));
    let had = delivered(&mut world);
    assert_eq!(had.keys().copied().collect::<Vec<_>>(), (1..8).collect::<Vec<_>>());
    for numbers in had.values() {
        assert!((200..=302).contains(&numbers.len()), "{} in two seconds", numbers.len());
    }
    // Frames of another host are not delayed by that, and its reports of a thousand groups fill
    // only the entries of its port.
    let frames = (0..1_000)
        .map(|n| reports::igmp_v2((mac(1), ip(1)), Ipv4Addr::from(0xef02_0000 + n), true));
    send(&mut world, 1, frames.collect(), Span::from_millis(20));
    world.run_for(Span::from_secs(25));
    let members = world.switch(0).unwrap().edge().members().count();
    assert!(members <= 256 + 2, "{members}");
    let known = world.controller().unwrap().controller().vlans().plain().groups_len();
    assert!(known <= 256 + 8 * 2 + 8, "{known}");
    stream(&mut world, 3, GROUP.into(), 5);
    assert_once(&mut world, &[0, 1, 2, 4, 5, 6, 7], 5);
    world.engine().check_conservation().unwrap();
}
