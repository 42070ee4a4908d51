//! Congestion notification through two switches, frame by frame: hosts with reaction points hold
//! the queue of a bottleneck at its set point, at either switch and with any changes of the link,
//! and nothing is lost.
#![allow(clippy::disallowed_types, reason = "a node must be Send, and a test looks into it")]

use axon_fabric::model::Wire;
use axon_node::{Action, Awaited, Input, Node, PortKind, Shortcuts};
use axon_plane::dcb::DcbConfig;
use axon_plane::notification::CnConfig;
use axon_plane::qcn::{RateLimiter, RpConfig};
use axon_plane::{Plane, PlaneConfig};
use axon_sim::Engine;
use axon_sim::links::{LinkChange, LinkId, WireEnd};
use axon_sim::station::StationNode;
use axon_wire::cn::{CnTag, CnmFormat, CnmFrame};
use axon_wire::priority::{Priority, PrioritySet};
use axon_wire::vlan::VlanTag;
use axon_wire::{Bytes, FrameBuf, HopWidth, MacAddr, PortNo, Rate, Route, Span, Time};
use std::sync::{Arc, Mutex};

const SINK: MacAddr = MacAddr([2, 0, 0, 0, 1, 0xff]);
/// Length of a frame, without FCS.
const FRAME_BYTES: u64 = 1_500;
/// `cpMinSampleBase` and its jitter: maximum bytes queued before the first sample.
const SAMPLE_BYTES_MAX: u64 = 150_000 * 115 / 100;
/// Preamble, FCS and gap.
const OVERHEAD: u64 = 24;

/// A host that always has frames to send, in priority 3, and acts on CNMs.
struct Source {
    limiter: RateLimiter,
    frame: Vec<u8>,
    busy: bool,
    ready: Time,
    up: bool,
}

impl Source {
    fn new(number: u16, config: RpConfig, seed: u64) -> Source {
        let mac = MacAddr([2, 0, 0, 0, 1, number as u8]);
        let mut frame = [SINK.0, mac.0].concat();
        let priority = Priority::new(3).unwrap();
        frame.extend_from_slice(&VlanTag::of_priority(priority).emit());
        frame.extend_from_slice(&CnTag { flow: number }.emit());
        frame.extend_from_slice(&[0x08, 0x00]);
        frame.resize(FRAME_BYTES as usize, 0);
        let limiter = RateLimiter::new(config, Bytes(0), seed << 8 | u64::from(number)).unwrap();
        Source { limiter, frame, busy: false, ready: Time::ZERO, up: false }
    }
}

impl Node for Source {
    fn handle(&mut self, now: Time, input: Input, out: &mut Vec<Action>) {
        match input {
            Input::Frame { frame, .. } => {
                let message = CnmFrame::parse(frame.bytes(), &CnmFormat::default()).unwrap();
                assert_eq!(message.destination.0, self.frame[6..12]);
                assert_eq!(message.cn.map(|tag| tag.emit()[..] == self.frame[16..20]), Some(true));
                self.limiter.notified(now, message.cnm.feedback);
            }
            Input::TxDone { .. } => self.busy = false,
            Input::Link { up, .. } => self.up = up,
            Input::Timeout | Input::Command(_) => {}
        }
        self.ready = self.limiter.ready_at(now);
        if self.busy || !self.up || self.ready > now {
            return;
        }
        self.busy = true;
        self.limiter.sent(now, Bytes(FRAME_BYTES));
        let (port, frame) = (PortNo(0), FrameBuf::new(&self.frame));
        out.push(Action::Transmit { port, frame, complete_at: now, intact: true });
    }

    fn deadline(&self) -> Option<Time> {
        let timer = self.limiter.deadline().unwrap_or(self.ready);
        (!self.busy && self.up).then_some(self.ready.min(timer))
    }
}

impl Shortcuts for Source {}

/// Measurements at a bottleneck since the last call.
#[derive(Clone, Debug, Default)]
struct Seen {
    /// Byte ticks in the queue.
    area: u128,
    longest: u64,
    cnms: u64,
    drops: u64,
    sink_bytes: u64,
}

