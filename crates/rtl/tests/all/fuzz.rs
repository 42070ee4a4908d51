//! Wrong events at the pins of the device, and good frames among them.
//!
//! Behind every wrong event comes a good frame, which must have the fate that the software plane
//! gives it. The events of a round are on all wires at the same time; sometimes a link goes down
//! and comes back meanwhile. When the device is at rest, every counter that has changed is compared
//! with what was on the wires: frames in are frames out and drops by reason. A frame whose error
//! comes after it has begun to leave leaves poisoned; another is dropped for its first error.
//!
//! `AXON_RTL_FRAMES` sets the number of events and frames over all hop widths, `AXON_SEED` the
//! seed.

use crate::fates::{FRAME_BYTES_MIN, Fate, PORTS, Tested, WIDTHS, config};
use crate::frames::Frames;
use crate::needs;
use crate::probes;
use crate::traffic::number;
use crate::wrongs::{self, Limits, WRONGS, Wrong};
use axon_node::{Action, Dataplane, Drop, Input, Node, PortKind, PortSetting, Punt};
use axon_node::{RouteChange, RouteKey, RouteTicket};
use axon_plane::{Plane, PlaneConfig};
use axon_rtl::driver::{self, Driver};
use axon_rtl::gmii::{Carrier, fcs};
use axon_rtl::pins::{Left, Pins};
use axon_rtl::registers::{Counter, counter, port};
use axon_rtl::{Model, ModelError};
use axon_wire::header::HeaderView;
use axon_wire::probe::RECORD_BYTES;
use axon_wire::{FrameBuf, HopWidth, PortNo};
use std::collections::BTreeMap;

/// Events and frames of a normal run, over all hop widths.
const EVENTS: u64 = 6000;
/// Rounds after which the ports get other settings and other routes.
const EPOCH: u64 = 80;
/// Bytes that one port gets in a round: they fit a buffer.
const ROUND_BYTES: usize = 1800;
/// Longest good frame behind an event, in bytes with its header.
const GOOD_BYTES: usize = 420;
/// Cycles beside its bytes in which a port without carrier drops a frame.
const DROP_CYCLES: u64 = 100;
/// Cycles after which a device that is not at rest is stuck.
const REST_CYCLES: u64 = 200_000;
/// Preamble and start delimiter.
const START: u8 = 0xd5;
const PREAMBLE: u8 = 0x55;
/// Shortest gap in front of a frame, in cycles.
const GAP_MIN: usize = 4;

/// Counters of a port, in the order of [`counter::ALL`].
type Counts = [u64; counter::ALL.len()];

fn at(counter: &Counter) -> usize {
    counter::ALL.iter().position(|one| one == counter).expect("one of all")
}

fn at_drop(reason: Drop) -> usize {
    let number = Drop::ALL.iter().position(|&one| one == reason);
    let counts = |one: &Counter| one.drop.map(usize::from) == number;
    counter::ALL.iter().position(counts).unwrap_or_else(|| panic!("no counter of {reason:?}"))
}

/// Counters as they must be, and what may be added to them.
#[derive(Default)]
struct Account {
    exact: Counts,
    most: Counts,
}

impl Account {
    fn add(&mut self, counter: &Counter, count: u64) {
        self.exact[at(counter)] += count;
    }
}

/// Outcome of bytes on a wire at its receiver.
enum Received {
    /// No frame.
    NoStart,
    /// A frame without FCS, as far as it is let in, and the error that it has by itself.
    Frame { bytes: Vec<u8>, is_empty: bool, error: Option<Drop> },
}

/// Receives bytes behind a gap, as IEEE 802.3 and `gmii_rx.sv` say.
fn received(carrier: &Carrier, gap: usize, bytes_max: usize) -> Received {
    let preamble = carrier.bytes.iter().take_while(|&&byte| byte == PREAMBLE).count();
    if gap < GAP_MIN || preamble == 0 || carrier.bytes.get(preamble) != Some(&START) {
        return Received::NoStart;
    }
    let body = &carrier.bytes[preamble + 1..];
    let (frame, tail) = body.split_at(body.len().saturating_sub(4));
    let error = if frame.len() > bytes_max {
        Some(Drop::Oversized)
    } else if carrier.error_at.is_some() || tail != fcs(frame) {
        Some(Drop::BadFcs)
    } else {
        (frame.len() < FRAME_BYTES_MIN).then_some(Drop::Malformed)
    };
    let bytes = frame[..frame.len().min(bytes_max)].to_vec();
    Received::Frame { bytes, is_empty: body.is_empty(), error }
}

