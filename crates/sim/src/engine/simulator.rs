//! The engine: stations, links between them, and events in one total order.
//!
//! Stations live in shards (`shard.rs`), which run events. The engine joins them with the links,
//! the planned faults and the trace. It is independent of fabrics: [`crate::World`] builds one from
//! a fabric file, and tests may connect any [`Node`](axon_node::Node)s.

use crate::engine::accounts::Accounts;
use crate::engine::conservation;
use crate::engine::dataplane::SwitchPlane;
use crate::engine::partition::Partition;
use crate::engine::power;
use crate::engine::shard::Shard;
use crate::engine::station::{Station, StationNode};
use crate::engine::stations::Stations;
use crate::engine::taps::Captured;
use crate::engine::threads;
use crate::engine::trace::{self, Line, StationTrace, Trace, What, take_before};
use crate::link::cabling::Cabling;
use crate::link::classes::ClassBytes;
use crate::link::links::{Fates, Link, LinkChange, LinkId, WireEnd};
use axon_fabric::model::{FaultKind, Wire};
use axon_node::{Command, CommandError, Done, Input, Note, Request, RequestId};
use axon_switch::SwitchNode;
use axon_wire::{PortNo, Time};
use std::collections::BTreeMap;
use std::io::Write;

/// Maximum number of trace lines buffered for ordering before some are written.
const LINES_MAX: usize = 1 << 14;

/// Simulation engine.
pub struct Engine {
    stations: Stations,
    cabling: Cabling,
    partition: Partition,
    trace: Trace,
    /// Trace of the world's own actions: faults.
    world_trace: StationTrace,
    notes: Vec<(Time, usize, Note)>,
    faults: BTreeMap<(Time, u64), FaultKind>,
    faults_caused: u64,
}

impl Engine {
    /// Returns an empty world. `text` receives the trace lines, if given.
    pub fn new(seed: u64, text: Option<Box<dyn Write>>) -> Engine {
        Engine {
            stations: Stations::new(text.is_some()),
            cabling: Cabling::new(seed),
            partition: Partition::new(),
            trace: Trace::new(text),
            world_trace: StationTrace::default(),
            notes: Vec::new(),
            faults: BTreeMap::new(),
            faults_caused: 0,
        }
    }

    /// Reserves space for exactly `stations` more stations.
    pub(crate) fn reserve(&mut self, stations: usize) {
        self.stations.reserve(stations);
    }

    /// Adds a station without power and returns its number.
    pub fn add_station(&mut self, name: &str) -> usize {
        self.stations.add(name)
    }

    /// Spreads the stations over `threads` threads, clamped to between one and the number of
    /// stations. The results are the same, bit for bit. Returns the number of threads used. It is
    /// one if some link between two shards has no delay, which leaves no lookahead.
    pub fn set_threads(&mut self, threads: usize) -> usize {
        self.partition.set_threads(threads, &mut self.stations, &mut self.cabling)
    }

    /// Plans a fault. The caller executes it when [`Engine::run`] returns it.
    pub(crate) fn plan(&mut self, at: Time, fault: FaultKind) {
        self.faults.insert((at.max(self.now()), self.faults_caused), fault);
        self.faults_caused += 1;
    }

    /// Cancels all planned faults.
    pub(crate) fn forget_faults(&mut self) {
        self.faults.clear();
    }

    /// Writes the further trace as lines to `text`.
    pub(crate) fn write_to(&mut self, text: Box<dyn Write>) {
        self.trace = Trace::new(Some(text));
        self.stations.write_lines();
    }

    /// Handles all events up to and at `limit`, or up to and at the time of a fault. In the latter
    /// case returns the fault, which is due now, after everything else at its instant. Otherwise
    /// [`Engine::now`] is `limit`.
    pub fn run(&mut self, limit: Time) -> Step {
        let fault = self.faults.first_key_value().map(|(&key, &fault)| (key, fault));
        let fault = fault.filter(|&((at, _), _)| at <= limit);
        let end = fault.map_or(limit, |((at, _), _)| at);
        if let [shard] = self.stations.shards_mut() {
            while shard.step(end) {
                if shard.common.lines.len() >= LINES_MAX {
                    self.trace.write(take_before(&mut shard.common.lines, shard.common.now));
                }
            }
        } else {
            self.partition.run(end, &mut self.stations, &mut self.cabling);
        }
        self.notes.extend(self.stations.settle(self.now().max(end)));
        self.trace.write(self.stations.take_lines());
        let Some((key, fault)) = fault else {
            return Step::Limit;
        };
        self.faults.remove(&key);
        let what = What::Fault(fault);
        self.world_trace.add(self.now(), PortNo::CONTROL, what);
        if self.trace.is_written() {
            self.trace.write(vec![Line::of_world(self.now(), what)]);
        }
        Step::Fault(fault)
    }

