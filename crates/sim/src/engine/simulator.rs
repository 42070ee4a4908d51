//! The engine: stations, links between them, and events in one total order.
//!
//! Stations live in shards (`shard.rs`), which run events. The engine holds the links, planned
//! faults and the trace. It is independent of fabrics: [`crate::World`] builds one from a fabric
//! file, and tests may connect any [`Node`](axon_node::Node)s.

use crate::engine::load::Load;
use crate::engine::lookahead::Lookahead;
use crate::engine::place::Place;
use crate::engine::shard::Shard;
use crate::engine::station::Station;
use crate::engine::threads;
use crate::engine::trace::{Line, StationTrace, Trace, What, take_before};
use crate::link::links::Link;
use axon_fabric::model::FaultKind;
use axon_node::{Command, CommandError, Done, Input, Note, Request, RequestId};
use axon_wire::{PortNo, Time};
use std::collections::BTreeMap;
use std::io::Write;

/// Maximum number of trace lines buffered for ordering before some are written.
const LINES_MAX: usize = 1 << 14;

/// Simulation engine.
pub struct Engine {
    pub(crate) now: Time,
    pub(crate) seed: u64,
    pub(crate) shards: Vec<Shard>,
    /// Place of each station.
    pub(crate) places: Vec<Place>,
    pub(crate) links: Vec<Link>,
    pub(crate) trace: Trace,
    /// Trace of the world's own actions: faults.
    pub(crate) world_trace: StationTrace,
    pub(crate) notes: Vec<(Time, usize, Note)>,
    faults: BTreeMap<(Time, u64), FaultKind>,
    faults_caused: u64,
    /// Last carrier number assigned; see [`crate::link::port::CableEnd`].
    pub(crate) carriers: u32,
    /// Lookahead between shards, valid until a cable is connected or disconnected.
    pub(crate) lookahead: Option<Lookahead>,
    /// Load of each station, and the time of the next check.
    pub(crate) load: Load,
    /// Events per window from which threads are worthwhile.
    pub(crate) worth: u64,
}

impl Engine {
    /// Returns an empty world. `text` receives the trace lines, if given.
    pub fn new(seed: u64, text: Option<Box<dyn Write>>) -> Engine {
        Engine {
            now: Time::ZERO,
            seed,
            shards: vec![Shard::new(0, text.is_some())],
            places: Vec::new(),
            links: Vec::new(),
            trace: Trace::new(text),
            world_trace: StationTrace::default(),
            notes: Vec::new(),
            faults: BTreeMap::new(),
            faults_caused: 0,
            carriers: 0,
            lookahead: None,
            load: Load::default(),
            worth: threads::WORTH,
        }
    }

    /// Reserves space for exactly `stations` more stations.
    pub(crate) fn reserve(&mut self, stations: usize) {
        self.places.reserve_exact(stations);
        self.shards[0].stations.reserve_exact(stations);
    }

    /// Adds a station without power and returns its number.
    pub fn add_station(&mut self, name: &str) -> usize {
        let number = self.places.len();
        let shard = &mut self.shards[0];
        self.places.push(Place { shard: 0, slot: shard.stations.len() as u32 });
        shard.add(Station::new(name.to_owned(), number));
        number
    }

    /// Plans a fault. The caller executes it when [`Engine::run`] returns it.
    pub fn plan(&mut self, at: Time, fault: FaultKind) {
        self.faults.insert((at.max(self.now), self.faults_caused), fault);
        self.faults_caused += 1;
    }

    /// Cancels all planned faults.
    pub(crate) fn forget_faults(&mut self) {
        self.faults.clear();
    }

    /// Writes the further trace as lines to `text`. Call [`Engine::set_threads`] next.
    pub(crate) fn write_to(&mut self, text: Box<dyn Write>) {
        self.trace = Trace::new(Some(text));
    }