/// Number of frames in a round, by what became of them.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    /// Bytes on a wire that are no frame.
    no_start: u64,
    /// Frames that came from the wires and from the CPU.
    received: u64,
    sent: u64,
    punted: u64,
    dropped: u64,
    poisoned: u64,
}

struct Fuzz {
    pins: Pins,
    driver: Driver,
    plane: Tested<Plane>,
    frames: Frames,
    limits: Limits,
    kinds: Vec<PortKind>,
    ups: Vec<bool>,
    /// Counters of each port and of the CPU after the last round.
    seen: Vec<Counts>,
    events: u64,
    by_kind: BTreeMap<Wrong, u64>,
    totals: Totals,
    /// Prefix of messages.
    place: String,
}

impl Fuzz {
    fn new(model: Model, seed: u64, width: HopWidth) -> Fuzz {
        let config = config(width);
        let size = model.size();
        let mut pins = Pins::new(model);
        let driver = Driver::new(&mut pins, size, &config);
        Fuzz {
            driver,
            pins,
            plane: Tested::new(Plane::new(config)),
            frames: Frames::new(seed, width),
            limits: Limits { frame_bytes: 0, bytes: 0 },
            kinds: Vec::new(),
            ups: vec![false; usize::from(PORTS)],
            seen: vec![[0; counter::ALL.len()]; usize::from(PORTS) + 1],
            events: 0,
            by_kind: BTreeMap::new(),
            totals: Totals::default(),
            place: String::new(),
        }
    }

    /// Sets other kinds, carriers, limits and routes.
    fn begin_epoch(&mut self) {
        let width = self.frames.width();
        let frame_bytes = [128, 256, 512, 1514][self.frames.below(4) as usize];
        let config = PlaneConfig { frame_bytes_max: frame_bytes, ..config(width) };
        self.limits = Limits { frame_bytes, bytes: config.probe_bytes_max().min(1984) };
        self.plane.plane = Plane::new(config);
        self.kinds = (0..PORTS).map(|_| self.frames.kind()).collect();
        let down = self.frames.one_in(3).then(|| self.frames.below(PORTS.into()) as u16);
        for number in 0..PORTS {
            let (port, kind) = (PortNo(number), self.kinds[usize::from(number)]);
            let is_up = Some(number) != down;
            self.ups[usize::from(number)] = is_up;
            self.pins.set_link(port, is_up);
            let mut set = |register, value| driver::set(&mut self.pins, port, register, value);
            set(&port::FRAME_BYTES_MAX, self.limits.frame_bytes as u32);
            set(&port::BYTES_MAX, self.limits.bytes as u32);
            set(&port::IS_STORED, self.frames.below(2) as u32);
            self.driver.clear(&mut self.pins, port);
            self.driver.set_kind(&mut self.pins, port, kind);
            let (now, mut out) = (self.plane.now, Vec::new());
            let setting = PortSetting::Kind(kind);
            self.plane.plane.set_port(now, port, setting, &mut out).expect("a kind");
            if is_up {
                self.plane.handle(Input::Link { port, up: true });
            }
        }
        for _ in 0..30 {
            let port = PortNo(self.frames.below(PORTS.into()) as u16);
            let source = self.frames.one_in(3).then(|| self.frames.host());
            let key = RouteKey::to(self.frames.host()).from_source(source);
            let route = self.frames.route();
            let change = RouteChange::Install { port, key, route: route.clone() };
            let done = self.plane.plane.change_route(self.plane.now, RouteTicket(0), change);
            let in_gates = self.driver.install(&mut self.pins, port, key, route);
            assert_eq!(Some(in_gates), done);
        }
    }

