//! The engine: stations, links between them, and events in one total order.
//!
//! In plain English: take the earliest event; hand it to the station it is for; carry out
//! what the station asks for (a frame on a wire becomes an arrival and a `TxDone` to come);
//! see to it that the station is woken when it wants to be; repeat. One thread, no clock.
//!
//! The engine knows nothing of fabrics: [`crate::World`] builds one from a
//! fabric file, tests may plug any [`Node`](axon_plane::Node) together.

use crate::links::{Link, LinkId, Loss, WireEnd};
use crate::queue::{Key, Queue};
use crate::station::{Accounts, Body, Station};
use crate::trace::{Trace, What};
use axon_fabric::model::{FaultKind, Wire};
use axon_plane::{Action, Input, Note};
use axon_wire::{Frame, FrameBuf, PortNo, Time};
use std::io::Write;

/// Wake-ups at one instant after which a node is held to be broken.
const STUCK_MAX: u32 = 10_000;

/// Something to come.
#[derive(Debug)]
enum Event {
    /// A frame comes out of a link at the end that `side` does not name.
    Arrive {
        link: LinkId,
        side: usize,
        epoch: u32,
        frame: FrameBuf,
    },
    /// A wire is free, if the jack's turn is still this one.
    TxDone {
        station: usize,
        port: PortNo,
        turn: u32,
    },
    /// A station wanted to be called, if it is still armed for this instant.
    Wake { station: usize },
    /// Something breaks or comes back.
    Fault(FaultKind),
}

/// The engine.
pub struct Engine {
    now: Time,
    seed: u64,
    queue: Queue<Event>,
    stations: Vec<Station>,
    links: Vec<Link>,
    trace: Trace,
    out: Vec<Action<FrameBuf>>,
    notes: Vec<(Time, usize, Note)>,
    faults_caused: u64,
    sent_nowhere: u64,
    events: u64,
    packet_hops: u64,
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

    /// Plugs a link between two free ports.
    ///
    /// # Panics
    /// If a port is taken.
    pub fn plug(&mut self, a: WireEnd, b: WireEnd, wire: Wire) -> LinkId {
        let id = LinkId(self.links.len());
        self.links.push(Link::new([a, b], wire, self.seed, id));
        self.seat(id);
        self.refresh_carrier(id);
        id
    }

    /// Pulls both plugs of a link; what is under way on it is lost.
    pub fn unplug(&mut self, link: LinkId) {
        self.links[link.0].plugged = false;
        self.refresh_carrier(link);
        for end in self.links[link.0].ends {
            let jack = self.stations[end.station].jack(end.port.index());
            if jack.link.is_some_and(|(plugged, _)| plugged == link) {
                jack.link = None;
            }
        }
    }

    /// Plugs an unplugged link in again, perhaps elsewhere.
    ///
    /// # Panics
    /// If a port is taken.
    pub fn replug(&mut self, link: LinkId, a: WireEnd, b: WireEnd) {
        self.unplug(link);
        let state = &mut self.links[link.0];
        state.ends = [a, b];
        state.plugged = true;
        self.seat(link);
        self.refresh_carrier(link);
    }

    fn seat(&mut self, link: LinkId) {
        for (side, end) in self.links[link.0].ends.into_iter().enumerate() {
            let station = &mut self.stations[end.station];
            let name = &station.name;
            assert!(
                station
                    .jacks
                    .get(end.port.index())
                    .is_none_or(|jack| jack.link.is_none()),
                "{name}-{} is taken",
                end.port
            );
            station.jack(end.port.index()).link = Some((link, side));
        }
    }

    /// Breaks a link (both ends lose carrier) or mends it.
    pub fn set_cut(&mut self, link: LinkId, cut: bool) {
        self.links[link.0].cut = cut;
        self.refresh_carrier(link);
    }

    /// Makes a link swallow every frame while its ends keep carrier, or mends it.
    pub fn set_silent(&mut self, link: LinkId, silent: bool) {
        self.links[link.0].silent = silent;
    }

    /// Changes how many frames a link loses, per million.
    pub fn set_loss(&mut self, link: LinkId, loss_ppm: u32) {
        self.links[link.0].wire.loss_ppm = loss_ppm;
    }

    /// The incarnation that the station's next life will have: greater than any before.
    pub fn next_life(&self, station: usize) -> u64 {
        self.stations[station].lives + 1
    }

    /// Starts a life at a station; the one that runs there, if any, ends first.
    pub fn power_on(&mut self, station: usize, body: Body) {
        self.power_off(station);
        let state = &mut self.stations[station];
        state.lives += 1;
        state.body = body;
        let what = What::Power(Some(state.lives));
        self.trace.add(self.now, station, PortNo::CONTROL, what);
        self.refresh_station(station);
        self.arm(station);
    }

    /// Ends the life at a station: what it held is gone, its neighbours lose carrier.
    pub fn power_off(&mut self, station: usize) {
        let state = &mut self.stations[station];
        if !state.body.is_on() {
            return;
        }
        state.body = Body::Off;
        state.armed = None;
        let accounts = std::mem::take(&mut state.accounts);
        state.past.add(&accounts);
        self.trace
            .add(self.now, station, PortNo::CONTROL, What::Power(None));
        self.refresh_station(station);
    }

    fn refresh_station(&mut self, station: usize) {
        for index in 0..self.stations[station].jacks.len() {
            if let Some((link, _)) = self.stations[station].jacks[index].link {
                self.refresh_carrier(link);
            }
        }
    }

