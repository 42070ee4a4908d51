//! Effects of the hardware of switches and wires on frames: time, and flipped bits.

#![allow(clippy::disallowed_types, reason = "a node must be Send, and a test looks into it")]

use crate::common::{self, Builder, HEARTBEAT, wire};
use axon_fabric::model::{Device, FaultKind, Wire};
use axon_node::{Action, Drop, Input, Node, Shortcuts};
use axon_sim::engine::Step;
use axon_sim::links::{LinkChange, LinkId, WireEnd};
use axon_sim::station::StationNode;
use axon_sim::{Engine, World};
use axon_wire::{FrameBuf, PortNo, Rate, Span, Time};
use std::sync::{Arc, Mutex};

/// Sends given frames at their times, and records received frames.
struct End {
    plan: Vec<(Time, usize)>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    at: Time,
    complete_at: Time,
    bytes: usize,
    intact: bool,
}

/// Forwards frames from port 0 to port 1, without some bytes at the front; a frame that finds the
/// wire busy waits.
struct Relay {
    strip: usize,
    busy: bool,
    queue: Vec<(FrameBuf, Time, bool)>,
}

impl Node for End {
    fn handle(&mut self, now: Time, input: Input, out: &mut Vec<Action>) {
        if let Input::Frame { frame, complete_at, intact, .. } = input {
            let seen = Seen { at: now, complete_at, bytes: frame.bytes().len(), intact };
            self.seen.lock().unwrap().push(seen);
        } else if self.plan.first().is_some_and(|&(at, _)| at <= now) {
            let (_, bytes) = self.plan.remove(0);
            let frame = FrameBuf::new(&vec![7; bytes]);
            out.push(Action::Transmit { port: PortNo(0), frame, complete_at: now, intact: true });
        }
    }

    fn deadline(&self) -> Option<Time> {
        self.plan.first().map(|&(at, _)| at)
    }
}

impl Shortcuts for End {}

impl Node for Relay {
    fn handle(&mut self, _: Time, input: Input, out: &mut Vec<Action>) {
        match input {
            Input::Frame { mut frame, complete_at, intact, .. } => {
                frame.pop_front(self.strip);
                self.queue.push((frame, complete_at, intact));
            }
            Input::TxDone { .. } => self.busy = false,
            _ => return,
        }
        if !self.busy && !self.queue.is_empty() {
            self.busy = true;
            let (frame, complete_at, intact) = self.queue.remove(0);
            out.push(Action::Transmit { port: PortNo(1), frame, complete_at, intact });
        }
    }

    fn deadline(&self) -> Option<Time> {
        None
    }
}

impl Shortcuts for Relay {}

fn end(station: usize, port: u16) -> WireEnd {
    WireEnd { station, port: PortNo(port) }
}

fn at(nanos: u64) -> Time {
    Time::from_nanos(nanos)
}

