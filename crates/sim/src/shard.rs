//! A part of the world that one thread runs: stations, and the events that are for them.
//!
//! In plain English: take the earliest event; hand it to the station it is for; carry out
//! what the station asks for (a frame on a wire becomes an arrival to come); see to it that
//! the station is woken when it wants to be; repeat.
//!
//! **`TxDone` is lazy.** A wire that is free again matters only to somebody who waits for it,
//! and mostly nobody does. So a `TxDone` becomes an event only while its station waits for the
//! port ([`Node::waits_for`](axon_plane::Node::waits_for)); the others are delivered before
//! the next input of the station, each with the time at which it was due. The order at one
//! instant is the same for both: before any other input of an instant come the `TxDone`s due
//! at or before it, by time and then by port. So a station cannot tell the one from the
//! other, and the trace does not either.

use crate::device::Passage;
use crate::jack::{Place, Verdict};
use crate::links::Loss;
use crate::queue::{Key, Queue};
use crate::station::{Body, Owed, Station};
use crate::trace::{Line, What};
use axon_plane::{Action, Drop, Input, Note};
use axon_wire::{Frame, FrameBuf, PortNo, Time};

/// Wake-ups at one instant after which a node is held to be broken.
const STUCK_MAX: u32 = 10_000;

/// Stations of a shard above which what an event needs is fetched in advance.
const LARGE: usize = 256;

/// Something to come for the station in slot `station` of its shard.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) station: u32,
    pub(crate) kind: Kind,
}

/// What it is.
#[derive(Debug)]
pub(crate) enum Kind {
    /// A frame comes in by `port`, if the carrier there is still this one.
    Arrive { port: PortNo, intact: bool, carrier: u32, complete_at: Time, frame: FrameBuf },
    /// A wire that the station waits for is free.
    TxDone,
    /// It wanted to be called, if it is still armed for this instant.
    Wake,
}

impl Event {
    /// Reads a little of all that this event will need. In a large world that is not in the
    /// processor's caches; the reads for all events of a bucket do not depend on one another,
    /// so the waits for memory overlap instead of adding up.
    #[inline]
    fn touch(&self, stations: &[Station]) -> u64 {
        let station = &stations[self.station as usize];
        let mut sum = station.owed_first.ticks() ^ station.sequence;
        if let Kind::Arrive { port, frame, .. } = &self.kind {
            let plug = station.jacks.get(port.index()).and_then(|jack| jack.plug.as_ref());
            sum ^= plug.map_or(0, |plug| u64::from(plug.carrier) ^ plug.delivered);
            sum ^= frame.bytes().first().map_or(0, |&byte| u64::from(byte));
            if let Body::Switch(node) = &station.body {
                sum ^= node.plane().is_up(*port) as u64;
                sum ^= node.plane().counters().port(*port).rx_frames;
            }
        }
        sum
    }
}

/// Something for another shard.
pub(crate) type Parcel = (Key, Event);

/// Stations and their events.
pub(crate) struct Shard {
    pub(crate) number: u32,
    pub(crate) now: Time,
    pub(crate) queue: Queue<Event>,
    pub(crate) stations: Vec<Station>,
    /// For the other shards, by number.
    pub(crate) outbox: Vec<Vec<Parcel>>,
    pub(crate) notes: Vec<(Time, u32, Note)>,
    /// Lines of text, where somebody reads them.
    pub(crate) lines: Vec<Line>,
    pub(crate) written: bool,
    /// Some of its stations have [`Taps`](crate::capture::Taps).
    pub(crate) watched: bool,
    /// Every `TxDone` is an event: for tests, which must not see a difference.
    pub(crate) eager: bool,
    pub(crate) events: u64,
    pub(crate) packet_hops: u64,
    out: Vec<Action<FrameBuf>>,
}

impl Shard {
    pub(crate) fn new(number: u32, written: bool) -> Shard {
        Shard {
            number,
            now: Time::ZERO,
            queue: Queue::default(),
            stations: Vec::new(),
            outbox: Vec::new(),
            notes: Vec::new(),
            lines: Vec::new(),
            written,
            watched: false,
            eager: false,
            events: 0,
            packet_hops: 0,
            out: Vec::new(),
        }
    }

