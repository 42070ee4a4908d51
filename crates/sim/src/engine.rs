//! The engine: stations, links between them, and events in one total order.
//!
//! In plain English: take the earliest event; hand it to the station it is for; carry out
//! what the station asks for (a frame on a wire becomes an arrival and a `TxDone` to come);
//! see to it that the station is woken when it wants to be; repeat. One thread, no clock.
//!
//! The engine knows nothing of fabrics: [`crate::World`] builds one from a
//! fabric file, tests may plug any [`Node`](axon_plane::Node) together.

use crate::links::{Link, LinkId, Loss};
use crate::queue::{Key, Queue};
use crate::station::Station;
use crate::trace::{Trace, What};
use axon_fabric::model::FaultKind;
use axon_plane::{Action, Input, Note};
use axon_wire::{Frame, FrameBuf, PortNo, Time};
use std::io::Write;

/// Wake-ups at one instant after which a node is held to be broken.
const STUCK_MAX: u32 = 10_000;

/// Something to come.
#[derive(Debug)]
pub(crate) enum Event {
    /// A frame comes out of a link at the end that `side` does not name.
    Arrive { link: LinkId, side: usize, epoch: u32, frame: FrameBuf },
    /// A wire is free, if the jack's turn is still this one.
    TxDone { station: usize, port: PortNo, turn: u32 },
    /// A station wanted to be called, if it is still armed for this instant.
    Wake { station: usize },
    /// Something breaks or comes back.
    Fault(FaultKind),
}

/// The engine.
pub struct Engine {
    pub(crate) now: Time,
    pub(crate) seed: u64,
    pub(crate) queue: Queue<Event>,
    pub(crate) stations: Vec<Station>,
    pub(crate) links: Vec<Link>,
    pub(crate) trace: Trace,
    pub(crate) out: Vec<Action<FrameBuf>>,
    pub(crate) notes: Vec<(Time, usize, Note)>,
    pub(crate) faults_caused: u64,
    pub(crate) sent_nowhere: u64,
    pub(crate) events: u64,
    pub(crate) packet_hops: u64,
}

impl Engine {
    /// An empty world; `text` takes the trace as lines, if given.
    pub fn new(seed: u64, text: Option<Box<dyn Write>>) -> Engine {
        Engine {
            now: Time::ZERO,
            seed,
            queue: Queue::default(),
            stations: Vec::new(),
            links: Vec::new(),
            trace: Trace::new(text),
            out: Vec::new(),
            notes: Vec::new(),
            faults_caused: 0,
            sent_nowhere: 0,
            events: 0,
            packet_hops: 0,
        }
    }

    /// Adds a place for a node, without power; the number names it.
    pub fn add_station(&mut self, name: &str) -> usize {
        self.trace.name(name);
        self.stations.push(Station::new(name.to_owned()));
        self.stations.len() - 1
    }

    /// Plans a fault. The caller carries it out when [`Engine::step`] returns it.
    pub fn plan(&mut self, at: Time, fault: FaultKind) {
        let key = Key { time: at.max(self.now), source: Key::WORLD, sequence: self.faults_caused };
        self.faults_caused += 1;
        self.queue.push(key, Event::Fault(fault));
    }

    /// Handles the earliest event, unless it lies beyond `limit`. Returns a fault that is
    /// now due; `None` with [`Engine::now`] at `limit` when nothing is left before it.
    pub fn step(&mut self, limit: Time) -> Step {
        let Some(key) = self.queue.peek().filter(|key| key.time <= limit) else {
            self.now = self.now.max(limit);
            return Step::Limit;
        };
        let Some((_, event)) = self.queue.pop() else {
            return Step::Limit;
        };
        self.now = key.time;
        self.events += 1;
        match event {
            Event::Arrive { link, side, epoch, frame } => self.arrive(link, side, epoch, frame),
            Event::TxDone { station, port, turn } => {
                let jack = self.stations[station].jack(port.index());
                if jack.turn == turn && jack.busy {
                    jack.busy = false;
                    self.hand(station, Input::TxDone { port });
                }
            }
            Event::Wake { station } => self.wake(station),
            Event::Fault(fault) => {
                let what = What::Fault(fault);
                self.trace.add(self.now, usize::MAX, PortNo::CONTROL, what);
                return Step::Fault(fault);
            }
        }
        Step::Event
    }