/// Source, relays, and sink in a line of 1 us links of these rates; records the frames at the sink.
struct Line {
    engine: Engine,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Line {
    fn new(
        device: &Device,
        host: bool,
        rates: &[u64],
        strip: usize,
        plan: &[(Time, usize)],
    ) -> Line {
        let mut engine = Engine::new(3, None);
        let last = rates.len();
        for station in 0..=last {
            engine.add_station(&format!("n{station}"));
            if station > 0 && station < last {
                engine.station_mut(station).set_device(device);
            }
        }
        if host {
            engine.station_mut(0).set_host();
        }
        for (left, &gbps) in rates.iter().enumerate() {
            let wire = Wire { rate: Rate::gbps(gbps), ..wire() };
            engine.connect(end(left, u16::from(left > 0)), end(left + 1, 0), wire);
        }
        let seen = Arc::new(Mutex::new(Vec::new()));
        for station in 0..=last {
            let plan = if station == 0 { plan.to_vec() } else { Vec::new() };
            let node: Box<dyn Shortcuts + Send> = if station == 0 || station == last {
                Box::new(End { plan, seen: Arc::clone(&seen) })
            } else {
                Box::new(Relay { strip, busy: false, queue: Vec::new() })
            };
            engine.power_on(station, StationNode::Other(node));
        }
        Line { engine, seen }
    }

    fn run(mut self) -> Vec<Seen> {
        while self.engine.run(at(1_000_000_000)) != Step::Limit {}
        self.engine.check_conservation().unwrap();
        let seen = self.seen.lock().unwrap();
        seen.clone()
    }
}

#[test]
fn the_prototype_takes_520_ns_from_an_axon_and_768_ns_from_a_host() {
    for device in [Device::axon_netfpga(), Device::axon_netfpga_stored()] {
        for (host, nanos) in [(false, 520), (true, 768)] {
            for bytes in [60, 1514] {
                let seen = Line::new(&device, host, &[1, 1], 0, &[(at(5000), bytes)]).run();
                let frame = (8 + bytes as u64 + 4) * 8;
                // In at 5000 + 1000; out at the time of arrival, minus its wire and its length.
                let first_bit_out = seen[0].at.as_nanos() - 1000 - frame;
                let stored = if device.cut_through { 0 } else { frame };
                assert_eq!(first_bit_out - 6000, nanos + stored, "{} {bytes} B", device.name);
                assert_eq!(seen[0].complete_at, seen[0].at, "an end sees whole frames");
            }
        }
    }
}

#[test]
fn five_axons_cost_five_stages_and_one_frame() {
    let device = Device::axon_netfpga();
    let seen = Line::new(&device, true, &[1; 6], 0, &[(at(0), 1514)]).run();
    assert_eq!(seen[0].at, at(6 * 1000 + 768 + 4 * 520 + (8 + 1514 + 4) * 8));
}

#[test]
fn frames_follow_one_another_at_line_rate_through_any_pipeline() {
    let slot = (8 + 1000 + 4 + 12) * 8;
    let plan: Vec<_> = (0..20).map(|number| (at(number * slot), 1000)).collect();
    for device in [Device::axon_netfpga(), Device::axon_netfpga_stored(), Device::ideal()] {
        let seen = Line::new(&device, true, &[1, 1, 1], 0, &plan).run();
        assert_eq!(seen.len(), 20);
        for pair in seen.windows(2) {
            assert_eq!(pair[1].at.since(pair[0].at), Span::from_nanos(slot), "{}", device.name);
        }
    }
}

#[test]
fn a_stripped_frame_starts_later_and_ends_with_its_tail() {
    // The relay strips 100 bytes: the rest cannot end before its tail has arrived.
    let device = Device { from_host: None, from_switch: Vec::new(), ..Device::axon_netfpga() };
    let seen = Line::new(&device, false, &[1, 1], 100, &[(at(0), 1100)]).run();
    assert_eq!(seen[0].at, at((8 + 1100 + 4) * 8 + 2000));
    assert_eq!(seen[0].bytes, 1000);
}

#[test]
fn towards_a_faster_wire_a_frame_is_stored_and_towards_a_slower_it_is_not() {
    let device = Device { from_host: None, from_switch: Vec::new(), ..Device::axon_netfpga() };
    let (slow, fast) = ((8 + 1000 + 4) * 8, (8 + 1000 + 4) * 8 / 10);
    // Ten times faster takes 809.6 ns.
    let faster = Line::new(&device, false, &[1, 10], 0, &[(at(0), 1000)]).run();
    assert_eq!(faster[0].at, at(slow + 2000) + Span::from_ticks((slow * 100) / 10));
    let slower = Line::new(&device, false, &[10, 1], 0, &[(at(0), 1000)]).run();
    assert_eq!(slower[0].at, at(slow + 2000), "{fast} ns of it were over before");
}

#[test]
fn a_flipped_bit_travels_on_through_cut_through_and_is_dropped_by_a_host() {
    let plan: Vec<_> = (0..2000).map(|number| (at(number * 10_000), 1000)).collect();
    let mut line = Line::new(&Device::axon_netfpga(), false, &[1, 1, 1], 0, &plan);
    // 1 - (1 - 1e-5)^8032 = 7.7 %.
    line.engine.change_link(LinkId(0), LinkChange::BitErrorsPer1e15(10_000_000_000));
    while line.engine.run(at(1_000_000_000)) != Step::Limit {}
    line.engine.check_conservation().unwrap();
    let broken = line.seen.lock().unwrap().iter().filter(|seen| !seen.intact).count() as u64;
    assert!((110..200).contains(&broken), "{broken} of 2000");
    assert_eq!(line.engine.fates(LinkId(0), 0).corrupted, broken);
    assert_eq!(line.seen.lock().unwrap().len(), 2000, "whoever forwards does not know yet");
}

#[test]
fn hosts_talk_over_a_fabric_that_flips_bits_and_every_frame_has_its_fate() {
    for device in [Device::axon_netfpga(), Device::ideal()] {
        let mut builder: Builder = common::ring(3, 1, true);
        builder.fabric.device = device;
        let mut world = World::new(&builder.fabric, 5);
        for link in 0..world.engine().links().len() {
            world
                .engine_mut()
                .change_link(LinkId(link), LinkChange::BitErrorsPer1e15(20_000_000_000));
        }
        world.run_until(common::BOOT);
        let silent = common::unreached(&mut world, &common::pairs(&[0, 1, 2]), 30);
        let state = silent.first().map(|&(from, to)| common::describe(&world, from, to));
        assert!(silent.is_empty(), "{silent:?} {state:?}");
        world.run_for(HEARTBEAT * 20);
        world.engine().check_conservation().unwrap();
        let dropped = world.engine().accounts().dropped[Drop::BadFcs as usize];
        assert!(dropped > 10, "{dropped} frames with a bad FCS");
        world.inject(FaultKind::SwitchDown(1));
        world.run_for(HEARTBEAT);
        world.engine().check_conservation().unwrap();
    }
}