    /// Carrier is there when the link is plugged and whole and both ends have power. When
    /// that changes, frames under way are lost, no `TxDone` is owed, and the ends are told.
    fn refresh_carrier(&mut self, link: LinkId) {
        let state = &mut self.links[link.0];
        let ends = state.ends;
        let powered = ends
            .iter()
            .all(|end| self.stations[end.station].body.is_on());
        let carrier = state.plugged && !state.cut && powered;
        if carrier == state.carrier {
            return;
        }
        state.carrier = carrier;
        if !carrier {
            state.epoch += 1;
        }
        for end in ends {
            let station = &mut self.stations[end.station];
            let jack = station.jack(end.port.index());
            jack.busy = false;
            jack.turn += 1;
            if station.body.is_on() {
                self.trace
                    .add(self.now, end.station, end.port, What::Carrier(carrier));
                self.hand(
                    end.station,
                    Input::Link {
                        port: end.port,
                        up: carrier,
                    },
                );
            }
        }
    }

    /// Plans a fault. The caller carries it out when [`Engine::step`] returns it.
    pub fn plan(&mut self, at: Time, fault: FaultKind) {
        let key = Key {
            time: at.max(self.now),
            source: Key::WORLD,
            sequence: self.faults_caused,
        };
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
            Event::Arrive {
                link,
                side,
                epoch,
                frame,
            } => self.arrive(link, side, epoch, frame),
            Event::TxDone {
                station,
                port,
                turn,
            } => {
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
            self.trace.add(
                self.now,
                from.station,
                from.port,
                What::Lost(loss, frame.bytes()),
            );
            return;
        }
        self.packet_hops += 1;
        self.trace
            .add(self.now, to.station, to.port, What::Received(frame.bytes()));
        self.stations[to.station].accounts.received += 1;
        self.hand(
            to.station,
            Input::Frame {
                port: to.port,
                frame,
                complete_at: self.now,
            },
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
    fn hand(&mut self, station: usize, input: Input<FrameBuf>) {
        let mut out = std::mem::take(&mut self.out);
        self.stations[station]
            .body
            .handle(self.now, input, &mut out);
        for action in out.drain(..) {
            match action {
                Action::Transmit {
                    port,
                    frame,
                    complete_at,
                } => {
                    self.transmit(station, port, frame, complete_at);
                }
                Action::Dropped {
                    ingress,
                    reason,
                    frame,
                } => {
                    self.stations[station].accounts.dropped[reason as usize] += 1;
                    let what = What::Dropped(reason, frame.bytes());
                    self.trace.add(self.now, station, ingress, what);
                }
                Action::Note(note) => {
                    self.trace
                        .add(self.now, station, PortNo::CONTROL, What::Note(&note));
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
        self.trace
            .add(now, station, port, What::Sent(frame.bytes()));
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
                let event = Event::Arrive {
                    link: id,
                    side,
                    epoch: link.epoch,
                    frame,
                };
                self.push(station, passage.arrival, event);
                self.push(
                    station,
                    passage.free,
                    Event::TxDone {
                        station,
                        port,
                        turn,
                    },
                );
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
            self.trace
                .add(now, station, port, What::Lost(loss, frame.bytes()));
        }
        self.push(
            station,
            free,
            Event::TxDone {
                station,
                port,
                turn,
            },
        );
    }

    /// Puts a wake-up in the queue if the one that is there, if any, is too late.
    fn arm(&mut self, station: usize) {
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
            assert!(
                state.stuck < STUCK_MAX,
                "{name} stays due at {at} however often it is called"
            );
        }
        if state.armed.is_none_or(|armed| armed > at) {
            state.armed = Some(at);
            self.push(station, at, Event::Wake { station });
        }
    }

    fn push(&mut self, station: usize, time: Time, event: Event) {
        let state = &mut self.stations[station];
        let key = Key {
            time,
            source: station as u32,
            sequence: state.sequence,
        };
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

/// Looking.
impl Engine {
    /// Simulated time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// The stations, in the order they were added.
    pub fn stations(&self) -> &[Station] {
        &self.stations
    }

    /// One station, to change what stands there from outside. Call [`Engine::nudge`] after.
    pub fn station_mut(&mut self, station: usize) -> &mut Station {
        &mut self.stations[station]
    }

    /// The links, in the order of their ids.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// The link at a port, and which end of it is there.
    pub fn link_at(&self, end: WireEnd) -> Option<(LinkId, usize)> {
        self.stations
            .get(end.station)?
            .jacks
            .get(end.port.index())?
            .link
    }

    /// What the stations have said, in order: when, who, what.
    pub fn notes(&self) -> &[(Time, usize, Note)] {
        &self.notes
    }

    /// Forgets what the stations have said so far.
    pub fn clear_notes(&mut self) {
        self.notes.clear();
    }

    /// The trace.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// The trace, to flush it.
    pub fn trace_mut(&mut self) -> &mut Trace {
        &mut self.trace
    }

    /// The hash of all that has happened.
    pub fn trace_hash(&self) -> u64 {
        self.trace.hash()
    }

    /// Events handled.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Frames that came out of a link.
    pub fn packet_hops(&self) -> u64 {
        self.packet_hops
    }

    /// What has passed between the world and all its stations, over all their lives.
    pub fn accounts(&self) -> Accounts {
        let mut sum = Accounts::default();
        self.stations
            .iter()
            .for_each(|station| sum.add(&station.accounts()));
        sum
    }

    /// Frames that were sent on ports with nothing plugged in.
    pub(crate) fn sent_nowhere(&self) -> u64 {
        self.sent_nowhere
    }

    /// Arrivals that are still to come.
    pub(crate) fn arrivals_to_come(&self) -> u64 {
        self.queue
            .iter()
            .filter(|event| matches!(event, Event::Arrive { .. }))
            .count() as u64
    }
}
