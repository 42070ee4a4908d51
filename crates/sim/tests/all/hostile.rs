//! Hostile hosts: their traffic at line rate neither delays the set-ups of others nor takes a link
//! down.

use crate::common;
use axon_fabric::model::Fabric;
use axon_node::{Dataplane, Drop};
use axon_sim::apps::{ArpPlan, Histogram, Plan, RawPlan, UdpPlan};
use axon_sim::{DataplaneKind, Setup, World};
use axon_wire::header::{self, PacketType};
use axon_wire::mac_control::{MacControl, Pfc, Quanta};
use axon_wire::priority::PrioritySet;
use axon_wire::vlan::VlanTag;
use axon_wire::{HopWidth, MacAddr, PortNo, Priority, Span, Time, host_frame};
use oorandom::Rand64;
use std::net::Ipv4Addr;

/// Hosts at each edge; the last of them is the hostile one.
const PER_EDGE: usize = 4;

fn random_mac(random: &mut Rand64) -> MacAddr {
    let [.., a, b, c, d] = random.rand_u64().to_be_bytes();
    MacAddr([2, 0x66, a, b, c, d])
}

fn random_bytes(random: &mut Rand64, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|_| random.rand_u64() as u8).collect()
}

/// A DHCP DISCOVER of this length as an Ethernet frame.
fn discover(mac: MacAddr, transaction: u32, bytes: usize) -> Vec<u8> {
    common::dhcp(mac, transaction, bytes, &[53, 1, 1])
}

/// An ARP request from a host that may not exist, for another that may not exist.
fn arp_request(random: &mut Rand64, from: MacAddr) -> Vec<u8> {
    let ip = |random: &mut Rand64| Ipv4Addr::from(0x0a00_0000 | random.rand_u64() as u32 & 0xffff);
    host_frame::request(from, ip(random), MacAddr::BROADCAST, ip(random))
}

/// Frames that a hostile host repeats: ARP and DHCP under its own MAC and under others, LLDP,
/// pauses of all priorities, frames that look like Axon's, and garbage.
fn hostile_frames(seed: u64, own: MacAddr) -> Vec<Vec<u8>> {
    let mut random = Rand64::new(u128::from(seed));
    let mut frames = Vec::new();
    for number in 0..300 {
        let random = &mut random;
        let mac = if number % 2 == 0 { own } else { random_mac(random) };
        frames.push(arp_request(random, mac));
        frames.push(discover(mac, number, 300 + 4 * number as usize));
        let lldp = [&[1, 0x80, 0xc2, 0, 0, 0x0e][..], &mac.0, &[0x88, 0xcc]].concat();
        frames.push([lldp, random_bytes(random, 200)].concat());
        let hello = [&[1, 0x80, 0xc2, 0, 0, 0x0e][..], &mac.0, &random_bytes(random, 120)].concat();
        frames.push(hello);
        frames.push(MacControl::Pfc(Pfc::of(PrioritySet::ALL, Quanta::MAX)).emit(mac).to_vec());
        frames.push(MacControl::Pause(Quanta::MAX).emit(mac).to_vec());
        let mut packet = vec![0; 40];
        let route = [PortNo(number as u16 % 5), PortNo::CONTROL];
        let length =
            header::emit(&mut packet, HopWidth::Eight, PacketType::Control, &route, &[]).unwrap();
        packet.truncate(length);
        packet.extend(random_bytes(random, 80));
        frames.push(packet);
        let bytes = 14 + random.rand_range(0..1500) as usize;
        frames.push(random_bytes(random, bytes));
        let to_nobody = [&random_mac(random).0[..], &mac.0, &[8, 0]].concat();
        frames.push([to_nobody, random_bytes(random, 1000)].concat());
    }
    frames
}

/// The hostile hosts of a fabric.
fn hostile(fabric: &Fabric) -> impl Iterator<Item = usize> {
    (0..fabric.hosts.len()).filter(|host| host % PER_EDGE == PER_EDGE - 1)
}

fn good(fabric: &Fabric) -> Vec<usize> {
    (0..fabric.hosts.len()).filter(|host| host % PER_EDGE != PER_EDGE - 1).collect()
}

/// Neighbours of all switches.
fn neighbours(world: &World) -> usize {
    let switches = (0..world.fabric().switches.len()).filter_map(|switch| world.switch(switch));
    switches.map(|switch| switch.discovery().neighbours().count()).sum()
}

