//! Lossless classes, frame by frame: with enough headroom nothing is lost, with one frame less
//! something is, and the common output wire is never idle.
#![allow(clippy::disallowed_types, reason = "a node must be Send, and a test looks into it")]

use axon_fabric::model::Wire;
use axon_node::{Action, Awaited, Drop, Input, Node, PortKind, Shortcuts};
use axon_plane::dcb::DcbConfig;
use axon_plane::flow_control::PauseState;
use axon_plane::shared_buffer::{MemoryConfig, PriorityGroupLimits, QueueLimits, Share};
use axon_plane::{Plane, PlaneConfig};
use axon_sim::Engine;
use axon_sim::links::WireEnd;
use axon_sim::station::StationNode;
use axon_wire::header::{self, PacketType};
use axon_wire::mac_control::{MacControl, Quanta};
use axon_wire::priority::{PRIORITIES, Priority, PrioritySet};
use axon_wire::{Bytes, FrameBuf, HopWidth, MacAddr, PortNo, Rate, Span, Time};
use oorandom::Rand64;
use std::sync::{Arc, Mutex};

const RATE: Rate = Rate::gbps(10);
const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 0xaa]);
/// Length of the longest frame, without FCS.
const FRAME_BYTES_MAX: u64 = 1_514;
/// Preamble, FCS and gap.
const OVERHEAD: u64 = 24;

fn priority(number: u8) -> Priority {
    Priority::new(number).unwrap()
}

/// Load of a source.
#[derive(Clone)]
struct Load {
    priority: Priority,
    /// Egress port at the switch.
    out: PortNo,
    /// Minimum interval between the starts of frames; zero for line rate.
    interval: Span,
    /// Range of frame lengths, drawn evenly.
    bytes: (u64, u64),
}

/// Sends frames until `end`, and honours flow control for its priority.
struct Source {
    load: Load,
    random: Rand64,
    pauses: PauseState,
    busy: bool,
    next: Time,
    end: Time,
    now: Time,
}

impl Source {
    fn packet(&mut self) -> FrameBuf {
        let (least, most) = self.load.bytes;
        let bytes = self.random.rand_range(least..most + 1) as usize;
        let mut packet = vec![0; bytes];
        let out = [self.load.out];
        header::emit(&mut packet, HopWidth::Eight, PacketType::Ethernet, &out, &[]).unwrap();
        header::set_priority(&mut packet, HopWidth::Eight, self.load.priority);
        FrameBuf::new(&packet)
    }
}

impl Node for Source {
    fn handle(&mut self, now: Time, input: Input, out: &mut Vec<Action>) {
        self.now = now;
        match input {
            Input::Frame { frame, .. } => {
                if let Ok(MacControl::Pfc(pfc)) = MacControl::parse(frame.bytes(), MAC) {
                    self.pauses.receive(now, &pfc, RATE, PrioritySet::ALL);
                }
            }
            Input::TxDone { .. } => self.busy = false,
            _ => {}
        }
        let stopped = self.pauses.paused(now).contains(self.load.priority);
        if self.busy || stopped || now < self.next || now >= self.end {
            return;
        }
        self.busy = true;
        self.next = now + self.load.interval;
        let (port, frame) = (PortNo(0), self.packet());
        out.push(Action::Transmit { port, frame, complete_at: now, intact: true });
    }

    fn deadline(&self) -> Option<Time> {
        let resumes = self.pauses.next_end(self.now).unwrap_or(self.next);
        (!self.busy && self.now < self.end).then_some(self.next.max(resumes))
    }
}

impl Shortcuts for Source {}

/// Frames received, by ingress of the switch.
#[derive(Clone, Debug, Default)]
struct Come {
    frames: u64,
    /// Bytes on the wire, overhead included.
    wire_bytes: u64,
    first: Option<Time>,
    last: Time,
}

struct Sink(Arc<Mutex<Vec<Come>>>);

impl Node for Sink {
    fn handle(&mut self, now: Time, input: Input, _: &mut Vec<Action>) {
        if let Input::Frame { frame, .. } = input {
            let view = header::HeaderView::parse(frame.bytes(), HopWidth::Eight).unwrap();
            let ingress = view.reverse()[0].index();
            let come = &mut self.0.lock().unwrap()[ingress];
            come.frames += 1;
            come.wire_bytes += frame.bytes().len() as u64 + OVERHEAD;
            come.first.get_or_insert(now);
            come.last = now;
        }
    }

