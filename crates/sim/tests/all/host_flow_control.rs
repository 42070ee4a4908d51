//! Two hosts on one cable whose NICs have priorities and flow control: a slow reader pauses the
//! sender, the sender's sockets block, and only traffic without flow control is lost.

use axon_fabric::model::Wire;
use axon_node::Drop;
use axon_sim::apps::{AppId, Plan, TcpOptions, TcpPlan, UdpPlan};
use axon_sim::dcb_nic::{HostDcb, HostFlowControl};
use axon_sim::engine::{Engine, Step};
use axon_sim::links::{LinkChange, LinkId, WireEnd};
use axon_sim::station::StationNode;
use axon_simhost::{self as host, Host, HostConfig};
use axon_wire::priority::{Priority, PrioritySet};
use axon_wire::{Bytes, MacAddr, Rate, Span};
use std::net::Ipv4Addr;

const RATE: Rate = Rate::gbps(10);
const LATENCY: Span = Span::from_micros(1);
/// A port whose frames have priority 3, and one whose frames have 0.
const LOSSLESS: u16 = 7;
const LOSSY: u16 = 8;
/// A datagram with all its headers fills 1,000 bytes, its FCS included.
const PAYLOAD: usize = 1_000 - 4 - 42;

fn three() -> Priority {
    Priority::new(3).unwrap()
}

fn ip(host: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, host as u8 + 1)
}

/// Two hosts; the second reads no faster than `reads`.
fn cable(flow_control: HostFlowControl, reads: Rate) -> Engine {
    let mut engine = Engine::new(1, None);
    for name in ["h1", "h2"] {
        engine.add_station(name);
    }
    let end = |station| WireEnd { station, port: host::PORT };
    let wire = Wire {
        rate: RATE,
        latency: LATENCY,
        loss_ppm: 0,
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
            seed: station as u64,
            retry: Span::from_millis(100),
            dcb: Some(HostDcb::new(RATE, flow_control, LATENCY, 1518)),
            bond_ports: 0,
        };
        let mut host = Host::new(config);
        host.dcb_nic_mut().unwrap().set_priority(LOSSLESS, three());
        engine.power_on(station, StationNode::Host(Box::new(host)));
    }
    run(&mut engine, Span::from_millis(1));
    host(&mut engine, 1).rx_ring_mut().set_rate(Some(reads));
    engine
}

fn host(engine: &mut Engine, station: usize) -> &mut Host {
    match &mut engine.station_mut(station).node {
        StationNode::Host(host) => host,
        _ => panic!("station {station} is no host"),
    }
}

fn run(engine: &mut Engine, span: Span) {
    let limit = engine.now() + span;
    while engine.step(limit) != Step::Limit {}
    engine.check_conservation().unwrap();
}

/// Starts a stream of datagrams at line rate; returns its sender and its receiver.
fn blast(engine: &mut Engine, port: u16) -> (AppId, AppId) {
    let now = engine.now();
    let sink = host(engine, 1).start(Plan::UdpSink { port }, now);
    let interval = RATE.time_for(Bytes(1_000 + 20));
    let plan = UdpPlan { target: ip(1), port, payload: PAYLOAD, interval, count: u64::MAX };
    let source = host(engine, 0).start(Plan::Udp(plan), now);
    engine.nudge(0);
    (source, sink)
}

fn dropped(engine: &Engine, reason: Drop) -> u64 {
    engine.accounts().dropped[reason as usize]
}

/// Bytes that the sink has counted in `span`, in thousandths of `rate`.
fn part(engine: &mut Engine, sink: AppId, rate: Rate, span: Span) -> u64 {
    let Bytes(payload) = host(engine, 1).flow_stats(sink).unwrap().received.bytes;
    // The reader reads whole frames, without FCS.
    let frames = payload / PAYLOAD as u64;
    frames * (PAYLOAD as u64 + 42) * 1000 / rate.bytes_in(span).0
}

#[test]
fn a_slow_reader_stops_its_sender_and_nothing_is_lost() {
    let reads = Rate::mbps(8 * 538);
    let of_three = HostFlowControl::Pfc(PrioritySet::only(three()));
    for flow_control in [of_three, HostFlowControl::Pause] {
        let mut engine = cable(flow_control, reads);
        let (source, sink) = blast(&mut engine, LOSSLESS);
        let span = Span::from_millis(20);
        run(&mut engine, span);
        for reason in [Drop::QueueFull, Drop::HeadroomFull] {
            assert_eq!(dropped(&engine, reason), 0, "{flow_control:?}");
        }
        let part = part(&mut engine, sink, reads, span);
        assert!((995..=1000).contains(&part), "{part} of 1000, {flow_control:?}");
        let (sent, received) = (
            host(&mut engine, 0).flow_stats(source).unwrap().sent_packets,
            host(&mut engine, 1).flow_stats(sink).unwrap().received.packets,
        );
        // The socket's share of the NIC, the ring, and its headroom.
        let waits = sent - received;
        assert!(waits < 128 + 75, "{waits} wait: the socket does not run ahead");
        let group = if flow_control == of_three { three() } else { Priority::ZERO };
        let (asked, _) = host(&mut engine, 1).dcb_nic().unwrap().counts(group);
        let (_, heard) = host(&mut engine, 0).dcb_nic().unwrap().counts(group);
        assert!(asked > 100 && asked - heard <= 1, "{asked} sent, {heard} received");
    }
}