    /// Returns the events and frames of one port in a round.
    fn events(&mut self, port: PortNo) -> Vec<Carrier> {
        let kind = self.kinds[port.index()];
        let (mut all, mut bytes) = (Vec::new(), 0);
        for _ in 0..1 + self.frames.below(5) {
            let wrong = WRONGS[self.frames.below(WRONGS.len() as u64) as usize];
            let event = wrongs::event(&mut self.frames, wrong, kind, self.limits);
            bytes += event.iter().map(|one| one.bytes.len()).sum::<usize>();
            if bytes > ROUND_BYTES && !all.is_empty() {
                break;
            }
            *self.by_kind.entry(wrong).or_default() += 1;
            all.extend(event);
            bytes += GOOD_BYTES;
            if bytes <= ROUND_BYTES {
                let frame = self.frames.frame(kind, self.limits.frame_bytes.min(300));
                all.push(Carrier::of(&frame, None));
            }
        }
        all
    }

    /// Runs until the device is at rest.
    fn rest(&mut self) {
        let until = self.pins.cycle() + REST_CYCLES;
        self.pins.run(until);
        assert!(self.pins.is_quiet(), "{}: the device is not at rest", self.place);
    }

    /// Waits until ports without carrier have dropped all that their buffers hold.
    fn drain(&mut self) {
        let mut dropped = None;
        loop {
            let count = |port| driver::count(&mut self.pins, port, &counter::PORT_DOWN);
            let ports = (0..PORTS).map(PortNo).chain([PortNo::CONTROL]);
            let all: Vec<_> = ports.map(count).collect();
            if dropped.replace(all.clone()) == Some(all) {
                return;
            }
            self.pins.run(self.pins.cycle() + self.limits.bytes as u64 + DROP_CYCLES);
        }
    }

    /// Takes down the link of `port` for some time. Returns the carriers of the port that were on
    /// its wire, the last of them cut short.
    fn flap(&mut self, port: PortNo, mut events: Vec<Carrier>) -> Vec<Carrier> {
        let total: usize = events.iter().map(|one| one.bytes.len()).sum();
        self.pins.run(self.pins.cycle() + self.frames.below(total as u64 * 3 / 2 + 100));
        let mut left = total - self.pins.backlog(port);
        let removed = self.pins.set_link(port, false).len();
        let mut on_wire = Vec::new();
        let mut all = events.drain(..);
        while left > 0 {
            let mut carrier = all.next().expect("as many bytes as were fed");
            let cut = left.max(9);
            if carrier.bytes.len() > left {
                carrier.bytes.truncate(cut);
            }
            left = left.saturating_sub(carrier.bytes.len());
            on_wire.push(carrier);
        }
        assert_eq!(all.count(), removed, "{}: frames that were cut off", self.place);
        self.pins.run(self.pins.cycle() + self.frames.below(400));
        self.pins.set_link(port, true);
        on_wire
    }

    /// Reads counters while frames arrive, which must not lose a count.
    fn read_counters(&mut self) {
        self.pins.run(self.pins.cycle() + self.frames.below(1000));
        for _ in 0..100 {
            let port = PortNo(self.frames.below(PORTS.into()) as u16);
            driver::count(&mut self.pins, port, &counter::RX_FRAMES);
        }
    }

    /// Returns what the software plane makes of a frame: its fate, or the reason of its drop.
    fn fate(&mut self, port: PortNo, frame: &[u8]) -> Result<Fate, Drop> {
        let (now, mut out) = (self.plane.now, Vec::new());
        let frame = FrameBuf::new(frame);
        let input = Input::Frame { port, frame, complete_at: now, intact: true };
        self.plane.plane.handle(now, input, &mut out);
        let drop = out.iter().find_map(|action| match action {
            Action::Dropped { reason, .. } => Some(*reason),
            _ => None,
        });
        match (self.plane.fates(out).pop(), drop) {
            (Some(fate), None) => Ok(fate),
            (None, Some(reason)) => Err(reason),
            other => panic!("{}: not one fate: {other:?}", self.place),
        }
    }

