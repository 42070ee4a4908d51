//! Random traffic through the gates and the software plane, compared frame for frame and counter
//! for counter.
//!
//! Frames come in rounds: up to nine on each port, at random times, so that they meet at the
//! outputs but fit the buffers. Each round ends when the gates are at rest. One frame in twelve
//! that is no probe has a wrong FCS. Ports that store their frames drop it, as the software plane
//! does. Others may have begun to send it when its end comes: then it leaves with a wrong FCS, as
//! from a software plane that gets its end later; if its output was busy until its end came, it is
//! dropped. The software plane counts such a frame by what its header says, the gates by its FCS.
//!
//! `AXON_RTL_FRAMES` sets the number of frames over all hop widths, `AXON_SEED` the seed.

use crate::fates::{Counted, Fate, PORTS, Received, Tested, WIDTHS, config, counted, gates, since};
use crate::frames::Frames;
use crate::probes;
use axon_node::{Dataplane, Drop, PortKind, RouteChange, RouteKey, RouteTicket};
use axon_plane::Plane;
use axon_rtl::RtlDataplane;
use axon_rtl::driver;
use axon_rtl::registers::{counter, port};
use axon_wire::header::HopWidth;
use axon_wire::masquerade::index_of;
use axon_wire::{PortNo, Span};

/// Frames of a normal run, over all hop widths.
pub const FRAMES: u64 = 20_000;
/// Rounds after which the ports get other kinds and other routes.
const EPOCH: u64 = 40;
/// Bytes of the frames of one port in a round, without headers.
const ROUND_BYTES_MAX: usize = 1500;

pub fn number(name: &str, default: u64) -> u64 {
    let set = std::env::var(name).ok();
    set.map_or(default, |set| set.parse().unwrap_or_else(|_| panic!("{name}={set}: no number")))
}

/// Both data planes, which get the same.
struct Pair {
    gates: Tested<RtlDataplane>,
    plane: Tested<Plane>,
    frames: Frames,
    kinds: Vec<PortKind>,
    received: u64,
    /// Ingress and reason of bad frames of this round that the software plane dropped.
    ended: Vec<(u16, &'static str)>,
    /// Frames that left the gates with a wrong FCS, by output.
    poisoned: [u64; PORTS as usize],
    width: HopWidth,
    /// Probes that have left with records, those of both data planes.
    stamped: u64,
}

impl Pair {
    /// Sets other kinds and routes. Sometimes one port loses its carrier.
    fn begin_epoch(&mut self) {
        self.kinds = (0..PORTS).map(|_| self.frames.kind()).collect();
        let down = self.frames.one_in(3).then(|| PortNo(self.frames.below(PORTS.into()) as u16));
        self.gates.set_ports(&self.kinds, |port| Some(port) != down);
        self.plane.set_ports(&self.kinds, |port| Some(port) != down);
        self.plane.cuts_through = self.frames.one_in(2);
        let is_stored = u32::from(!self.plane.cuts_through);
        for port in (0..PORTS).map(PortNo) {
            let (_, pins) = self.gates.plane.registers();
            driver::set(pins, port, &port::IS_STORED, is_stored);
        }
        for _ in 0..60 {
            let port = PortNo(self.frames.below(PORTS.into()) as u16);
            let source = self.frames.one_in(3).then(|| self.frames.host());
            let key = RouteKey::to(self.frames.host()).from_source(source);
            let route = self.frames.route();
            let destination = self.frames.host();
            let change = match self.frames.below(3) {
                0 => RouteChange::Remove { port, key },
                1 if index_of(key.destination).is_some() => {
                    RouteChange::Masquerade { port, key, destination, route }
                }
                _ => RouteChange::Install { port, key, route },
            };
            let ticket = RouteTicket(0);
            let done = self.plane.plane.change_route(self.plane.now, ticket, change.clone());
            let in_gates = self.gates.plane.change_route(self.gates.now, ticket, change);
            assert_eq!(in_gates, done);
        }
    }