/// Times of the set-ups of honest hosts, which request each other one after the other, and whether
/// all links between switches stayed up meanwhile.
fn set_ups(fabric: &Fabric, attacked: bool) -> (Histogram, bool) {
    let mut world = World::new(fabric, 1);
    common::await_addresses(&mut world);
    world.run_for(Span::from_millis(1500));
    let all = neighbours(&world);
    for host in hostile(fabric).filter(|_| attacked) {
        let frames = hostile_frames(host as u64, fabric.hosts[host].mac);
        // A shorter interval than any frame takes at 1 Gb/s, so that the NIC is always full.
        let plan = RawPlan { frames, interval: Span::from_nanos(1000), count: None };
        world.with_host(host, |node, now| node.start(Plan::Raw(plan), now)).unwrap();
    }
    world.run_for(Span::from_millis(200));
    let (hosts, now) = (good(fabric), world.now());
    let mut asked = Vec::new();
    for (place, &host) in hosts.iter().enumerate() {
        let others = hosts[place + 1..].iter().chain(&hosts[..place]);
        let targets = others.map(|&other| world.address(other).unwrap()).collect();
        let plan = ArpPlan { targets, interval: Span::from_millis(10) };
        // Their starts are staggered.
        let start = now + Span::from_micros(137 * place as u64);
        asked.push((
            host,
            world.with_host(host, |node, _| node.start(Plan::Arp(plan), start)).unwrap(),
        ));
    }
    let end = now + Span::from_secs(2);
    let mut whole = true;
    let answered = world.run_until_true(end, |world| {
        whole &= neighbours(world) == all;
        asked.iter().all(|&(host, id)| {
            let stats = world.host(host).and_then(|host| host.flow_stats(id));
            stats.is_some_and(|stats| stats.done.is_some())
        })
    });
    assert!(answered, "set-ups without an answer");
    let mut times = Histogram::default();
    for (host, id) in asked {
        times.merge(&world.host(host).unwrap().flow_stats(id).unwrap().times);
    }
    (times, whole)
}

const PLAIN: &str = "name: hostile
topology: { fat_tree: { k: 4, hosts_per_edge: 4 } }
links: { rate: 1Gbps, latency: 1us }
";
const LOSSLESS: &str = "dcb:
  classes:
  - { priorities: [0, 1, 2, 5, 6], ets: 40 }
  - { priorities: [3, 4], ets: 60, lossless: true }
  - { priorities: [7] }
  watchdog: { detection: 50ms, restoration: 50ms }
  dcbx: {}
";

#[test]
fn one_hostile_host_per_edge_slows_set_ups_of_others_by_less_than_a_tenth() {
    for (name, text) in [("plain", PLAIN.to_owned()), ("lossless", PLAIN.to_owned() + LOSSLESS)] {
        let fabric = common::fabric(&text);
        let (quiet, _) = set_ups(&fabric, false);
        let (attacked, whole) = set_ups(&fabric, true);
        assert!(whole, "{name}: a neighbour was lost");
        assert_eq!(attacked.count(), quiet.count());
        // In thousandths.
        let ratio = |of: fn(&Histogram) -> Option<Span>| {
            of(&attacked).unwrap().ticks() * 1000 / of(&quiet).unwrap().ticks()
        };
        let mean = ratio(Histogram::mean);
        let slowest = ratio(|times| times.quantile(990));
        println!(
            "{name}: {} set-ups, mean {} and {} under attack: {mean} thousandths; of 99 in 100 \
             {slowest} thousandths",
            quiet.count(),
            quiet.mean().unwrap(),
            attacked.mean().unwrap(),
        );
        assert!(mean < 1100, "{name}: {mean} thousandths as long");
        assert!(slowest < 1100, "{name}: {slowest} thousandths as long, 99 in 100");
    }
}

/// Two switches whose link is slower than the rate of eight hosts to the controller behind it.
const SLOW: &str = "name: slow
topology:
  listed:
    switches: [s1, s2]
    hosts: { h1: s1, h2: s1, h3: s1, h4: s1, h5: s1, h6: s1, h7: s1, h8: s1, h9: s2 }
    links: [{ between: [s1, s2], rate: 10Mbps }]
links: { rate: 1Gbps }
controller: { at: s2 }
timers: { hello: 20ms, heartbeat: 20ms }
";

