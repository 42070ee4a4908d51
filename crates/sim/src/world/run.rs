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
use crate::world::capture::Captured;
use crate::world::deadlock::Deadlock;
use crate::world::results::{Pings, Samples, all_pairs};
use crate::world::{Setup, World};
use axon_fabric::model::Fabric;
use axon_wire::{Span, Time};
use std::io::Write;
use std::ops::ControlFlow;

pub use crate::world::results::{Report, Round};

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
    let seed = options.seed.unwrap_or(fabric.seed);
    let trace = options.trace.take();
    let capture = options.capture.clone();
    let python = options.python.clone();
    let dataplane = options.dataplane;
    let setup = Setup { seed, dataplane, python, trace, capture, ..Setup::default() };
    let mut world = World::begin(fabric, setup);
    let threads = world.set_threads(options.threads);
    // The ports may be in other hands now.
    options.capture.iter().for_each(|&port| world.engine_mut().capture(port));
    let captures = !options.capture.is_empty();
    let mut run = Run { world, watch, captures, stopped: None, samples: None, deadlock: None };
    run.go(Stage::Boot, Time::ZERO + options.boot, World::is_ready);
    let mut warnings = Vec::new();
    if let (Some(lacks), None) = (run.world.unready(), &run.stopped) {
        warnings.push(format!("the network was not ready after {}: {lacks}", options.boot));
    }
    let boot = run.world.now();
    for fault in &fabric.faults_after_start {
        run.world.engine_mut().plan(boot + fault.at, fault.what);
    }
    let hosts = 0..fabric.hosts.len();
    let addressed = hosts.filter(|&host| run.world.address(host).is_some()).count();
    run.samples = options.samples.map(|interval| Samples::begin(&run.world, interval));
    let rounds = if fabric.traffic.is_empty() {
        run.pings(!fault_times(fabric, boot).is_empty(), &options)
    } else {
        run.traffic(fabric, &options);
        Vec::new()
    };
    if let Some(duration) = options.duration {
        run.go(Stage::Traffic, boot + duration, |_| false);
    }
    run.world.engine_mut().trace_mut().flush();
    let mut report = Report::of(&run.world, seed, boot, addressed);
    report.rounds = rounds;
    let reached = |at: &Time| *at <= run.world.now();
    let planned = fault_times(fabric, boot);
    let missed = planned.iter().filter(|at| !reached(at)).count();
    if let (Some(first), None) = (planned.iter().find(|at| !reached(at)), &run.stopped) {
        warnings.push(format!(
            "{missed} of {} faults were not reached: the first of them at {first}, the run ended \
             at {}",
            planned.len(),
            run.world.now()
        ));
    }
    warnings.append(&mut report.warnings);
    report.warnings = warnings;
    report.silent = silent_entries(fabric, &run.world, boot);
    report.threads = threads;
    report.deadlock = run.deadlock;
    report.stopped = run.stopped;
    report.samples = run.samples;
    report
}

/// When the fabric's faults happen, in order, if traffic or pings began at `boot`.
fn fault_times(fabric: &Fabric, boot: Time) -> Vec<Time> {
    let after_start = fabric.faults_after_start.iter().map(|fault| boot + fault.at);
    let mut all: Vec<Time> = fabric.faults.iter().map(|fault| Time::ZERO + fault.at).collect();
    all.extend(after_start);
    all.sort_unstable();
    all
}

/// What a fabric's traffic should have begun to send and did not: an entry whose time came,
/// with hosts that are connected, of which not one sent anything.
fn silent_entries(fabric: &Fabric, world: &World, boot: Time) -> Vec<String> {
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

/// A run of a scenario.
struct Run<'a> {
    world: World,
    watch: &'a mut dyn Watch,
    /// Ports are captured.
    captures: bool,
    stopped: Option<String>,
    samples: Option<Samples>,
    /// The first that was seen.
    deadlock: Option<Deadlock>,
}