    /// Returns the frames of a round, in order of their times.
    fn round(&mut self) -> Vec<Received> {
        let mut all = Vec::new();
        for port in
            (0..PORTS).map(PortNo).filter(|&port| self.plane.plane.ports().wires().is_up(port))
        {
            let few = self.frames.one_in(2);
            let count = if few { self.frames.below(4) } else { 4 + self.frames.below(6) } as usize;
            let mut at = Span::from_nanos(self.frames.below(4000));
            for _ in 0..count {
                let bytes_max = ROUND_BYTES_MAX / count;
                let frame = self.frames.frame(self.kinds[port.index()], bytes_max);
                let wire = Span::from_nanos(8 * (frame.len() as u64 + 24));
                // In gates a bad probe gets no record.
                let is_probe = probes::records_at(&frame, self.width).is_some();
                let intact = is_probe || !self.frames.one_in(12);
                all.push((at, port, frame, intact));
                at = Span::from_ticks(at.ticks() + wire.ticks());
            }
        }
        all.sort_by_key(|one| one.0);
        all
    }

    /// Returns the fates of frames in the software plane, by their ingress.
    fn by_ingress(&mut self, round: &[Received]) -> Vec<Vec<Fate>> {
        let mut fates = vec![Vec::new(); usize::from(PORTS)];
        for one in round {
            let before = counted(&self.plane);
            let fates_of_one = self.plane.receive(std::slice::from_ref(one));
            if !one.3 && fates_of_one.is_empty() {
                let mut reasons = since(&counted(&self.plane), &before);
                reasons
                    .retain(|(_, name), _| !name.ends_with("_frames") && !name.ends_with("_bytes"));
                self.ended.extend(reasons.into_keys());
            }
            fates[one.1.index()].extend(fates_of_one);
        }
        fates
    }

    /// Returns fates without what their probes say of times and queues, which differ.
    fn without_times(&mut self, mut fates: Vec<Vec<Fate>>) -> Vec<Vec<Fate>> {
        for fate in fates.iter_mut().flatten() {
            self.stamped += u64::from(probes::clear_times_of(fate, self.width));
        }
        fates
    }