    /// Runs one round and compares.
    fn round(&mut self) {
        let mut wires: Vec<_> = (0..PORTS)
            .map(PortNo)
            .map(|port| if self.ups[port.index()] { self.events(port) } else { Vec::new() })
            .collect();
        for (port, carriers) in (0..PORTS).map(PortNo).zip(&wires) {
            self.events += carriers.len() as u64;
            carriers.iter().for_each(|one| self.pins.feed_carrier(port, one.clone()));
        }
        let injected = self.inject();
        let flapped = PortNo(self.frames.below(u64::from(PORTS) * 8) as u16);
        let flapped = self.ups.get(flapped.index()).is_some_and(|&up| up).then_some(flapped);
        if let Some(port) = flapped {
            let events = std::mem::take(&mut wires[port.index()]);
            wires[port.index()] = self.flap(port, events);
        }
        if self.frames.one_in(4) {
            self.read_counters();
        }
        self.rest();
        if flapped.is_some() || self.ups.contains(&false) {
            self.drain();
        }
        self.check(&wires, injected, flapped);
    }

    /// Injects a frame of the CPU, sometimes for a port that does not exist. Returns both.
    fn inject(&mut self) -> Option<(PortNo, Vec<u8>)> {
        if !self.frames.one_in(4) {
            return None;
        }
        let frame = self.frames.bytes(1, 300);
        let port = PortNo(self.frames.below(u64::from(PORTS) + 1) as u16);
        self.pins.inject(port, &frame);
        self.events += 1;
        Some((port, frame))
    }

    /// Returns the accounts of all ports and of the CPU, and the fates of good frames.
    fn expected(
        &mut self,
        wires: &[Vec<Carrier>],
        injected: Option<(PortNo, Vec<u8>)>,
        flapped: Option<PortNo>,
    ) -> (Vec<Account>, Vec<Fate>, Totals) {
        let mut accounts: Vec<_> = (0..=PORTS).map(|_| Account::default()).collect();
        let (mut fates, mut totals) = (Vec::new(), Totals::default());
        for (port, carriers) in (0..PORTS).map(PortNo).zip(wires) {
            let mut gap = usize::MAX;
            for carrier in carriers {
                let received = received(carrier, gap, self.limits.bytes);
                gap = carrier.gap;
                let account = &mut accounts[port.index()];
                fates.extend(self.expect_frame(port, received, flapped, account, &mut totals));
            }
        }
        if let Some((port, frame)) = injected {
            let account = &mut accounts[usize::from(PORTS)];
            fates.extend(self.expect_injected(port, frame, flapped, account));
            totals.received += 1;
        }
        (accounts, fates, totals)
    }

    /// Adds what comes of bytes on the wire of `port` to its account. Returns the fate of a good
    /// frame.
    fn expect_frame(
        &mut self,
        port: PortNo,
        received: Received,
        flapped: Option<PortNo>,
        account: &mut Account,
        totals: &mut Totals,
    ) -> Option<Fate> {
        let port_down = at_drop(Drop::PortDown);
        let Received::Frame { bytes, is_empty, error } = received else {
            totals.no_start += 1;
            account.add(&counter::NO_START, 1);
            return None;
        };
        let is_runt = bytes.len() < FRAME_BYTES_MIN;
        if is_runt {
            account.add(&counter::RUNTS, 1);
        } else {
            account.add(&counter::RX_FRAMES, 1);
            account.add(&counter::RX_BYTES, bytes.len() as u64);
        }
        if is_empty {
            return None;
        }
        totals.received += 1;
        let fate = match error {
            None => self.fate(port, &bytes),
            Some(error) => Err(error),
        };
        let reason = match fate {
            Ok(fate) => {
                if flapped.is_some() && fate.output() == flapped {
                    account.most[port_down] += 1;
                }
                if let Fate::Punted { punt, .. } = fate {
                    account.exact[at_punt(punt)] += 1;
                }
                return Some(fate);
            }
            Err(reason) => reason,
        };
        let is_decided = error.is_none() && !matches!(reason, Drop::Malformed | Drop::Oversized);
        // Fragments may come faster than a header is put in front of them.
        if is_runt {
            account.most[at_drop(Drop::QueueFull)] += 1;
        }
        if is_decided && !(flapped.is_some() && reason == Drop::EgressUnknown) {
            account.exact[at_drop(reason)] += 1;
        } else {
            account.most[at_drop(reason)] += 1;
            if flapped.is_some() || self.ups.contains(&false) {
                account.most[port_down] += 1;
            }
        }
        None
    }

