//! Queues competing for one port of a switch: set-up of paper 002's chapter 6 (figure 6-2).
//!
//! A source at each of some ports sends as fast as possible in its own class, all to one port of 10
//! Gb/s with deficit round robin. Each class drops excess frames and is never empty. Frame sizes
//! include VLAN tag and FCS, as in the paper.

use axon_fabric::model::Wire;
use axon_node::{Action, Input, Node, PortKind, Shortcuts};
use axon_plane::dcb::DcbConfig;
use axon_plane::schedule::{Algorithm, FrameCost, ScheduleConfig, Weights};
use axon_plane::{Plane, PlaneConfig};
use axon_sim::Engine;
use axon_sim::links::WireEnd;
use axon_sim::station::StationNode;
use axon_wire::constants::ethertype;
use axon_wire::priority::{Priority, TrafficClass};
use axon_wire::vlan::{self, VlanTag};
use axon_wire::{Bytes, FrameBuf, MacAddr, PortNo, Rate, Route, Span, Time};
use oorandom::Rand64;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Paper's maximum frame in bytes.
pub(crate) const LONGEST: u32 = 1_522;
/// Costs of a frame in the scheduler: frame bytes alone, with gap and preamble, and the latter in
/// cells of 40 bytes. The FCS is not part of a frame in a switch, so it is added to each.
pub(crate) const FRAME: FrameCost = FrameCost { overhead_bytes: FCS as u16, cell_bytes: 1 };
/// Cost with gap and preamble; see [`FRAME`].
pub(crate) const GAP: FrameCost = FrameCost { overhead_bytes: FCS as u16 + 20, cell_bytes: 1 };
/// Cost with gap and preamble, in cells of 40 bytes; see [`FRAME`].
pub(crate) const CELLS: FrameCost = FrameCost { overhead_bytes: FCS as u16 + 20, cell_bytes: 40 };

const FCS: u32 = 4;
const RATE: Rate = Rate::gbps(10);
const LATENCY: Span = Span::from_nanos(50);
const SINK: MacAddr = MacAddr([2, 0, 0, 0, 1, 0xff]);
const SWITCH: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
/// Offered load of a source in multiples of its even share of the port, at most line rate: enough
/// for any weight of chapter 6.
const OFFERED: u64 = 3;
/// The longest frame of the chapter, jumbo frames included, without FCS.
const FRAME_BYTES_MAX: usize = 5_000;

/// Traffic of one class.
#[derive(Clone, Debug)]
pub struct Queue {
    /// Quantum of a round, in bytes of cost.
    pub quantum: u32,
    /// Frame sizes: in random order, equally frequent.
    pub sizes: Vec<u32>,
    /// Later change of the frame sizes, with its time after the start.
    pub later: Option<(Span, Vec<u32>)>,
}

impl Queue {
    /// Creates a queue with the quantum of a maximum frame.
    pub(crate) fn of(sizes: &[u32]) -> Queue {
        Queue { quantum: LONGEST, sizes: sizes.to_vec(), later: None }
    }
}

/// Contest of queues for one port.
#[derive(Clone, Debug)]
pub struct Contest {
    /// Classes, at most eight.
    pub queues: Vec<Queue>,
    /// Cost of a frame.
    pub cost: FrameCost,
    /// Quanta: fixed, or adapted to the traffic.
    pub weights: Weights,
}

impl Contest {
    /// Returns the bytes of frames, FCS included, that left the port by class: first in `warm`,
    /// then in each of the windows.
    pub fn run(&self, warm: Span, (windows, window): (usize, Span), seed: u64) -> Vec<Vec<u64>> {
        let count = self.queues.len();
        let mut engine = Engine::new(seed, None);
        (0..count + 2).for_each(|station| {
            engine.add_station(&format!("n{station}"));
        });
        for port in 0..=count {
            let ends = [(0, port), (port + 1, 0)];
            let [a, b] = ends.map(|(station, port)| WireEnd { station, port: PortNo(port as u16) });
            let (loss_ppm, bit_errors_per_1e15, queue) = (0, 0, Bytes(1 << 40));
            let wire = Wire { rate: RATE, latency: LATENCY, loss_ppm, bit_errors_per_1e15, queue };
            engine.connect(a, b, wire);
        }
        engine.power_on(0, StationNode::Other(Box::new(self.plane())));
        let passed: Arc<[AtomicU64]> = (0..count).map(|_| AtomicU64::new(0)).collect();
        engine.power_on(count + 1, StationNode::Other(Box::new(Sink(passed.clone()))));
        for (class, queue) in self.queues.iter().enumerate() {
            let source = Source::new(class, queue, count as u64, seed);
            engine.power_on(class + 1, StationNode::Other(Box::new(source)));
        }
        let mut ends = vec![Time::ZERO + warm];
        ends.extend((1..=windows).map(|number| Time::ZERO + warm + window * number as u64));
        let mut take = |end| {
            engine.run(end);
            passed.iter().map(|bytes| bytes.swap(0, Ordering::Relaxed)).collect()
        };
        ends.into_iter().map(&mut take).collect()
    }

