//! A whole scenario, start to report: hosts boot and get addresses, and the network gets
//! ready to carry what they send (`ready.rs`); then the fabric's traffic
//! runs or, without any, every pair pings, the fabric's faults happen, and every connected
//! pair pings again.
//!
//! In plain English: run for a millisecond of simulated time at most; report the progress to the
//! observer, which may end the run; take a sample if one is due; go on until the stage is over.
//! Where links are lossless, each time see whether buffers wait for each other for ever: the first
//! such cycle is kept for the report, and the run goes on. These checks change nothing in the
//! world, so they leave its trace as it is.

use crate::engine::dataplane::DataplaneKind;
use crate::link::links::WireEnd;
use crate::world::PythonLoader;
use crate::world::World;
use crate::world::capture::Captured;
use crate::world::results::{Pings, Samples, all_pairs};
use crate::world::warm::Warm;
use axon_fabric::model::Fabric;
use axon_wire::{Span, Time};
use std::io::Write;
use std::ops::ControlFlow;

pub use crate::world::results::{Report, Round};
pub use crate::world::warm::Unlike;

/// How long frames may still be in flight after all have stopped sending.
const DRAIN: Span = Span::from_millis(20);
/// How long unfinished flows and datagrams in flight are waited for while none of them moves: the
/// edge gives up a route after less, and a stream sends again before.
const QUIET: Span = Span::from_secs(10);
/// The same while other flows run that have no end.
const QUIET_ENDLESS: Span = Span::from_secs(1);
/// How often it is looked whether they move.
const LOOK: Span = Span::from_millis(100);

/// How a scenario is run.
pub struct Options {
    /// The world's seed; the fabric's without.
    pub seed: Option<u64>,
    /// The data plane of switches and of the controller.
    pub dataplane: DataplaneKind,
    /// Starts control programs in Python, for fabrics that have one.
    pub python: Option<PythonLoader>,
    /// Threads to run on; what happens is the same with any number.
    pub threads: usize,
    /// Takes the trace as lines of text, if given.
    pub trace: Option<Box<dyn Write>>,
    /// How long hosts may take to get their addresses, and the network to get ready, before
    /// the pings or the traffic begin all the same.
    pub boot: Span,
    /// Between two requests of a ping that has no answer yet.
    pub interval: Span,
    /// Requests of one ping at most.
    pub requests: u16,
    /// Quiet time after the last fault, before the second round.
    pub settle: Span,
    /// Ordered pairs that ping in one round at most; of more, an even share is taken.
    pub pairs_max: usize,
    /// How long to go on after the network is ready; until everything is done and the last
    /// fault is over without.
    pub duration: Option<Span>,
    /// Without a duration: how long traffic that does not come to an end of its own may last,
    /// or longer if an entry says when it stops.
    pub traffic: Span,
    /// Ports whose frames the watcher is shown.
    pub capture: Vec<WireEnd>,
    /// Sample every port from when the network is ready, this often at first.
    pub samples: Option<Span>,
}

impl Default for Options {
    /// Twenty requests 250 ms apart, half a minute to boot, three seconds to settle, at most
    /// 10,000 pairs, a second of traffic.
    fn default() -> Options {
        Options {
            seed: None,
            dataplane: DataplaneKind::Software,
            python: None,
            threads: 1,
            trace: None,
            boot: Span::from_secs(30),
            interval: Span::from_millis(250),
            requests: 20,
            settle: Span::from_secs(3),
            pairs_max: 10_000,
            duration: None,
            traffic: Span::from_secs(1),
            capture: Vec::new(),
            samples: None,
        }
    }
}

/// What a run is busy with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Hosts get their addresses, and the network gets ready.
    Boot,
    /// A round of pings.
    Pings,
    /// Faults happen, and the fabric settles.
    Faults,
    /// Hosts do what the fabric file says.
    Traffic,
}

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What it is busy with.
    pub stage: Stage,
    /// Simulated time.
    pub now: Time,
    /// When the stage began.
    pub began: Time,
    /// When it ends, at the latest.
    pub end: Time,
    /// Events handled.
    pub events: u64,
    /// Frames that came out of a link.
    pub packet_hops: u64,
}