    /// Handles all events up to and at `limit`, or up to and at the time of a fault. In the latter
    /// case returns the fault, which is due now, after everything else at its instant. Otherwise
    /// [`Engine::now`] is `limit`.
    pub fn run(&mut self, limit: Time) -> Step {
        let fault = self.faults.first_key_value().map(|(&key, &fault)| (key, fault));
        let fault = fault.filter(|&((at, _), _)| at <= limit);
        let end = fault.map_or(limit, |((at, _), _)| at);
        self.run_shards(end);
        self.now = self.now.max(end);
        self.take_notes();
        self.write_lines();
        let Some((key, fault)) = fault else {
            return Step::Limit;
        };
        self.faults.remove(&key);
        let what = What::Fault(fault);
        self.world_trace.add(self.now, PortNo::CONTROL, what);
        if self.trace.is_written() {
            self.trace.write(vec![Line::of_world(self.now, what)]);
        }
        Step::Fault(fault)
    }

    /// Handles the earliest event, unless it or the next fault is beyond `limit`. Like
    /// [`Engine::run`], but returns after each event.
    pub fn step(&mut self, limit: Time) -> Step {
        threads::deliver(&mut self.shards);
        let fault = self.faults.first_key_value().map_or(limit, |(&(at, _), _)| at.min(limit));
        let due = |shard: &Shard| shard.common.queue.peek().filter(|key| key.time <= fault);
        let first =
            self.shards.iter().filter_map(|shard| Some((due(shard)?, shard.common.number))).min();
        let Some((key, shard)) = first else {
            return self.run(limit);
        };
        self.shards[shard as usize].step(fault);
        self.now = key.time;
        threads::deliver(&mut self.shards);
        self.take_notes();
        Step::Event
    }

    fn run_shards(&mut self, end: Time) {
        if let [shard] = &mut self.shards[..] {
            while shard.step(end) {
                if shard.common.lines.len() >= LINES_MAX {
                    self.trace.write(take_before(&mut shard.common.lines, shard.common.now));
                }
            }
            return;
        }
        // Events from cable and power changes since the last run.
        threads::deliver(&mut self.shards);
        self.balance();
        let lookahead = self.take_lookahead();
        let (worth, cores) = (self.worth, self.load.cores);
        threads::run(&mut self.shards, end, &lookahead, (worth, cores), &mut self.load.beside);
        self.lookahead = Some(lookahead);
    }

    /// Collects the notes of the stations, and sets the clocks of the shards to now.
    fn take_notes(&mut self) {
        let mut notes = Vec::new();
        for shard in &mut self.shards {
            shard.common.now = self.now;
            // Takes the vector itself to free its memory.
            notes.extend(std::mem::take(&mut shard.common.notes));
        }
        if !notes.is_empty() {
            notes.sort_by_key(|&(at, station, _)| (at, station));
            let notes = notes.into_iter().map(|(at, station, note)| (at, station as usize, note));
            self.notes.extend(notes);
        }
    }

    fn write_lines(&mut self) {
        let lines =
            self.shards.iter_mut().flat_map(|shard| std::mem::take(&mut shard.common.lines));
        let lines: Vec<Line> = lines.collect();
        if !lines.is_empty() {
            self.trace.write(lines);
        }
    }

    /// Sends a command to the node of a station. Returns `None` without power.
    pub fn command(
        &mut self,
        station: usize,
        request: Request,
    ) -> Option<Result<Done, CommandError>> {
        let Place { shard, slot } = self.places[station];
        let (station, common) = self.shards[shard as usize].call(slot);
        station.deliver(Input::Command(Command { id: RequestId::default(), request }), common);
        common.reply.take().map(|reply| reply.result)
    }

    /// Rereads the deadline of a station's node. Call it after an external change.
    pub fn nudge(&mut self, station: usize) {
        let Place { shard, slot } = self.places[station];
        let (station, common) = self.shards[shard as usize].call(slot);
        station.nudge(common);
    }
}

/// Result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// An event was handled.
    Event,
    /// This fault is due; the caller executes it.
    Fault(FaultKind),
    /// No event or fault is left before the limit.
    Limit,
}