struct Sink(Arc<Mutex<Seen>>);

impl Node for Sink {
    fn handle(&mut self, _: Time, input: Input, _: &mut Vec<Action>) {
        if let Input::Frame { frame, .. } = input {
            self.0.lock().unwrap().sink_bytes += frame.bytes().len() as u64 + OVERHEAD;
        }
    }

    fn deadline(&self) -> Option<Time> {
        None
    }
}

impl Shortcuts for Sink {}

/// A data plane whose queue at one port is measured.
struct Switch {
    plane: Plane,
    egress: PortNo,
    last: Time,
    cnms: u64,
    seen: Arc<Mutex<Seen>>,
}

impl Node for Switch {
    fn handle(&mut self, now: Time, input: Input, out: &mut Vec<Action>) {
        let mut seen = self.seen.lock().unwrap();
        let queued = self.plane.ports().queues().bytes(self.egress).0;
        seen.area += u128::from(queued) * u128::from(now.since(self.last).ticks());
        self.last = now;
        let start = out.len();
        self.plane.handle(now, input, out);
        seen.longest = seen.longest.max(self.plane.ports().queues().bytes(self.egress).0);
        let dropped = |action: &&Action| matches!(action, Action::Dropped { .. });
        seen.drops += out[start..].iter().filter(dropped).count() as u64;
        let cnms = self.plane.counters().port(self.egress).cnms;
        seen.cnms += cnms - std::mem::replace(&mut self.cnms, cnms);
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

/// Sources at the first switch, a link, the second switch, a sink.
struct World {
    engine: Engine,
    /// Link to the sink.
    last_link: LinkId,
    /// Queues towards the sink, of the two switches.
    seen: [Arc<Mutex<Seen>>; 2],
    set_point: u64,
}

fn switch(ports: &[PortKind], set_point: u64, rate: Rate, mac: MacAddr) -> Plane {
    let count = ports.len() as u16;
    let mut cn = CnConfig::new(count, PrioritySet::only(Priority::new(3).unwrap()));
    cn.points.iter_mut().for_each(|point| point.set_point = Bytes(set_point));
    let mut dcb = DcbConfig { cn: Some(cn), ..DcbConfig::lossy(vec![rate; ports.len()], mac) };
    dcb.memory.lossy_pool = Bytes(1 << 23);
    let mut config = PlaneConfig::with_ports(count, mac);
    config.dcb = Some(Box::new(dcb));
    let mut plane = Plane::new(config);
    for (port, kind) in ports.iter().enumerate() {
        plane.set_kind(PortNo(port as u16), *kind);
    }
    plane
}

impl World {
    fn new(sources: u16, kilobytes: u64, rp: RpConfig, seed: u64) -> World {
        let (rate, set_point) = (rp.max_rate, kilobytes * 1_000);
        let mut first = vec![PortKind::Host; usize::from(sources)];
        first.push(PortKind::Axon);
        let macs = [1, 2].map(|last| MacAddr([2, 0, 0, 0, 0, last]));
        let mut near = switch(&first, set_point, rate, macs[0]);
        for port in 0..sources {
            near.install(PortNo(port), SINK, &Route::from([sources, 1])).unwrap();
        }
        let far = switch(&[PortKind::Axon, PortKind::Host], set_point, rate, macs[1]);
        let mut engine = Engine::new(seed, None);
        let stations = usize::from(sources) + 3;
        (0..stations).for_each(|station| _ = engine.add_station(&format!("n{station}")));
        let mut connect = |a: (usize, u16), b: (usize, u16)| {
            let [a, b] = [a, b].map(|(station, port)| WireEnd { station, port: PortNo(port) });
            let (loss_ppm, bit_errors_per_1e15, queue) = (0, 0, Bytes(1 << 40));
            let latency = Span::from_micros(1);
            engine.connect(a, b, Wire { rate, latency, loss_ppm, bit_errors_per_1e15, queue })
        };
        (0..sources).for_each(|source| _ = connect((0, source), (usize::from(source) + 3, 0)));
        connect((0, sources), (1, 0));
        let last_link = connect((1, 1), (2, 0));
        let seen = [0, 1].map(|_| Arc::new(Mutex::new(Seen::default())));
        for (station, (plane, egress)) in
            [(near, PortNo(sources)), (far, PortNo(1))].into_iter().enumerate()
        {
            let seen = seen[station].clone();
            let node = Switch { plane, egress, last: Time::ZERO, cnms: 0, seen };
            engine.power_on(station, StationNode::Other(Box::new(node)));
        }
        engine.power_on(2, StationNode::Other(Box::new(Sink(seen[1].clone()))));
        for number in 0..sources {
            let source = Source::new(number, rp, seed);
            engine.power_on(usize::from(number) + 3, StationNode::Other(Box::new(source)));
        }
        World { engine, last_link, seen, set_point }
    }

    fn run(&mut self, span: Span) {
        let end = self.engine.now() + span;
        self.engine.run(end);
    }

    /// Measures both switches for `span`.
    fn look(&mut self, span: Span) -> [Seen; 2] {
        self.seen.iter().for_each(|seen| *seen.lock().unwrap() = Seen::default());
        self.run(span);
        [0, 1].map(|switch| self.seen[switch].lock().unwrap().clone())
    }

    /// Mean length of a queue over `span`, in thousandths of the set point.
    fn relative(&self, seen: &Seen, span: Span) -> u64 {
        let mean = seen.area / u128::from(span.ticks());
        mean as u64 * 1_000 / self.set_point
    }
}

#[test]
fn many_sources_hold_the_first_switch_at_its_set_point() {
    for (kilobytes, sources, seed) in [(25, 2, 1), (50, 8, 2), (100, 2, 3), (200, 8, 4)] {
        let rp = RpConfig::for_port(Rate::gbps(10));
        let mut world = World::new(sources, kilobytes, rp, seed);
        world.run(Span::from_millis(300));
        let span = Span::from_millis(100);
        let [near, far] = world.look(span);
        let what = format!("{kilobytes} KB, {sources} sources, seed {seed}: {near:?} {far:?}");
        assert!((900..=1_100).contains(&world.relative(&near, span)), "{what}");
        // On the wire between the switches each frame also has its header.
        let frame = FRAME_BYTES + OVERHEAD;
        let on_wire = far.sink_bytes / frame * (frame + HopWidth::Eight.header_bytes(2) as u64);
        assert!(on_wire * 1_000 > Rate::gbps(10).bytes_in(span).0 * 999, "{what}");
        assert_eq!((near.drops, far.drops, far.cnms), (0, 0, 0), "{what}");
        assert!(near.cnms > 50, "{what}");
        world.engine.check_conservation().unwrap();
    }
}

/// The step test of paper 004, figure 11, with shorter steps and reaction points whose variables
/// are scaled to a link of 1 Gb/s (`RpConfig::scaled_for_port`).
#[test]
fn the_second_switch_is_held_at_its_set_point_while_its_link_changes_and_loses_nothing() {
    for (kilobytes, seed) in [(25, 5), (200, 6)] {
        let rp = RpConfig::scaled_for_port(Rate::gbps(1));
        let mut world = World::new(1, kilobytes, rp, seed);
        world.run(Span::from_millis(200));
        for megabits in [200, 400] {
            world.engine.change_link(world.last_link, LinkChange::Rate(Rate::mbps(megabits)));
            let [_, step] = world.look(Span::from_millis(3_000));
            let span = Span::from_millis(1_000);
            let [near, far] = world.look(span);
            let what = format!("{kilobytes} KB, {megabits} Mb/s, seed {seed}: {step:?} {far:?}");
            assert!((900..=1_100).contains(&world.relative(&far, span)), "{what}");
            let all = Rate::mbps(megabits).bytes_in(span).0;
            assert!(far.sink_bytes * 1_000 > all * 998, "{what}");
            // Until the first sample arrives, and until the source has been slowed down.
            assert!(step.longest < 4 * world.set_point + SAMPLE_BYTES_MAX, "{what}");
            assert_eq!((step.drops, near.drops, far.drops), (0, 0, 0), "{what}");
        }
        world.engine.check_conservation().unwrap();
    }
}