/// An observer of a run.
pub trait Watch {
    /// Sees how far it has come, each millisecond of simulated time or more often. An answer
    /// to break ends the run, for that reason; the report holds what there is.
    fn progress(&mut self, _progress: &Progress) -> ControlFlow<String> {
        ControlFlow::Continue(())
    }

    /// Sees what the ports in [`Options::capture`] carried, in order of time.
    fn captured(&mut self, _frames: Vec<Captured>) {}
}

/// Nobody.
impl Watch for () {}

/// Runs a scenario.
pub fn run(fabric: &Fabric, options: Options) -> Report {
    run_watched(fabric, options, &mut ())
}

/// Runs a scenario and shows its progress to an observer.
pub fn run_watched(fabric: &Fabric, mut options: Options, watch: &mut dyn Watch) -> Report {
    Warm::up(fabric, &mut options, watch).go_on(fabric, &options, watch)
}

/// When the fabric's faults happen, in order, if traffic or pings began at `boot`.
pub(super) fn fault_times(fabric: &Fabric, boot: Time) -> Vec<Time> {
    let after_start = fabric.faults_after_start.iter().map(|fault| boot + fault.at);
    let mut all: Vec<Time> = fabric.faults.iter().map(|fault| Time::ZERO + fault.at).collect();
    all.extend(after_start);
    all.sort_unstable();
    all
}

/// When the last of the fabric's faults happens that were still to come at `boot`.
fn last_fault(fabric: &Fabric, boot: Time) -> Option<Time> {
    let after_start = fabric.faults_after_start.iter().map(|fault| boot + fault.at);
    let all = fabric.faults.iter().map(|fault| Time::ZERO + fault.at);
    all.filter(|&at| at > boot).chain(after_start).max()
}

/// What a fabric's traffic should have begun to send and did not: an entry whose time came,
/// with hosts that are connected, of which not one sent anything.
pub(super) fn silent_entries(fabric: &Fabric, world: &World, boot: Time) -> Vec<String> {
    let ran = world.now().since(boot);
    let connected = world.connected_hosts();
    let reached = |host: &usize| connected.binary_search(host).is_ok();
    let mut silent = Vec::new();
    for (sent, entry) in world.traffic_sent().into_iter().zip(&fabric.traffic) {
        let due =
            entry.first_at().is_some_and(|at| at <= ran && entry.stop.is_none_or(|stop| at < stop));
        let able = entry.flows.iter().any(|(from, to)| reached(from) && reached(to))
            || entry.hosts.iter().any(reached);
        if due && able && sent == 0 {
            let none_fits = || crate::host::apps::unsendable(&entry.app, fabric.mtu);
            let lacks = none_fits().or_else(|| world.unready());
            let why = lacks.unwrap_or_else(|| "its hosts found no way to their targets".to_owned());
            silent.push(format!("{} sent nothing in {ran}: {why}", entry.name));
        }
    }
    silent
}

/// A run of a scenario, while it is watched.
pub(super) struct Run<'a> {
    pub(super) warm: Warm,
    pub(super) watch: &'a mut dyn Watch,
    /// Ports are captured.
    pub(super) captures: bool,
    pub(super) samples: Option<Samples>,
}