    fn plane(&self) -> Plane {
        let ports = self.queues.len() as u16 + 1;
        let classes =
            self.queues.iter().map(|queue| Algorithm::Drr { quantum_bytes: queue.quantum });
        let schedule =
            ScheduleConfig { classes: classes.collect(), cost: self.cost, weights: self.weights };
        // Unused priorities beyond the last class join it.
        let last = self.queues.len() - 1;
        let prio_tc = std::array::from_fn(|priority| TrafficClass::ALL[priority.min(last)]);
        let lossy = DcbConfig::lossy(vec![RATE; usize::from(ports)], SWITCH);
        let mut config = PlaneConfig::with_ports(ports, SWITCH);
        config.frame_bytes_max = FRAME_BYTES_MAX;
        config.dcb = Some(Box::new(DcbConfig { schedule, prio_tc, ..lossy }));
        let mut plane = Plane::new(config);
        let sink = Route::from([ports - 1]);
        for port in (0..ports).map(PortNo) {
            plane.set_kind(port, PortKind::Host);
            // The table holds more than one route for each port.
            let _ = plane.install(port, SINK, &sink);
        }
        plane
    }
}

/// Source that saturates its port.
struct Source {
    /// One frame of each size.
    frames: Vec<Vec<u8>>,
    /// Later frames, with the time of the change.
    later: Option<(Time, Vec<Vec<u8>>)>,
    /// Frames still to be drawn before all are again.
    deck: Vec<usize>,
    random: Rand64,
    /// Number of sources that share the port, which bounds the rate needed.
    sources: u64,
    up: bool,
    busy: bool,
    next: Time,
}

impl Source {
    fn new(class: usize, queue: &Queue, sources: u64, seed: u64) -> Source {
        let tag = VlanTag::of_priority(Priority::ALL[class]);
        let frame = |&size: &u32| {
            let mut frame = [SINK.0, [2, 0, 0, 0, 2, class as u8]].concat();
            frame.extend_from_slice(&tag.emit());
            frame.extend_from_slice(&ethertype::PROBE.to_be_bytes());
            frame.resize((size - FCS) as usize, 0);
            frame
        };
        let later = queue.later.as_ref();
        Source {
            frames: queue.sizes.iter().map(frame).collect(),
            later: later
                .map(|(after, sizes)| (Time::ZERO + *after, sizes.iter().map(frame).collect())),
            deck: Vec::new(),
            random: Rand64::new(u128::from(seed) << 8 | class as u128),
            sources,
            up: false,
            busy: false,
            next: Time::ZERO,
        }
    }
}

impl Source {
    /// Draws the next frame from a deck, so that only the order is random and not the share.
    fn draw(&mut self) -> usize {
        if self.deck.is_empty() {
            self.deck.extend(0..self.frames.len());
        }
        let which = self.random.rand_range(0..self.deck.len() as u64) as usize;
        self.deck.swap_remove(which)
    }
}

impl Node for Source {
    fn handle(&mut self, now: Time, input: Input, out: &mut Vec<Action>) {
        match input {
            Input::TxDone { .. } => self.busy = false,
            Input::Link { up, .. } => self.up = up,
            Input::Frame { .. } | Input::Timeout | Input::Command(_) => {}
        }
        if self.busy || !self.up || now < self.next {
            return;
        }
        self.busy = true;
        if let Some((_, frames)) = self.later.take_if(|(from, _)| *from <= now) {
            self.frames = frames;
            self.deck.clear();
        }
        let which = self.draw();
        let frame = FrameBuf::new(&self.frames[which]);
        // Wire time, FCS, gap and preamble included, over the part of the line that is offered.
        let on_wire = RATE.time_for(Bytes(frame.bytes().len() as u64 + 24));
        self.next = now + Span::from_ticks(on_wire.ticks() * self.sources / OFFERED);
        out.push(Action::Transmit { port: PortNo(0), frame, complete_at: now, intact: true });
    }

    fn deadline(&self) -> Option<Time> {
        (self.up && !self.busy).then_some(self.next)
    }
}

impl Shortcuts for Source {}

/// Counts received bytes by class.
struct Sink(Arc<[AtomicU64]>);