    /// Handles the earliest event, unless it or the next fault is beyond `limit`. Like
    /// [`Engine::run`], but returns after each event.
    pub fn step(&mut self, limit: Time) -> Step {
        let shards = self.stations.shards_mut();
        threads::deliver(shards);
        let fault = self.faults.first_key_value().map_or(limit, |(&(at, _), _)| at.min(limit));
        let due = |shard: &Shard| shard.common.queue.peek().filter(|key| key.time <= fault);
        let first =
            shards.iter().filter_map(|shard| Some((due(shard)?, shard.common.number))).min();
        let Some((key, shard)) = first else {
            return self.run(limit);
        };
        shards[shard as usize].step(fault);
        threads::deliver(shards);
        self.notes.extend(self.stations.settle(key.time));
        Step::Event
    }

    /// Returns the simulated time.
    pub fn now(&self) -> Time {
        self.stations.now()
    }

    /// Returns the stations, in the order they were added.
    pub fn stations(&self) -> impl ExactSizeIterator<Item = &Station> {
        self.stations.iter()
    }

    /// Returns a station by number.
    pub fn station(&self, number: usize) -> Option<&Station> {
        self.stations.get(number)
    }

    /// Returns a station by number for external changes. Call [`Engine::nudge`] afterwards.
    ///
    /// # Panics
    /// If there is no such station.
    pub fn station_mut(&mut self, number: usize) -> &mut Station {
        self.stations.call(number).0
    }

    /// Rereads the deadline of a station's node. Call it after an external change.
    pub fn nudge(&mut self, station: usize) {
        let (station, common) = self.stations.call(station);
        station.nudge(common);
    }

    /// Sends a command to the node of a station. Returns `None` without power.
    pub fn command(
        &mut self,
        station: usize,
        request: Request,
    ) -> Option<Result<Done, CommandError>> {
        let (station, common) = self.stations.call(station);
        station.deliver(Input::Command(Command { id: RequestId::default(), request }), common);
        common.reply.take().map(|reply| reply.result)
    }

    /// Powers a station on with this node. A running incarnation ends first.
    pub fn power_on(&mut self, station: usize, node: StationNode) {
        power::on(station, node, &mut self.stations, &mut self.cabling);
    }

    /// Powers a station off. The frames that its node holds are lost
    /// ([`axon_node::Drop::PowerLost`]), and its neighbours lose carrier.
    pub fn power_off(&mut self, station: usize) {
        power::off(station, &mut self.stations, &mut self.cabling);
    }

    /// Suspends the node of a station. Has no effect if it is suspended or off.
    pub fn stop(&mut self, station: usize) {
        power::suspend(self.stations.call(station));
    }

    /// Resumes the node of a station. Has no effect if it is not suspended.
    pub fn go_on(&mut self, station: usize) {
        power::resume(self.stations.call(station));
    }

    /// Ends the node of a switch. The data plane keeps forwarding, and the ports keep carrier.
    /// Frames that wait for routes are lost. Has no effect if no switch runs at the station.
    pub fn crash_node(&mut self, station: usize) {
        power::crash(self.stations.call(station));
    }

    /// Starts a node on the data plane left by a crashed one. Has no effect if there is none.
    pub fn restart_node(
        &mut self,
        station: usize,
        start: impl FnOnce(SwitchPlane) -> SwitchNode<SwitchPlane>,
    ) {
        power::restart(self.stations.call(station), start);
    }

    /// Connects two free ports by a new link.
    ///
    /// # Panics
    /// If a port is in use.
    pub fn connect(&mut self, a: WireEnd, b: WireEnd, wire: Wire) -> LinkId {
        self.cabling.connect([a, b], wire, &mut self.stations)
    }

