//! Two hosts on one cable without a switch: links, hosts and accounts by themselves.

use axon_fabric::model::Wire;
use axon_sim::apps::{Plan, UdpPlan};
use axon_sim::engine::{Engine, Step};
use axon_sim::links::{LinkChange, LinkId, Loss, WireEnd};
use axon_sim::station::StationNode;
use axon_sim::{PingPlan, PingStats};
use axon_simhost::{self as host, Host, HostConfig};
use axon_wire::{Bytes, MacAddr, Rate, Span, Time};
use std::net::Ipv4Addr;

const CABLE: LinkId = LinkId(0);

fn ip(host: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, host as u8 + 1)
}

fn cable(seed: u64, loss_ppm: u32) -> Engine {
    let mut engine = Engine::new(seed, None);
    for name in ["h1", "h2"] {
        engine.add_station(name);
    }
    let end = |station| WireEnd { station, port: host::PORT };
    let wire = Wire {
        rate: Rate::gbps(1),
        latency: Span::from_micros(1),
        loss_ppm,
        bit_errors_per_1e15: 0,
        queue: Bytes(1 << 17),
    };
    engine.connect(end(0), end(1), wire);
    for station in 0..2 {
        let config = HostConfig {
            ipv6: None,
            mac: MacAddr([2, 0, 0, 0, 0, station as u8 + 1]),
            fixed: Some((ip(station), 24)),
            is_gateway: false,
            announces: true,
            mtu: 1500,
            vlan: Default::default(),
            seed: seed + station as u64,
            retry: Span::from_millis(100),
            dcb: None,
            bond_ports: 0,
        };
        let host = Host::new(config);
        engine.power_on(station, StationNode::Host(Box::new(host)));
    }
    engine
}

fn host(engine: &mut Engine, station: usize) -> &mut Host {
    match &mut engine.station_mut(station).node {
        StationNode::Host(host) => host,
        _ => panic!("station {station} is no host"),
    }
}

fn ping(engine: &mut Engine, from: usize, plan: PingPlan) -> usize {
    let now = engine.now();
    let number = host(engine, from).ping(plan, now);
    engine.nudge(from);
    number
}

fn stats(engine: &mut Engine, from: usize, number: usize) -> PingStats {
    host(engine, from).ping_stats(number).unwrap()
}

fn run(engine: &mut Engine, span: Span) {
    let limit = engine.now() + span;
    while engine.step(limit) != Step::Limit {}
    engine.check_conservation().unwrap();
}

#[test]
fn two_hosts_on_a_cable_answer_each_other_to_the_tick() {
    let mut engine = cable(1, 0);
    let number = ping(&mut engine, 0, PingPlan::steady(ip(1), Span::from_millis(10), 10));
    run(&mut engine, Span::from_secs(2));
    let stats = stats(&mut engine, 0, number);
    assert_eq!((stats.sent, stats.received, stats.done), (10, 10, true));
    // 98 bytes and 12 of preamble and FCS at 8 ns, and 1 us of propagation, both ways.
    assert_eq!(stats.rtt_min, Some(Span::from_nanos(2 * (110 * 8 + 1000))));
}

#[test]
fn a_cut_loses_what_is_in_flight_and_carrier_brings_it_back() {
    let mut engine = cable(2, 0);
    let number = ping(&mut engine, 0, PingPlan::steady(ip(1), Span::from_millis(1), 1000));
    run(&mut engine, Span::from_micros(300_001));
    engine.change_link(CABLE, LinkChange::Cut(true));
    run(&mut engine, Span::from_millis(200));
    engine.change_link(CABLE, LinkChange::Cut(false));
    run(&mut engine, Span::from_secs(3));
    let stats = stats(&mut engine, 0, number);
    assert!(stats.done && (790..=805).contains(&stats.received), "{stats:?}");
    assert!(stats.gap_max >= Span::from_millis(195), "{stats:?}");
    let lost: u64 = (0..2).map(|side| engine.fates(CABLE, side).lost[Loss::Cut as usize]).sum();
    assert_eq!(lost, 1, "one frame was on the wire");
}

#[test]
fn a_silent_cable_keeps_carrier_and_loses_everything() {
    let mut engine = cable(3, 0);
    run(&mut engine, Span::from_millis(1));
    engine.change_link(CABLE, LinkChange::Silent([true; 2]));
    let number = ping(&mut engine, 0, PingPlan::until_reply(ip(1), Span::from_millis(50), 5));
    run(&mut engine, Span::from_secs(1));
    assert_eq!(stats(&mut engine, 0, number).received, 0);
    assert!(engine.links()[0].carrier);
    assert!(engine.fates(CABLE, 0).lost[Loss::Silent as usize] > 0);
}

#[test]
fn the_same_seed_gives_the_same_trace_and_another_seed_another() {
    let hash = |seed| {
        let mut engine = cable(seed, 100_000);
        ping(&mut engine, 0, PingPlan::steady(ip(1), Span::from_millis(1), 500));
        ping(&mut engine, 1, PingPlan::steady(ip(0), Span::from_millis(1), 500));
        run(&mut engine, Span::from_secs(3));
        (engine.trace_hash(), engine.events())
    };
    assert_eq!(hash(4), hash(4));
    assert_ne!(hash(4), hash(5));
}

#[test]
fn datagrams_fill_the_wire_and_no_more() {
    let mut engine = cable(6, 0);
    let now = engine.now();
    let sink = host(&mut engine, 1).start(Plan::UdpSink { port: 7 }, now);
    // Frames of 1538 bytes on the wire take 12.304 us at 1 Gb/s; one is offered every 10 us.
    let plan = UdpPlan {
        target: ip(1),
        port: 7,
        payload: 1472,
        interval: Span::from_micros(10),
        count: 10_000,
    };
    host(&mut engine, 0).start(Plan::Udp(plan), now);
    engine.nudge(0);
    run(&mut engine, Span::from_millis(100));
    let received = &host(&mut engine, 1).flow_stats(sink).unwrap().received;
    let (datagrams, payload) = (received.packets, received.bytes);
    assert!((8120..=8127).contains(&datagrams), "{datagrams} in 100 ms");
    assert_eq!(payload, Bytes(datagrams * 1472));
}

#[test]
fn a_host_that_restarts_forgets_and_its_frames_are_accounted_for() {
    let mut engine = cable(7, 0);
    ping(&mut engine, 0, PingPlan::steady(ip(1), Span::from_millis(1), 100));
    run(&mut engine, Span::from_millis(50));
    engine.power_off(1);
    assert!(!engine.links()[0].carrier);
    run(&mut engine, Span::from_millis(50));
    assert_eq!(engine.station(1).unwrap().next_incarnation(), 2);
    assert_eq!(engine.now(), Time::ZERO + Span::from_millis(100));
}