#[test]
fn a_socket_of_one_frame_does_not_run_ahead_of_the_wire() {
    let reads = Rate::mbps(8 * 538);
    let mut engine = cable(HostFlowControl::Pfc(PrioritySet::only(three())), reads);
    host(&mut engine, 0).dcb_nic_mut().unwrap().set_socket_frames(1);
    let (source, sink) = blast(&mut engine, LOSSLESS);
    let span = Span::from_millis(20);
    run(&mut engine, span);
    let part = part(&mut engine, sink, reads, span);
    assert!((995..=1000).contains(&part), "{part} of 1000: the ring is never empty");
    let sent = host(&mut engine, 0).flow_stats(source).unwrap().sent_packets;
    let waits = sent - host(&mut engine, 1).flow_stats(sink).unwrap().received.packets;
    assert!(waits <= 1 + 75, "{waits} wait: one at the socket, the others in the ring");
}

#[test]
fn without_flow_control_what_the_reader_cannot_take_is_lost() {
    let reads = Rate::mbps(8 * 538);
    let mut engine = cable(HostFlowControl::None, reads);
    let (source, sink) = blast(&mut engine, LOSSLESS);
    run(&mut engine, Span::from_millis(20));
    let sent = host(&mut engine, 0).flow_stats(source).unwrap().sent_packets;
    let received = host(&mut engine, 1).flow_stats(sink).unwrap().received.packets;
    let lost = dropped(&engine, Drop::QueueFull);
    assert!(lost * 100 > sent * 50, "{sent} sent, {received} received, {lost} lost");
    assert!(sent - received - lost < 128 + 512 + 2, "{sent} sent, {received}, {lost} lost");
}

#[test]
fn a_stopped_priority_does_not_hold_up_another() {
    let of_three = HostFlowControl::Pfc(PrioritySet::only(three()));
    let mut engine = cable(of_three, Rate::mbps(4_000));
    let (_, lossless) = blast(&mut engine, LOSSLESS);
    let (_, lossy) = blast(&mut engine, LOSSY);
    run(&mut engine, Span::from_millis(20));
    assert_eq!(dropped(&engine, Drop::HeadroomFull), 0);
    assert!(dropped(&engine, Drop::QueueFull) > 1_000, "priority 0 has no flow control");
    for sink in [lossless, lossy] {
        let frames = host(&mut engine, 1).flow_stats(sink).unwrap().received.packets;
        assert!(frames > 1_000, "{frames}");
    }
}

#[test]
fn a_stop_ends_with_its_link() {
    let of_three = HostFlowControl::Pfc(PrioritySet::only(three()));
    let mut engine = cable(of_three, Rate::mbps(20));
    let (_, sink) = blast(&mut engine, LOSSLESS);
    run(&mut engine, Span::from_millis(2));
    let now = engine.now();
    assert!(host(&mut engine, 0).dcb_nic().unwrap().paused(now).contains(three()));
    engine.change_link(LinkId(0), LinkChange::Cut(true));
    engine.change_link(LinkId(0), LinkChange::Cut(false));
    assert!(host(&mut engine, 0).dcb_nic().unwrap().paused(now).is_empty());
    host(&mut engine, 1).rx_ring_mut().set_rate(None);
    let before = host(&mut engine, 1).flow_stats(sink).unwrap().received.packets;
    run(&mut engine, Span::from_millis(150));
    let after = host(&mut engine, 1).flow_stats(sink).unwrap().received.packets;
    assert!(after - before > 10_000, "{before}, then {after}");
}

#[test]
fn tcp_waits_for_a_slow_reader_and_sends_nothing_twice() {
    let retransmits = |flow_control| {
        let mut engine = cable(flow_control, Rate::mbps(2_000));
        let options = TcpOptions { buffer_bytes: 1 << 20, ..TcpOptions::default() };
        let now = engine.now();
        let listens = Plan::TcpSink { port: LOSSLESS, options };
        let sink = host(&mut engine, 1).start(listens, now);
        let plan = TcpPlan { target: ip(1), port: LOSSLESS, bytes: Some(5_000_000), options };
        let source = host(&mut engine, 0).start(Plan::Tcp(plan), now);
        engine.nudge(0);
        run(&mut engine, Span::from_secs(10));
        assert_eq!(host(&mut engine, 1).flow_stats(sink).unwrap().received.bytes.0, 5_000_000);
        let stats = host(&mut engine, 0).flow_stats(source).unwrap();
        assert_eq!(stats.completed, 1, "{flow_control:?}");
        stats.retransmits
    };
    assert_eq!(retransmits(HostFlowControl::Pfc(PrioritySet::only(three()))), 0);
    assert!(retransmits(HostFlowControl::None) > 0, "a megabyte does not fit the ring");
}