    /// Handles the earliest event, if it is due at or before `limit`.
    #[inline]
    pub(crate) fn step(&mut self, limit: Time) -> bool {
        let (stations, large) = (&self.stations, self.stations.len() >= LARGE);
        let mut touched = 0;
        let fetch = |event: &Event| touched ^= if large { event.touch(stations) } else { 0 };
        let next = self.queue.pop_until(limit, fetch);
        std::hint::black_box(touched);
        let Some((key, event)) = next else {
            return false;
        };
        self.now = key.time;
        self.events += 1;
        let station = event.station as usize;
        match event.kind {
            Kind::Arrive { port, intact, carrier, complete_at, frame } => {
                self.arrive(
                    station,
                    port,
                    carrier,
                    Input::Frame { port, frame, complete_at, intact },
                );
            }
            Kind::TxDone => {
                self.free_wires(station);
                self.arm(station);
            }
            Kind::Wake => self.wake(station),
        }
        true
    }

    pub(crate) fn arrive(
        &mut self,
        station: usize,
        port: PortNo,
        carrier: u32,
        input: Input<FrameBuf>,
    ) {
        let Input::Frame { frame, intact, .. } = &input else { return };
        let here = &mut self.stations[station];
        let plug = here.jacks[port.index()].plug.as_mut().filter(|plug| plug.carrier == carrier);
        let Some(plug) = plug else {
            return self.record(station, port, What::Lost(Loss::Cut, frame.bytes()));
        };
        plug.delivered += 1;
        self.packet_hops += 1;
        here.accounts.received += 1;
        let bad = !intact && here.body.is_host();
        self.record(station, port, What::Received(frame.bytes()));
        if bad {
            self.stations[station].accounts.dropped[Drop::BadFcs as usize] += 1;
            return self.record(station, port, What::Dropped(Drop::BadFcs, frame.bytes()));
        }
        self.hand(station, input);
    }

    fn wake(&mut self, station: usize) {
        let state = &mut self.stations[station];
        if state.armed != Some(self.now) {
            return;
        }
        state.armed = None;
        match state.body.deadline() {
            Some(deadline) if deadline <= self.now => self.hand(station, Input::Timeout),
            _ => self.arm(station),
        }
    }

    /// Calls a station and carries out what it asks for.
    pub(crate) fn hand(&mut self, station: usize, input: Input<FrameBuf>) {
        if self.stations[station].owed_first <= self.now {
            self.free_wires(station);
        }
        self.call(station, self.now, input);
        self.arm(station);
    }

    /// Delivers the `TxDone`s that are due.
    pub(crate) fn free_wires(&mut self, station: usize) {
        while let Some(Owed { due, port, .. }) = self.stations[station].take_due(self.now) {
            let state = &mut self.stations[station];
            state.jacks[port.index()].busy = false;
            state.body.handle(due, Input::TxDone { port }, &mut self.out);
            if !self.out.is_empty() {
                self.carry_out(station);
            }
        }
    }

    #[inline]
    fn call(&mut self, station: usize, at: Time, input: Input<FrameBuf>) {
        self.stations[station].body.handle(at, input, &mut self.out);
        self.carry_out(station);
    }

    /// Does what a station has asked for.
    fn carry_out(&mut self, station: usize) {
        let mut out = std::mem::take(&mut self.out);
        for action in out.drain(..) {
            match action {
                Action::Transmit { port, frame, complete_at, intact } => {
                    self.transmit(station, port, frame, complete_at, intact);
                }
                Action::Dropped { ingress, reason, frame } => {
                    self.stations[station].accounts.dropped[reason as usize] += 1;
                    self.record(station, ingress, What::Dropped(reason, frame.bytes()));
                }
                Action::Note(note) => {
                    self.record(station, PortNo::CONTROL, What::Note(&note));
                    self.notes.push((self.now, self.stations[station].number, note));
                }
                Action::Punt { ingress, .. } => {
                    let name = &self.stations[station].name;
                    panic!("{name} hands out a punt of {ingress}: a whole node consumes them");
                }
            }
        }
        self.out = out;
        self.await_wires(station);
    }

    /// Plans an event for each busy wire that the station now waits for.
    #[inline]
    fn await_wires(&mut self, station: usize) {
        for index in 0..self.stations[station].owed.len() {
            let state = &mut self.stations[station];
            let Owed { due, port, planned } = state.owed[index];
            if !planned && (self.eager || state.body.waits_for(port)) {
                state.owed[index].planned = true;
                self.push_own(station, due, Kind::TxDone);
            }
        }
    }