    fn deadline(&self) -> Option<Time> {
        None
    }
}

impl Shortcuts for Sink {}

/// A switch's data plane without a control plane, which reports its drops.
struct Switch {
    plane: Plane,
    drops: Arc<Mutex<[u64; Drop::ALL.len()]>>,
}

impl Node for Switch {
    fn handle(&mut self, now: Time, input: Input, out: &mut Vec<Action>) {
        let start = out.len();
        self.plane.handle(now, input, out);
        for action in &out[start..] {
            if let Action::Dropped { reason, .. } = action {
                self.drops.lock().unwrap()[*reason as usize] += 1;
            }
        }
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

fn dcb(ports: u16, lossless: PrioritySet, headroom: u64) -> DcbConfig {
    let limits = PriorityGroupLimits {
        reserved: Bytes(0),
        share: Share::Static(Bytes(20_000)),
        headroom: Bytes(headroom),
        xon_offset: Bytes(2 * FRAME_BYTES_MAX),
    };
    let queue = QueueLimits { reserved: Bytes(0), share: Share::Dynamic { shift: 0 } };
    DcbConfig {
        memory: MemoryConfig {
            lossless,
            lossless_pool: Bytes(1 << 20),
            lossy_pool: Bytes(200_000),
            groups: vec![[limits; PRIORITIES]; usize::from(ports)],
            queues: [queue; PRIORITIES],
        },
        pfc: lossless,
        pfc_quanta: Quanta(1_000),
        ..DcbConfig::lossy(vec![RATE; usize::from(ports)], MAC)
    }
}

/// Sources at ports 0, 1, ..., and a sink at the port after them, all on links of `latency`.
/// Returns the received frames of each, and the drops by reason.
fn run(
    loads: &[Load],
    dcb: DcbConfig,
    latency: Span,
    (last, seed): (Time, u64),
) -> (Vec<Come>, [u64; Drop::ALL.len()]) {
    let ports = loads.len() as u16 + 1;
    let mut config = PlaneConfig::with_ports(ports, MAC);
    config.dcb = Some(Box::new(dcb));
    let mut plane = Plane::new(config);
    (0..ports).for_each(|port| plane.set_kind(PortNo(port), PortKind::Axon));
    let come = Arc::new(Mutex::new(vec![Come::default(); loads.len()]));
    let drops = Arc::new(Mutex::new([0; Drop::ALL.len()]));
    let mut engine = Engine::new(seed, None);
    for station in 0..=ports {
        engine.add_station(&format!("n{station}"));
    }
    // Station 0 is the switch, station p + 1 is at its port p.
    for port in 0..ports {
        let ends = [(0, port), (usize::from(port) + 1, 0)];
        let [a, b] = ends.map(|(station, port)| WireEnd { station, port: PortNo(port) });
        let (loss_ppm, bit_errors_per_1e15, queue) = (0, 0, Bytes(1 << 40));
        engine.connect(a, b, Wire { rate: RATE, latency, loss_ppm, bit_errors_per_1e15, queue });
    }
    engine.power_on(0, StationNode::Other(Box::new(Switch { plane, drops: drops.clone() })));
    for (index, load) in loads.iter().enumerate() {
        let random = Rand64::new(u128::from(seed) << 8 | index as u128);
        let source = Source {
            load: load.clone(),
            random,
            pauses: PauseState::default(),
            busy: false,
            next: Time::from_nanos(100 * index as u64),
            end: last,
            now: Time::ZERO,
        };
        engine.power_on(index + 1, StationNode::Other(Box::new(source)));
    }
    engine.power_on(usize::from(ports), StationNode::Other(Box::new(Sink(come.clone()))));
    engine.run(last + Span::from_millis(100));
    engine.check_conservation().unwrap();
    let (come, drops) = (come.lock().unwrap().clone(), *drops.lock().unwrap());
    (come, drops)
}

/// Number of drops, except for consumed flow control frames.
fn lost(drops: &[u64; Drop::ALL.len()]) -> u64 {
    let counts = Drop::ALL.iter().zip(drops);
    counts.filter(|(reason, _)| **reason != Drop::MacControl).map(|(_, count)| count).sum()
}

/// Bytes that may arrive after the headroom is first used: the frame that uses it first, the round
/// trip, the flow control frame, and the frame that the sender has just begun.
fn headroom(latency: Span) -> u64 {
    let frame = FRAME_BYTES_MAX + OVERHEAD;
    let on_the_way = 2 * latency.ticks() / RATE.time_for(Bytes(1)).ticks();
    let flow_control = 60 + OVERHEAD;
    2 * frame + on_the_way + flow_control
}

fn full_load(bytes: (u64, u64), out: u16) -> Load {
    Load { priority: priority(3), out: PortNo(out), interval: Span::ZERO, bytes }
}

#[test]
fn nothing_is_lost_and_the_wire_is_never_idle() {
    let lossless = PrioritySet::only(priority(3));
    let end = Time::from_nanos(5_000_000);
    for seed in 1..=20 {
        let latency = Span::from_nanos([10, 500, 5_000][seed as usize % 3]);
        let sources = 2 + seed as usize % 3;
        let loads = vec![full_load((60, FRAME_BYTES_MAX), sources as u16); sources];
        let dcb = dcb(sources as u16 + 1, lossless, headroom(latency));
        let (come, drops) = run(&loads, dcb, latency, (end, seed));
        assert_eq!(lost(&drops), 0, "seed {seed}: {drops:?}");
        assert!(drops[Drop::MacControl as usize] == 0, "nobody stops the switch");
        let first = come.iter().filter_map(|come| come.first).min().unwrap();
        let last = come.iter().map(|come| come.last).max().unwrap();
        let sum: u64 = come.iter().map(|come| come.wire_bytes).sum();
        let (busy, whole) = (RATE.time_for(Bytes(sum)), last.since(first));
        assert!(busy.ticks() * 1000 > whole.ticks() * 995, "seed {seed}: {busy} of {whole}");
        let (least, most) = (
            come.iter().map(|come| come.wire_bytes).min().unwrap(),
            come.iter().map(|come| come.wire_bytes).max().unwrap(),
        );
        assert!(least * 100 > most * 95, "seed {seed}: {come:?}");
    }
}

#[test]
fn with_one_frame_less_of_headroom_something_is_lost() {
    let lossless = PrioritySet::only(priority(3));
    let latency = Span::from_nanos(1_000);
    let enough = headroom(latency);
    let less = enough - (FRAME_BYTES_MAX + OVERHEAD);
    let losses = |headroom| {
        let runs = (1..=20).map(|seed| {
            let loads = vec![full_load((FRAME_BYTES_MAX, FRAME_BYTES_MAX), 3); 3];
            let dcb = dcb(4, lossless, headroom);
            let (_, drops) = run(&loads, dcb, latency, (Time::from_nanos(2_000_000), seed));
            assert_eq!(lost(&drops), drops[Drop::HeadroomFull as usize], "{drops:?}");
            lost(&drops)
        });
        runs.sum::<u64>()
    };
    assert_eq!(losses(enough), 0);
    assert!(losses(less) > 0);
}

#[test]
fn a_lossy_priority_is_dropped_beside_a_lossless_one_that_is_not() {
    let lossless = PrioritySet::only(priority(3));
    let latency = Span::from_nanos(1_000);
    let lossy = Load { priority: priority(1), ..full_load((FRAME_BYTES_MAX, FRAME_BYTES_MAX), 2) };
    let loads = [full_load((FRAME_BYTES_MAX, FRAME_BYTES_MAX), 2), lossy];
    let dcb = dcb(3, lossless, headroom(latency));
    let (come, drops) = run(&loads, dcb, latency, (Time::from_nanos(2_000_000), 1));
    assert_eq!(drops[Drop::HeadroomFull as usize], 0);
    assert!(drops[Drop::QueueFull as usize] > 1000, "{drops:?}");
    assert!(come[0].wire_bytes > 99 * (come[0].wire_bytes + come[1].wire_bytes) / 100, "{come:?}");
}