impl Run<'_> {
    /// Runs until `done` says so, or to `end`, or until the watcher has seen enough.
    fn go(&mut self, stage: Stage, end: Time, mut done: impl FnMut(&World) -> bool) {
        let began = self.world.now();
        loop {
            self.report(stage, began, end);
            if self.stopped.is_some() || done(&self.world) || self.world.now() >= end {
                return;
            }
            let mut next = (self.world.now() + Span::from_millis(1)).min(end);
            if let Some(samples) = &self.samples {
                next = next.min(samples.due().max(self.world.now() + Span::from_nanos(1)));
            }
            self.world.run_until(next);
            if let Some(samples) = &mut self.samples {
                samples.take(&self.world);
            }
        }
    }

    fn report(&mut self, stage: Stage, began: Time, end: Time) {
        if self.captures {
            self.watch.captured(self.world.engine_mut().take_captured());
        }
        if self.deadlock.is_none() && self.world.has_lossless() {
            self.deadlock = self.world.named_deadlock();
        }
        let engine = self.world.engine();
        let (now, events) = (engine.now(), engine.events());
        let progress =
            Progress { stage, now, began, end, events, packet_hops: engine.packet_hops() };
        if let ControlFlow::Break(reason) = self.watch.progress(&progress) {
            self.stopped.get_or_insert(reason);
        }
    }

    /// Lets hosts do what the fabric file says: for the time that was asked for, or until all
    /// is done and what is in flight has come.
    fn traffic(&mut self, fabric: &Fabric, options: &Options) {
        if self.stopped.is_some() {
            return;
        }
        let began = self.world.now();
        self.world.start_traffic();
        if options.duration.is_none() {
            let last = fabric.traffic.iter().map(|entry| entry.stop.unwrap_or(entry.start)).max();
            let settled = self.settled(options);
            let limit = began + options.traffic.max(last.unwrap_or_default() + DRAIN);
            self.go(Stage::Traffic, limit.max(settled), World::traffic_is_done);
            self.go(Stage::Traffic, self.world.now() + DRAIN, |_| false);
            self.go(Stage::Faults, settled.max(self.world.now()), |_| false);
            self.resolve(began);
        }
    }

    /// Goes on as long as flows that have an end are on their way to it, and datagrams of those
    /// that have ended are neither received nor lost; not in a deadlock, which has no end.
    fn resolve(&mut self, began: Time) {
        let quiet = if self.world.has_endless_traffic() { QUIET_ENDLESS } else { QUIET };
        let mut left = self.world.unresolved(began);
        while left.is_some() && self.stopped.is_none() && self.deadlock.is_none() {
            let mut look = self.world.now() + LOOK;
            self.go(Stage::Traffic, self.world.now() + quiet, |world| {
                let due = world.now() >= look;
                if due {
                    look = world.now() + LOOK;
                }
                due && world.unresolved(began) != left
            });
            let after = self.world.unresolved(began);
            if after == left {
                return;
            }
            left = after;
        }
    }

    /// When the fabric has settled after the last fault that is still to come; now, if there
    /// is none.
    fn settled(&self, options: &Options) -> Time {
        let last = self.world.engine().last_fault();
        last.map_or(self.world.now(), |last| last.max(self.world.now()) + options.settle)
    }

    /// One round of pings and, if the fabric has faults, another after the last of them.
    fn pings(&mut self, faults: bool, options: &Options) -> Vec<Round> {
        let mut rounds = Vec::new();
        if self.stopped.is_none() {
            rounds.push(self.round(options));
        }
        if self.stopped.is_none() && faults {
            let end = self.settled(options).max(self.world.now() + options.settle);
            self.go(Stage::Faults, end, |_| false);
            if self.stopped.is_none() {
                rounds.push(self.round(options));
            }
        }
        rounds
    }

    /// Lets every connected pair ping until it has an answer.
    fn round(&mut self, options: &Options) -> Round {
        let plan = (options.interval, options.requests);
        let pings: Pings = all_pairs(&mut self.world, plan, options.pairs_max);
        let end = self.world.now() + options.interval * (u64::from(options.requests) + 2);
        self.go(Stage::Pings, end, |world| pings.done(world));
        pings.summary(&self.world)
    }
}