impl Run<'_> {
    /// Runs until `done` says so, or to `end`, or until the watcher has seen enough.
    pub(super) fn go(&mut self, stage: Stage, end: Time, mut done: impl FnMut(&World) -> bool) {
        let began = self.warm.world.now();
        loop {
            self.report(stage, began, end);
            if self.warm.stopped.is_some() || done(&self.warm.world) || self.warm.world.now() >= end
            {
                return;
            }
            let mut next = (self.warm.world.now() + Span::from_millis(1)).min(end);
            if let Some(samples) = &self.samples {
                next = next.min(samples.due().max(self.warm.world.now() + Span::from_nanos(1)));
            }
            self.warm.world.run_until(next);
            if let Some(samples) = &mut self.samples {
                samples.take(&self.warm.world);
            }
        }
    }

    fn report(&mut self, stage: Stage, began: Time, end: Time) {
        if self.captures {
            self.watch.captured(self.warm.world.engine_mut().take_captured());
        }
        if self.warm.deadlock.is_none() && self.warm.world.has_lossless() {
            self.warm.deadlock = self.warm.world.named_deadlock();
        }
        let engine = self.warm.world.engine();
        let (now, events) = (engine.now(), engine.events());
        let progress =
            Progress { stage, now, began, end, events, packet_hops: engine.packet_hops() };
        if let ControlFlow::Break(reason) = self.watch.progress(&progress) {
            self.warm.stopped.get_or_insert(reason);
        }
    }

    /// Starts the fabric's traffic, if it does not run yet.
    pub(super) fn start_traffic(&mut self) {
        if !std::mem::replace(&mut self.warm.runs, true) {
            self.warm.world.start_traffic();
        }
    }

    /// Lets hosts do what the fabric file says: for the time that was asked for, or until all
    /// is done and what is in flight has come.
    pub(super) fn traffic(&mut self, fabric: &Fabric, options: &Options) {
        if self.warm.stopped.is_some() {
            return;
        }
        self.start_traffic();
        let began = self.warm.boot;
        if options.duration.is_none() {
            let last = fabric.traffic.iter().map(|entry| entry.stop.unwrap_or(entry.start)).max();
            let settled = self.settled(fabric, options);
            let limit = began + options.traffic.max(last.unwrap_or_default() + DRAIN);
            self.go(Stage::Traffic, limit.max(settled), World::traffic_is_done);
            self.go(Stage::Traffic, self.warm.world.now() + DRAIN, |_| false);
            self.go(Stage::Faults, settled.max(self.warm.world.now()), |_| false);
            self.resolve(began);
        }
    }

    /// Goes on as long as flows that have an end are on their way to it, and datagrams of those
    /// that have ended are neither received nor lost; not in a deadlock, which has no end.
    fn resolve(&mut self, began: Time) {
        let quiet = if self.warm.world.has_endless_traffic() { QUIET_ENDLESS } else { QUIET };
        let mut left = self.warm.world.unresolved(began);
        while left.is_some() && self.warm.stopped.is_none() && self.warm.deadlock.is_none() {
            let mut look = self.warm.world.now() + LOOK;
            self.go(Stage::Traffic, self.warm.world.now() + quiet, |world| {
                let due = world.now() >= look;
                if due {
                    look = world.now() + LOOK;
                }
                due && world.unresolved(began) != left
            });
            let after = self.warm.world.unresolved(began);
            if after == left {
                return;
            }
            left = after;
        }
    }

    /// When the fabric has settled after the last fault that was still to come when its network
    /// was ready; then, if there is none.
    fn settled(&self, fabric: &Fabric, options: &Options) -> Time {
        let boot = self.warm.boot;
        last_fault(fabric, boot).map_or(boot, |last| last + options.settle)
    }

    /// One round of pings and, if the fabric has faults, another after the last of them.
    pub(super) fn pings(&mut self, fabric: &Fabric, options: &Options) -> Vec<Round> {
        let faults = !fault_times(fabric, self.warm.boot).is_empty();
        let mut rounds = Vec::new();
        if self.warm.stopped.is_none() {
            rounds.push(self.round(options));
        }
        if self.warm.stopped.is_none() && faults {
            let settled = self.settled(fabric, options);
            let end = settled.max(self.warm.world.now() + options.settle);
            self.go(Stage::Faults, end, |_| false);
            if self.warm.stopped.is_none() {
                rounds.push(self.round(options));
            }
        }
        rounds
    }

    /// Lets every connected pair ping until it has an answer.
    fn round(&mut self, options: &Options) -> Round {
        let plan = (options.interval, options.requests);
        let pings: Pings = all_pairs(&mut self.warm.world, plan, options.pairs_max);
        let end = self.warm.world.now() + options.interval * (u64::from(options.requests) + 2);
        self.go(Stage::Pings, end, |world| pings.done(world));
        pings.summary(&self.warm.world)
    }
}
