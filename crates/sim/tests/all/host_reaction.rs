//! Hosts with reaction points behind a switch with congestion points: the queue of their common
//! link stays at its set point, the link is full, and nothing is lost or paused.
#![allow(clippy::disallowed_types, reason = "a node must be Send, and a test looks into it")]

use axon_fabric::model::Wire;
use axon_node::{Action, Awaited, Input, Node, PortKind, Shortcuts};
use axon_plane::dcb::DcbConfig;
use axon_plane::notification::CnConfig;
use axon_plane::qcn::RpConfig;
use axon_plane::{Plane, PlaneConfig};
use axon_sim::Engine;
use axon_sim::apps::{Plan, UdpPlan};
use axon_sim::dcb_nic::{HostCn, HostDcb, HostFlowControl};
use axon_sim::links::WireEnd;
use axon_sim::station::StationNode;
use axon_simhost::{self as host, Host, HostConfig};
use axon_wire::cn::CnmFormat;
use axon_wire::priority::{Priority, PrioritySet};
use axon_wire::{Bytes, HopWidth, MacAddr, PortNo, Rate, Route, Span, Time};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};

const RATE: Rate = Rate::gbps(10);
const LATENCY: Span = Span::from_nanos(500);
const SET_POINT: u64 = 50_000;
const SOURCES: usize = 3;
/// Station and switch port of the common destination.
const SINK: usize = SOURCES;
const PORT: u16 = 7;

fn mac(host: usize) -> MacAddr {
    MacAddr([2, 0, 0, 0, 1, host as u8 + 1])
}

fn ip(host: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, host as u8 + 1)
}

/// Measurements at the queue to the sink.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// Byte ticks in the queue.
    area: u128,
    drops: u64,
    cnms: u64,
}

struct Switch {
    plane: Plane,
    last: Time,
    seen: Arc<Mutex<Seen>>,
}

impl Node for Switch {
    fn handle(&mut self, now: Time, mut input: Input, out: &mut Vec<Action>) {
        let sink = PortNo(SINK as u16);
        let mut seen = self.seen.lock().unwrap();
        let queued = u128::from(self.plane.ports().queues().bytes(sink).0);
        seen.area += queued * u128::from(now.since(self.last).ticks());
        self.last = now;
        let start = out.len();
        // There is no control plane for broadcasts: they go to the sink.
        if let Input::Frame { port, frame, .. } = &mut input
            && frame.bytes()[0] & 1 == 1
        {
            let to = if *port == sink { mac(0) } else { mac(SINK) };
            frame.bytes_mut()[..6].copy_from_slice(&to.0);
        }
        self.plane.handle(now, input, out);
        let dropped = |action: &&Action| matches!(action, Action::Dropped { .. });
        seen.drops += out[start..].iter().filter(dropped).count() as u64;
        seen.cnms = self.plane.counters().port(sink).cnms;
    }

    fn deadline(&self) -> Option<Time> {
        self.plane.deadline()
    }
}

impl Shortcuts for Switch {
    fn awaited(&mut self) -> Awaited {
        self.plane.awaited()
    }
}

/// A switch that connects hosts with the sink.
fn plane(cnpvs: PrioritySet) -> Plane {
    let ports = SOURCES as u16 + 1;
    let own = MacAddr([2, 0, 0, 0, 0, 1]);
    let mut cn = CnConfig::new(ports, cnpvs);
    cn.points.iter_mut().for_each(|point| point.set_point = Bytes(SET_POINT));
    let mut dcb = DcbConfig { cn: Some(cn), ..DcbConfig::lossy(vec![RATE; SOURCES + 1], own) };
    dcb.memory.lossy_pool = Bytes(1 << 23);
    let mut config = PlaneConfig::with_ports(ports, own);
    config.dcb = Some(Box::new(dcb));
    config.hop_width = HopWidth::Eight;
    let mut plane = Plane::new(config);
    let sink = PortNo(SINK as u16);
    for port in (0..ports).map(PortNo) {
        plane.set_kind(port, PortKind::Host);
    }
    for source in 0..SOURCES {
        let port = PortNo(source as u16);
        plane.install(port, mac(SINK), &Route::from([sink.0])).unwrap();
        plane.install(sink, mac(source), &Route::from([port.0])).unwrap();
    }
    plane
}