    /// Adds a frame of the CPU to its account. Returns its fate if a port sends it.
    fn expect_injected(
        &self,
        port: PortNo,
        frame: Vec<u8>,
        flapped: Option<PortNo>,
        account: &mut Account,
    ) -> Option<Fate> {
        account.add(&counter::RX_FRAMES, 1);
        account.add(&counter::RX_BYTES, frame.len() as u64);
        let mut padded = frame;
        padded.resize(padded.len().max(FRAME_BYTES_MIN), 0);
        match self.ups.get(port.index()) {
            None => account.add(&counter::NO_SUCH_PORT, 1),
            Some(false) => account.add(&counter::PORT_DOWN, 1),
            Some(true) => {
                account.most[at_drop(Drop::PortDown)] += u64::from(flapped == Some(port));
                return Some(Fate::Sent { port, frame: padded, intact: true });
            }
        }
        None
    }

    /// Takes the frames that have left: those that are good, and the accounts with the rest.
    fn left(&mut self, accounts: &mut [Account], totals: &mut Totals) -> Vec<Fate> {
        let mut fates = Vec::new();
        while let Some(left) = self.pins.take_left() {
            match left {
                Left::Sent { port, frame, intact, well_spaced, .. } => {
                    assert!(well_spaced || !intact, "{}: preamble or gap", self.place);
                    let account = &mut accounts[port.index()];
                    account.add(&counter::TX_FRAMES, 1);
                    account.add(&counter::TX_BYTES, frame.len() as u64);
                    if intact {
                        totals.sent += 1;
                        fates.push(Fate::Sent { port, frame, intact });
                    } else {
                        totals.poisoned += 1;
                        account.add(&counter::POISONED, 1);
                    }
                }
                Left::Punted { ingress, reason, frame } => {
                    let account = &mut accounts[usize::from(PORTS)];
                    account.add(&counter::TX_FRAMES, 1);
                    account.add(&counter::TX_BYTES, frame.len() as u64);
                    totals.punted += 1;
                    let (ingress, punt) = (PortNo(ingress.into()), Punt::ALL[usize::from(reason)]);
                    fates.push(Fate::Punted { ingress, punt, header_bytes: 0, frame });
                }
            }
        }
        fates
    }

    /// Compares what has left, and all counters, with what was on the wires.
    fn check(
        &mut self,
        wires: &[Vec<Carrier>],
        injected: Option<(PortNo, Vec<u8>)>,
        flapped: Option<PortNo>,
    ) {
        let place = self.place.clone();
        let (mut accounts, expected, mut totals) = self.expected(wires, injected, flapped);
        let fates = self.left(&mut accounts, &mut totals);
        // The header of a punted frame is counted outside of the gates.
        let mut missing: Vec<Fate> = expected.into_iter().map(without_header_bytes).collect();
        let width = self.frames.width();
        for fate in &mut missing {
            probes::clear_last_times_of(fate);
            // In gates the record of an ether probe has to fit the longest frame of a host.
            if let Fate::Punted { punt: Punt::EtherProbe, frame, .. } = fate
                && frame.len() > self.limits.frame_bytes
            {
                frame.truncate(frame.len() - RECORD_BYTES);
            }
        }
        for mut fate in fates {
            fate = as_ether_probe(fate, width);
            probes::clear_last_times_of(&mut fate);
            match missing.iter().position(|one| *one == fate) {
                Some(at) => drop(missing.swap_remove(at)),
                None => panic!("{place}: {fate:?} was not expected, but {missing:?}"),
            }
        }
        let is_excused = |fate: &Fate| flapped.is_some() && fate.output() == flapped;
        assert!(missing.iter().all(is_excused), "{place}: {missing:?} of {:?}", self.kinds);
        for (number, account) in (0..=PORTS).zip(&accounts) {
            let port = if number == PORTS { PortNo::CONTROL } else { PortNo(number) };
            for (at, counter) in counter::ALL.iter().enumerate() {
                let now = driver::count(&mut self.pins, port, counter);
                let seen = &mut self.seen[usize::from(number)][at];
                let change = u64::from(now.wrapping_sub(*seen as u32));
                *seen = now.into();
                let least = account.exact[at];
                let range = least..=least + account.most[at];
                let name = counter.name;
                assert!(range.contains(&change), "{place}: {port} {name} {change}, not {range:?}");
                totals.dropped += if counter.drop.is_some() { change } else { 0 };
            }
        }
        let ends = totals.sent + totals.punted + totals.dropped + totals.poisoned;
        assert_eq!(totals.received, ends, "{place}: {totals:?}");
        self.totals.no_start += totals.no_start;
        self.totals.received += totals.received;
        self.totals.sent += totals.sent;
        self.totals.punted += totals.punted;
        self.totals.dropped += totals.dropped;
        self.totals.poisoned += totals.poisoned;
    }
}