    /// Disconnects both ends of a link. Frames in flight on it are lost.
    pub fn disconnect(&mut self, link: LinkId) {
        self.cabling.disconnect(link, &mut self.stations);
    }

    /// Connects a link again, possibly to other ports.
    ///
    /// # Panics
    /// If a port is in use.
    pub fn reconnect(&mut self, link: LinkId, a: WireEnd, b: WireEnd) {
        self.cabling.reconnect(link, [a, b], &mut self.stations);
    }

    /// Changes the state of a link.
    ///
    /// # Panics
    /// If there is no such link.
    pub fn change_link(&mut self, link: LinkId, change: LinkChange) {
        self.cabling.change(link, change, &mut self.stations);
    }

    /// Returns the links, in the order of their ids.
    pub fn links(&self) -> &[Link] {
        self.cabling.links()
    }

    /// Returns the link at a port and which of its ends is there.
    pub fn link_at(&self, end: WireEnd) -> Option<(LinkId, usize)> {
        self.stations.cable(end).map(|cable| (cable.rare.link, cable.rare.side))
    }

    /// Returns the fates of the frames that end `side` of a link sent.
    ///
    /// # Panics
    /// If there is no such link.
    pub fn fates(&self, link: LinkId, side: usize) -> Fates {
        self.cabling.fates(link, side, &self.stations)
    }

    /// Returns the bytes sent by end `side` of a link, by class, if they are counted.
    ///
    /// # Panics
    /// If there is no such link.
    pub fn class_bytes(&self, link: LinkId, side: usize) -> Option<&ClassBytes> {
        self.cabling.end(link, side, &self.stations)?.classes.as_deref()
    }

    /// Starts to capture the frames on a port; see [`Engine::take_captured`]. Set the number of
    /// threads before.
    ///
    /// # Panics
    /// If there is no such station.
    pub fn capture(&mut self, end: WireEnd) {
        self.stations.capture(end);
    }

    /// Takes the frames captured since the last call, in order of time, then of stations.
    pub fn take_captured(&mut self) -> Vec<Captured> {
        self.stations.take_captured()
    }

    /// Returns the stations' notes as time, station and note, ordered by time and station.
    pub fn notes(&self) -> &[(Time, usize, Note)] {
        &self.notes
    }

    /// Returns the trace text.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Returns the trace text mutably, to flush it.
    pub fn trace_mut(&mut self) -> &mut Trace {
        &mut self.trace
    }

    /// Returns the hash of the whole trace.
    pub fn trace_hash(&self) -> u64 {
        let stations = self.stations().map(|station| station.adapter().trace());
        trace::combine(stations.chain([&self.world_trace]))
    }

    /// Returns the number of events handled.
    pub fn events(&self) -> u64 {
        self.stations.events() + self.world_trace.events()
    }

    /// Returns the number of frames that came out of a link.
    pub fn packet_hops(&self) -> u64 {
        self.stations.shards().iter().map(|shard| shard.common.packet_hops).sum()
    }

    /// Returns the total counters of all stations, over all their incarnations.
    pub fn accounts(&self) -> Accounts {
        self.stations.accounts()
    }

    /// Checks that every frame has exactly one fate.
    ///
    /// # Errors
    /// One line for each account that does not balance.
    pub fn check_conservation(&self) -> Result<(), String> {
        conservation::check(&self.stations, &self.cabling)
    }
}

/// Checks every world at its end in builds with debug assertions, which all tests are. (`axon sim`
/// does not end its world; its report includes this check.)
#[cfg(debug_assertions)]
impl Drop for Engine {
    fn drop(&mut self) {
        if !std::thread::panicking()
            && let Err(faults) = self.check_conservation()
        {
            panic!("a world ends with frames unaccounted for: {faults}");
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    impl Engine {
        /// Returns the shards, to change what tests change.
        pub(crate) fn shards_mut(&mut self) -> &mut [Shard] {
            self.stations.shards_mut()
        }

        /// Sets the events per window from which threads are worthwhile.
        pub(crate) fn set_worth(&mut self, worth: u64) {
            self.partition.set_worth(worth);
        }
    }
}