    fn arrive(&mut self, link: LinkId, side: usize, epoch: u32, frame: FrameBuf) {
        let state = &mut self.links[link.0];
        let (from, to) = (state.ends[side], state.ends[1 - side]);
        if let Some(loss) = state.arrive(side, epoch) {
            self.trace.add(self.now, from.station, from.port, What::Lost(loss, frame.bytes()));
            return;
        }
        self.packet_hops += 1;
        self.trace.add(self.now, to.station, to.port, What::Received(frame.bytes()));
        self.stations[to.station].accounts.received += 1;
        self.hand(
            to.station,
            Input::Frame { port: to.port, frame, complete_at: self.now, intact: true },
        );
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
        let mut out = std::mem::take(&mut self.out);
        self.stations[station].body.handle(self.now, input, &mut out);
        for action in out.drain(..) {
            match action {
                Action::Transmit { port, frame, complete_at, .. } => {
                    self.transmit(station, port, frame, complete_at);
                }
                Action::Dropped { ingress, reason, frame } => {
                    self.stations[station].accounts.dropped[reason as usize] += 1;
                    let what = What::Dropped(reason, frame.bytes());
                    self.trace.add(self.now, station, ingress, what);
                }
                Action::Note(note) => {
                    self.trace.add(self.now, station, PortNo::CONTROL, What::Note(&note));
                    self.notes.push((self.now, station, note));
                }
                Action::Punt { ingress, .. } => {
                    let name = &self.stations[station].name;
                    panic!("{name} hands out a punt of {ingress}: a whole node consumes them");
                }
            }
        }
        self.out = out;
        self.arm(station);
    }

    fn transmit(&mut self, station: usize, port: PortNo, frame: FrameBuf, complete_at: Time) {
        let now = self.now;
        self.trace.add(now, station, port, What::Sent(frame.bytes()));
        let state = &mut self.stations[station];
        state.accounts.sent += 1;
        let name = &state.name;
        assert!(
            !state.jacks.get(port.index()).is_some_and(|jack| jack.busy),
            "{name}-{port}: a second frame before TxDone"
        );
        let jack = state.jack(port.index());
        jack.busy = true;
        jack.turn += 1;
        let turn = jack.turn;
        let mut free = now;
        let mut loss = Some(Loss::NoCarrier);
        if let Some((id, side)) = jack.link {
            let link = &mut self.links[id.0];
            let passage = link.passage(now, frame.bytes().len(), complete_at);
            loss = link.send(side);
            if loss.is_none() {
                let event = Event::Arrive { link: id, side, epoch: link.epoch, frame };
                self.push(station, passage.arrival, event);
                self.push(station, passage.free, Event::TxDone { station, port, turn });
                return;
            }
            if loss != Some(Loss::NoCarrier) {
                free = passage.free;
            }
        }
        if jack.link.is_none() {
            self.sent_nowhere += 1;
        }
        if let Some(loss) = loss {
            self.trace.add(now, station, port, What::Lost(loss, frame.bytes()));
        }
        self.push(station, free, Event::TxDone { station, port, turn });
    }

    /// Puts a wake-up in the queue if the one that is there, if any, is too late.
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
            self.push(station, at, Event::Wake { station });
        }
    }

    fn push(&mut self, station: usize, time: Time, event: Event) {
        let state = &mut self.stations[station];
        let key = Key { time, source: station as u32, sequence: state.sequence };
        state.sequence += 1;
        self.queue.push(key, event);
    }

    /// Lets a station look at its clock now: after its owner has given it work.
    pub fn nudge(&mut self, station: usize) {
        self.arm(station);
    }
}

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// An event was handled.
    Event,
    /// This fault is due: the caller carries it out.
    Fault(FaultKind),
    /// Nothing is left before the limit.
    Limit,
}