/// Returns the counter of a reason; the gates count an ether probe as a miss.
fn at_punt(punt: Punt) -> usize {
    let punt = if punt == Punt::EtherProbe { Punt::Miss } else { punt };
    let number = Punt::ALL.iter().position(|&one| one == punt);
    let counts = |one: &Counter| one.punt.map(usize::from) == number;
    counter::ALL.iter().position(counts).unwrap_or_else(|| panic!("no counter of {punt:?}"))
}

/// Returns an ether probe that the gates punt as a miss as one, without the header in front of it.
fn as_ether_probe(fate: Fate, width: HopWidth) -> Fate {
    let Fate::Punted { ingress, punt: Punt::Miss, header_bytes, frame } = &fate else {
        return fate;
    };
    let bytes = HeaderView::parse(frame, width).map_or(0, |view| view.header_bytes());
    if !axon_wire::probe::is_ether(&frame[bytes..]) {
        return fate;
    }
    let frame = frame[bytes..].to_vec();
    Fate::Punted { ingress: *ingress, punt: Punt::EtherProbe, header_bytes: *header_bytes, frame }
}

fn without_header_bytes(fate: Fate) -> Fate {
    match fate {
        Fate::Punted { ingress, punt, frame, .. } => {
            Fate::Punted { ingress, punt, header_bytes: 0, frame }
        }
        Fate::Sent { .. } => fate,
    }
}

fn fuzz(width: HopWidth) {
    let model = match Model::load(width) {
        Ok(model) => model,
        Err(error @ ModelError::Missing { .. }) => return needs::skip(&error.to_string()),
        Err(error) => panic!("{error}"),
    };
    let (seed, events) = (number("AXON_SEED", 1), number("AXON_RTL_FRAMES", EVENTS));
    println!("{width:?}: AXON_SEED={seed} AXON_RTL_FRAMES={events}");
    let mut fuzz = Fuzz::new(model, seed, width);
    let mut round = 0;
    while fuzz.events < events / WIDTHS.len() as u64 {
        fuzz.place = format!("AXON_SEED={seed}, round {round}, event {}", fuzz.events);
        if round % EPOCH == 0 {
            fuzz.begin_epoch();
        }
        fuzz.round();
        round += 1;
    }
    let Totals { received, sent, punted, .. } = fuzz.totals;
    println!("{width:?}: {} events, {:?}, {:?}", fuzz.events, fuzz.totals, fuzz.by_kind);
    println!("{width:?}: {} cycles", fuzz.pins.cycle());
    assert!(sent + punted > received / 4, "few good frames pass: {:?}", fuzz.totals);
    assert!(events < EVENTS || fuzz.by_kind.len() == WRONGS.len(), "{:?}", fuzz.by_kind);
}

#[test]
fn nothing_wrong_hinders_the_next_good_frame_with_hops_of_4_bits() {
    fuzz(HopWidth::Four);
}

#[test]
fn nothing_wrong_hinders_the_next_good_frame_with_hops_of_8_bits() {
    fuzz(HopWidth::Eight);
}

#[test]
fn nothing_wrong_hinders_the_next_good_frame_with_hops_of_16_bits() {
    fuzz(HopWidth::Sixteen);
}