#[test]
fn a_flood_of_dhcp_does_not_delay_heartbeats_until_a_link_is_declared_dead() {
    for dataplane in [DataplaneKind::Software, DataplaneKind::Reference] {
        let fabric = common::fabric(SLOW);
        let mut world = World::begin(&fabric, Setup { seed: 1, dataplane, ..Setup::default() });
        common::await_addresses(&mut world);
        let (all, now) = (neighbours(&world), world.now());
        for host in 0..8 {
            let mac = fabric.hosts[host].mac;
            let frames = (0..8).map(|number| discover(mac, number, 1400)).collect();
            let plan = RawPlan { frames, interval: Span::from_micros(12), count: None };
            world.with_host(host, |node, now| node.start(Plan::Raw(plan), now)).unwrap();
        }
        let lost = world.run_until_true(now + Span::from_secs(3), |w| neighbours(w) != all);
        assert!(!lost, "{dataplane}: a neighbour was lost at {}", world.now());
        let s1 = world.switch(0).unwrap();
        assert!(s1.plane().counters().total().dropped(Drop::PuntLimit) > 10_000);
    }
}

/// Both hosts at s1 send to h3; h2 chooses the highest priority.
const SHARED: &str = "name: shared
topology:
  listed:
    switches: [s1, s2]
    hosts: { h1: s1, h2: s1, h3: s2 }
    links: [[s1, s2]]
links: { rate: 1Gbps }
dcb:
  classes:
  - { priorities: [0, 1, 2, 5] }
  - { priorities: [3, 4], lossless: true }
  - { priorities: [6, 7] }
";

#[test]
fn a_host_that_chooses_the_highest_priority_has_its_share_and_no_more() {
    let fabric = common::fabric(SHARED);
    let mut world = World::new(&fabric, 1);
    common::await_addresses(&mut world);
    world.run_for(Span::from_millis(200));
    let (target, now) = (world.address(2).unwrap(), world.now());
    let tag = VlanTag::of_priority(Priority::MAX).emit();
    let [to, from] = [2, 1].map(|host: usize| fabric.hosts[host].mac.0);
    let mut frame = [&to[..], &from, &tag, &[8, 0]].concat();
    frame.resize(1500, 0x55);
    let plan = RawPlan { frames: vec![frame], interval: Span::from_micros(12), count: None };
    world.with_host(1, |node, now| node.start(Plan::Raw(plan), now)).unwrap();
    let sink = world.with_host(2, |node, now| node.start(Plan::UdpSink { port: 9 }, now)).unwrap();
    // 400 Mb/s, on a link of which each may use half. Both fill one lossy queue, which admits
    // frames regardless of their sender.
    let (payload, interval) = (1472, Span::from_micros(30));
    let plan = UdpPlan { target, port: 9, payload, interval, count: 10_000 };
    let start = now + Span::from_millis(50);
    let sender = world.with_host(0, |node, _| node.start(Plan::Udp(plan), start)).unwrap();
    world.run_until(start + Span::from_millis(320));
    let sent = world.host(0).unwrap().flow_stats(sender).unwrap().sent_packets;
    let received = world.host(2).unwrap().flow_stats(sink).unwrap().received.packets;
    assert!(sent == 10_000 && received > 4_000, "{received} of {sent}");
    let counters = world.switch(0).unwrap().plane().counters().port(fabric.hosts[1].port);
    assert!(counters.regenerated > 10_000, "{}", counters.regenerated);
}

#[test]
fn raw_frames_leave_as_they_are_in_order_and_at_their_interval() {
    let fabric =
        common::fabric("name: raw\ntopology: {line: {switches: 1, hosts_per_switch: 2}}\n");
    let port = axon_sim::capture::port_by_name(&fabric, "h1-p0").unwrap();
    let setup = Setup { seed: 1, capture: vec![port], ..Setup::default() };
    let mut world = World::begin(&fabric, setup);
    common::await_addresses(&mut world);
    world.engine_mut().take_captured();
    let frames: Vec<Vec<u8>> = [60, 61, 900].map(|bytes| vec![bytes as u8; bytes]).into();
    let plan = RawPlan { frames: frames.clone(), interval: Span::from_micros(20), count: Some(4) };
    let id = world.with_host(0, |node, now| node.start(Plan::Raw(plan), now)).unwrap();
    world.run_for(Span::from_millis(1));
    let captured = world.engine_mut().take_captured();
    let sent: Vec<(Time, &[u8])> = captured
        .iter()
        .filter(|one| one.outbound && frames.contains(&one.frame.to_vec()))
        .map(|one| (one.at, &one.frame[..]))
        .collect();
    let expected = [0, 1, 2, 0].map(|number| &frames[number][..]);
    assert_eq!(sent.iter().map(|one| one.1).collect::<Vec<_>>(), expected);
    assert_eq!(sent[3].0, sent[0].0 + Span::from_micros(60));
    let stats = world.host(0).unwrap().flow_stats(id).unwrap();
    assert_eq!((stats.sent_packets, stats.completed, stats.failed), (4, 1, 0));
}