impl Node for Sink {
    fn handle(&mut self, _: Time, input: Input, _: &mut Vec<Action>) {
        if let Input::Frame { frame, .. } = input {
            let bytes = frame.bytes().len() as u64 + u64::from(FCS);
            let class = vlan::priority_of(frame.bytes()).index();
            self.0[class].fetch_add(bytes, Ordering::Relaxed);
        }
    }

    fn deadline(&self) -> Option<Time> {
        None
    }
}

impl Shortcuts for Sink {}

/// Returns Jain's index (002 formula 6.3).
pub(crate) fn jain(shares: &[u64]) -> f64 {
    let sum: f64 = shares.iter().map(|&share| share as f64).sum();
    let squares: f64 = shares.iter().map(|&share| (share as f64).powi(2)).sum();
    sum * sum / (shares.len() as f64 * squares)
}

/// Length of the throughput measurement, after a warm-up: two thousand rounds of two queues.
const WARM: Span = Span::from_micros(500);
const MEASURED: Span = Span::from_millis(10);
/// Relative difference of throughputs at which a search ends.
const CLOSE: f64 = 0.002;
const SEARCHES_MAX: usize = 8;
/// The rival's quantum in searches, fine enough for weights of a thousandth.
const UNIT: u32 = 3_000;

/// Returns the weights, relative to that of frames of `rival` bytes, at which each of `queues` has
/// the rival's throughput. Found as in the paper by repeated measurement and correction.
pub(crate) fn fair_weights(cost: FrameCost, queues: &[&[u32]], rival: u32, seed: u64) -> Vec<f64> {
    let mut weights = vec![1.0; queues.len()];
    for _ in 0..SEARCHES_MAX {
        let quantum = |weight: f64| (f64::from(UNIT) * weight).round() as u32;
        let small = queues.iter().zip(&weights);
        let small = small.map(|(sizes, &w)| Queue { quantum: quantum(w), ..Queue::of(sizes) });
        let large = Queue { quantum: UNIT, ..Queue::of(&[rival]) };
        let queues = small.chain([large]).collect();
        let contest = Contest { queues, cost, weights: Weights::Fixed };
        let bytes = contest.run(WARM, (1, MEASURED), seed).swap_remove(1);
        let theirs = bytes[bytes.len() - 1] as f64;
        let ratios: Vec<f64> = bytes.iter().map(|&bytes| theirs / bytes as f64).collect();
        if ratios.iter().all(|ratio| (ratio - 1.0).abs() < CLOSE) {
            break;
        }
        weights.iter_mut().zip(ratios).for_each(|(weight, ratio)| *weight *= ratio);
    }
    weights
}

/// Returns the throughput of frames of `size` bytes relative to that of maximum-size frames with
/// the same quantum.
pub(crate) fn relative_throughput(cost: FrameCost, size: u32, seed: u64) -> f64 {
    let queues = vec![Queue::of(&[size]), Queue::of(&[LONGEST])];
    let contest = Contest { queues, cost, weights: Weights::Fixed };
    let bytes = contest.run(WARM, (1, MEASURED), seed).swap_remove(1);
    bytes[0] as f64 / bytes[1] as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_get_what_their_frames_cost() {
        let seed = 3;
        for (cost, expected) in [(FRAME, 1.0), (GAP, 0.783), (CELLS, 0.581)] {
            let found = relative_throughput(cost, 68, seed);
            assert!((found - expected).abs() < 0.005, "seed {seed}: {found}, not {expected}");
        }
    }

    #[test]
    fn weights_that_are_found_make_throughputs_equal() {
        let found = fair_weights(GAP, &[&[68], &[256]], LONGEST, 1);
        for (found, expected) in found.into_iter().zip([1.2773, 1.0641]) {
            assert!((found / expected - 1.0).abs() < 0.003, "{found}, not {expected}");
        }
    }

    #[test]
    fn a_switch_whose_weights_follow_bytes_is_fair_in_some_windows() {
        let queues = [68, 512, LONGEST].map(|size| Queue::of(&[size])).to_vec();
        let window = Span::from_millis(2);
        let weights = Weights::ByteFair { window, size_added_bytes: FCS as u16 };
        let contest = Contest { queues, cost: CELLS, weights };
        let windows = contest.run(window, (6, window), 1);
        assert!(jain(&windows[0]) < 0.97, "{windows:?}");
        assert!(jain(&windows[6]) > 0.9999, "{windows:?}");
    }

    #[test]
    fn the_index_is_one_for_equals_and_a_part_for_one_alone() {
        assert_eq!(jain(&[5, 5, 5]), 1.0);
        assert_eq!(jain(&[9, 0, 0, 0]), 0.25);
    }
}