    fn transmit(
        &mut self,
        station: usize,
        port: PortNo,
        mut frame: FrameBuf,
        complete_at: Time,
        intact: bool,
    ) {
        let now = self.now;
        self.record(station, port, What::Sent(frame.bytes()));
        let state = &mut self.stations[station];
        state.accounts.sent += 1;
        let jack = state.jack(port);
        assert!(!jack.busy, "{}-{port}: a second frame before TxDone", state.name);
        jack.busy = true;
        let Some(plug) = &mut jack.plug else {
            state.accounts.nowhere += 1;
            self.owe(station, port, now);
            return self.record(station, port, What::Lost(Loss::NoCarrier, frame.bytes()));
        };
        let verdict = plug.send(frame.bytes());
        if verdict == Verdict::Lost(Loss::NoCarrier) {
            self.owe(station, port, now);
            return self.record(station, port, What::Lost(Loss::NoCarrier, frame.bytes()));
        }
        let bytes = frame.bytes().len();
        let passage = plug.way.passage(now, bytes, complete_at, jack.wire_free, jack.handed_last);
        let Passage { gap_end, free, handed, complete } = passage;
        (jack.wire_free, jack.handed_last) = (gap_end, handed);
        let (peer, peer_port, carrier) = (plug.peer, plug.peer_port, plug.carrier);
        self.owe(station, port, free);
        let mut intact = intact;
        match verdict {
            Verdict::Passes => {}
            Verdict::Flips(bit) => {
                if let Some(byte) = frame.bytes_mut().get_mut((bit / 8) as usize) {
                    *byte ^= 1 << (bit % 8);
                }
                intact = false;
                self.record(station, port, What::Flipped(bit));
            }
            Verdict::Lost(loss) => {
                return self.record(station, port, What::Lost(loss, frame.bytes()));
            }
        }
        let arrive =
            Kind::Arrive { port: peer_port, intact, carrier, complete_at: complete, frame };
        self.push(station, handed, peer, arrive);
    }

    #[inline]
    fn owe(&mut self, station: usize, port: PortNo, due: Time) {
        let state = &mut self.stations[station];
        state.owed.push(Owed { due, port, planned: false });
        state.owed_first = state.owed_first.min(due);
    }

    /// Puts a wake-up in the queue if the one that is there, if any, is too late.
    #[inline]
    pub(crate) fn arm(&mut self, station: usize) {
        let state = &mut self.stations[station];
        let Some(deadline) = state.body.deadline() else {
            return;
        };
        let at = deadline.max(self.now);
        if at > self.now {
            state.stuck = 0;
        } else {
            state.stuck += 1;
            let name = &state.name;
            assert!(state.stuck < STUCK_MAX, "{name} stays due at {at} however often it is called");
        }
        if state.armed.is_none_or(|armed| armed > at) {
            state.armed = Some(at);
            self.push_own(station, at, Kind::Wake);
        }
    }

    fn push_own(&mut self, station: usize, time: Time, kind: Kind) {
        let to = Place { shard: self.number, slot: station as u32 };
        self.push(station, time, to, kind);
    }

    #[inline]
    fn push(&mut self, station: usize, time: Time, to: Place, kind: Kind) {
        let state = &mut self.stations[station];
        let key = Key { time, source: state.number, sequence: state.sequence };
        state.sequence += 1;
        let event = Event { station: to.slot, kind };
        if to.shard == self.number {
            self.queue.push(key, event);
        } else {
            self.outbox[to.shard as usize].push((key, event));
        }
    }

    /// Adds something that happens at a station now to its trace.
    #[inline]
    pub(crate) fn record(&mut self, station: usize, port: PortNo, what: What<'_>) {
        let state = &mut self.stations[station];
        state.trace.add(self.now, port, what);
        if self.written || self.watched {
            self.show(station, port, what);
        }
    }

    /// Shows what happens to those who want to see it.
    #[cold]
    fn show(&mut self, station: usize, port: PortNo, what: What<'_>) {
        let state = &mut self.stations[station];
        if self.written {
            let line = Line::new(self.now, state.number, &state.name, port, what);
            self.lines.push(line);
        }
        if let Some(taps) = &mut state.taps {
            taps.see(self.now, state.number, port, what);
        }
    }
}