fn host(engine: &mut Engine, number: usize) -> &mut Host {
    match &mut engine.station_mut(number + 1).node {
        StationNode::Host(host) => host,
        _ => panic!("h{number} is no host"),
    }
}

fn engine(cnpvs: PrioritySet, seen: &Arc<Mutex<Seen>>) -> Engine {
    let mut engine = Engine::new(1, None);
    for station in 0..=SOURCES + 1 {
        engine.add_station(&format!("n{station}"));
    }
    for number in 0..=SOURCES {
        let ends = [(0, PortNo(number as u16)), (number + 1, host::PORT)];
        let [a, b] = ends.map(|(station, port)| WireEnd { station, port });
        let (loss_ppm, bit_errors_per_1e15, queue) = (0, 0, Bytes(1 << 40));
        engine.connect(
            a,
            b,
            Wire { rate: RATE, latency: LATENCY, loss_ppm, bit_errors_per_1e15, queue },
        );
    }
    let switch = Switch { plane: plane(cnpvs), last: Time::ZERO, seen: seen.clone() };
    engine.power_on(0, StationNode::Other(Box::new(switch)));
    for number in 0..=SOURCES {
        let mut dcb = HostDcb::new(RATE, HostFlowControl::None, LATENCY, 1518);
        let (config, format) = (RpConfig::for_port(RATE), CnmFormat::default());
        dcb.cn = Some(HostCn { cnpvs, config, format, seed: number as u64, lldp: None });
        let config = HostConfig {
            ipv6: None,
            mac: mac(number),
            fixed: Some((ip(number), 24)),
            is_gateway: false,
            announces: true,
            mtu: 1500,
            vlan: Default::default(),
            seed: number as u64,
            retry: Span::from_millis(100),
            dcb: Some(dcb),
            bond_ports: 0,
        };
        let mut host = Host::new(config);
        host.dcb_nic_mut().unwrap().set_priority(PORT, Priority::new(3).unwrap());
        engine.power_on(number + 1, StationNode::Host(Box::new(host)));
    }
    engine
}

#[test]
fn flows_of_hosts_hold_a_queue_at_its_set_point() {
    let cnpvs = PrioritySet::only(Priority::new(3).unwrap());
    let seen = Arc::new(Mutex::new(Seen::default()));
    let mut engine = engine(cnpvs, &seen);
    let now = engine.now();
    let sink = host(&mut engine, SINK).start(Plan::UdpSink { port: PORT }, now);
    let interval = RATE.time_for(Bytes(1_526));
    let (target, payload) = (ip(SINK), 1_472);
    for source in 0..SOURCES {
        let plan = UdpPlan { target, port: PORT, payload, interval, count: u64::MAX };
        host(&mut engine, source).start(Plan::Udp(plan), now);
        engine.nudge(source + 1);
    }
    engine.run(now + Span::from_millis(300));
    let before = host(&mut engine, SINK).flow_stats(sink).unwrap().received.packets;
    *seen.lock().unwrap() = Seen::default();
    let span = Span::from_millis(100);
    let end = engine.now() + span;
    engine.run(end);
    engine.check_conservation().unwrap();
    let seen = *seen.lock().unwrap();
    let mean = (seen.area / u128::from(span.ticks())) as u64;
    assert!((SET_POINT * 85 / 100..=SET_POINT * 115 / 100).contains(&mean), "{mean} bytes");
    assert_eq!(seen.drops, 0);
    let frames = host(&mut engine, SINK).flow_stats(sink).unwrap().received.packets - before;
    // 1,514 bytes of a frame, its two tags of 4 each, and 24 around it.
    let wire = frames * (1_514 + 8 + 24);
    assert!(wire * 1_000 >= RATE.bytes_in(span).0 * 995, "{frames} frames");
    for source in 0..SOURCES {
        assert!(host(&mut engine, source).dcb_nic().unwrap().cnms() > 10, "host {source}");
    }
}