    /// Runs one round and compares.
    fn compare(&mut self, seed: u64) {
        let round = self.round();
        let before = [counted(&self.gates), counted(&self.plane)];
        let in_gates = self.gates.receive(&round);
        let expected = self.by_ingress(&round);
        let expected = self.without_times(expected);
        let in_gates = self.without_times(vec![in_gates]).concat();
        let all = expected.concat();
        self.received += round.len() as u64;
        let at = format!("AXON_SEED={seed}, frame {}", self.received);
        let (extra, mut missing) = (without(&in_gates, &all), without(&all, &in_gates));
        let mut changes = since(&counted(&self.plane), &before[1]);
        missing.retain(|fate| !self.was_stopped(fate, &expected, &mut changes));
        let kinds = &self.kinds;
        assert!(extra.is_empty() && missing.is_empty(), "{at}: {kinds:?}, {extra:?}, {missing:?}");
        assert!(is_in_order(&in_gates, &expected), "{at}: a frame overtook one of its port");
        let in_gates_changes = since(&counted(&self.gates), &before[0]);
        for (ingress, reason) in std::mem::take(&mut self.ended) {
            *changes.entry((ingress, reason)).or_default() -= 1;
            // Without carrier the output may have dropped it before its end came.
            let down = (ingress, Drop::PortDown.name());
            let more = in_gates_changes.get(&down) > changes.get(&down);
            let name = if more { Drop::PortDown } else { Drop::BadFcs }.name();
            *changes.entry((ingress, name)).or_default() += 1;
        }
        changes.retain(|_, count| *count > 0);
        assert_eq!(in_gates_changes, changes, "{at}");
        for fate in &in_gates {
            if let Fate::Sent { port, intact: false, .. } = fate {
                self.poisoned[port.index()] += 1;
            }
        }
        assert_eq!(self.gates.plane.inside(), 0, "{at}: frames without a fate");
    }
}

impl Pair {
    /// Returns whether a fate is that of a bad frame, which the gates may drop before it leaves;
    /// counts it so.
    fn was_stopped(&self, fate: &Fate, by_ingress: &[Vec<Fate>], changes: &mut Counted) -> bool {
        let Fate::Sent { port, frame, intact: false } = fate else { return false };
        let ingress = by_ingress.iter().position(|fates| fates.contains(fate));
        let ingress = ingress.expect("the fate of a frame of the round") as u16;
        *changes.entry((port.0, "tx_frames")).or_default() -= 1;
        *changes.entry((port.0, "tx_bytes")).or_default() -= frame.len() as u64;
        *changes.entry((ingress, Drop::BadFcs.name())).or_default() += 1;
        self.plane.cuts_through
    }
}

/// Returns the fates that others do not contain, as often as they are missing there.
fn without(fates: &[Fate], others: &[Fate]) -> Vec<Fate> {
    let mut others = others.to_vec();
    let is_extra = |fate: &&Fate| {
        let found = others.iter().position(|other| other == *fate);
        found.map(|at| others.swap_remove(at)).is_none()
    };
    fates.iter().filter(is_extra).cloned().collect()
}

/// Returns whether the frames of each input that have left keep their order at each output.
fn is_in_order(in_gates: &[Fate], by_ingress: &[Vec<Fate>]) -> bool {
    by_ingress.iter().all(|expected| {
        expected.iter().map(Fate::output).all(|output| {
            let of = |fates: &[Fate]| -> Vec<Fate> {
                let is_both = |fate: &Fate| expected.contains(fate) && in_gates.contains(fate);
                let is_of = |fate: &&Fate| fate.output() == output && is_both(fate);
                fates.iter().filter(is_of).cloned().collect()
            };
            of(in_gates) == of(expected)
        })
    })
}

/// Compares frames and bytes in the registers with those that were counted outside of the gates.
fn compare_registers(gates: &mut RtlDataplane, poisoned: &[u64]) {
    let counters = gates.counters().clone();
    let (_, pins) = gates.registers();
    for port in (0..PORTS).map(PortNo) {
        let outside = counters.port(port);
        let pairs = [
            (counter::RX_FRAMES, outside.rx_frames),
            (counter::RX_BYTES, outside.rx_bytes),
            (counter::TX_FRAMES, outside.tx_frames),
            (counter::TX_BYTES, outside.tx_bytes),
            (counter::POISONED, poisoned[port.index()]),
        ];
        for (counter, expected) in pairs {
            let found = driver::count(pins, port, &counter);
            assert_eq!(u64::from(found), expected, "{} of port {}", counter.name, port.0);
        }
    }
}

fn compare(width: HopWidth) {
    let Some(gates) = gates(width) else { return };
    let (seed, frames) = (number("AXON_SEED", 1), number("AXON_RTL_FRAMES", FRAMES));
    let mut pair = Pair {
        gates: Tested::new(gates),
        plane: Tested::new(Plane::new(config(width))),
        frames: Frames::new(seed, width),
        kinds: Vec::new(),
        received: 0,
        ended: Vec::new(),
        poisoned: [0; PORTS as usize],
        width,
        stamped: 0,
    };
    println!("{width:?}: AXON_SEED={seed} AXON_RTL_FRAMES={frames}");
    let mut round = 0;
    while pair.received < frames / WIDTHS.len() as u64 {
        if round % EPOCH == 0 {
            pair.begin_epoch();
        }
        pair.compare(seed);
        round += 1;
    }
    println!("{width:?}: {} frames, {:?} poisoned", pair.received, pair.poisoned);
    assert!(frames < FRAMES || pair.poisoned.iter().any(|&count| count > 0), "no bad frame left");
    assert!(pair.stamped > frames / 100, "{} probes with records", pair.stamped);
    compare_registers(&mut pair.gates.plane, &pair.poisoned);
}

#[test]
fn the_gates_do_as_the_software_plane_with_hops_of_4_bits() {
    compare(HopWidth::Four);
}

#[test]
fn the_gates_do_as_the_software_plane_with_hops_of_8_bits() {
    compare(HopWidth::Eight);
}

#[test]
fn the_gates_do_as_the_software_plane_with_hops_of_16_bits() {
    compare(HopWidth::Sixteen);
}
