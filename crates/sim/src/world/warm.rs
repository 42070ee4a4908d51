//! A run that may continue in more than one way from some point: the network is ready, and its
//! traffic has run for some time. It can be forked: many runs that differ in their later faults
//! start from it.
//!
//! The result is the same whether it continues at once, later, or in another process: every run is
//! [`Warm::up`] and then [`Warm::go_to_the_end`].

use super::results::{
    Pings, Report, Round, Samples, all_pairs, has_endless, longest_pause, unresolved,
};
use super::watch::{Options, Progress, Stage, Watch};
use super::{Setup, World, traffic};
use crate::world::deadlock::{self, Deadlock};
use axon_fabric::model::{Cable, Fabric, Fault, FaultKind};
use axon_wire::{Span, Time};
use std::ops::ControlFlow;

/// Maximum time for which frames may be in flight after all flows have stopped sending.
const DRAIN: Span = Span::from_millis(20);
/// Time without progress after which unfinished flows and datagrams in flight are given up, on top
/// of the longest pause of a flow's own schedule. An edge gives up a route sooner, and a stream
/// retransmits sooner.
const QUIET: Span = Span::from_secs(10);
/// Time without progress after which they are given up while endless flows are running.
const QUIET_ENDLESS: Span = Span::from_secs(1);
/// Interval of the checks for progress.
const LOOK: Span = Span::from_millis(100);

/// Faults and their times.
type Planned = Vec<(Time, FaultKind)>;

/// Run whose network is ready.
pub struct Warm {
    world: World,
    seed: u64,
    threads: usize,
    /// Time at which the network was ready, or the wait for it ended.
    boot: Time,
    /// Number of hosts that had an address at `boot`.
    addressed: usize,
    /// True if traffic is running, since `boot`.
    runs: bool,
    warnings: Vec<String>,
    stopped: Option<String>,
    /// First deadlock seen.
    deadlock: Option<Deadlock>,
    /// Fabric with which the run began, if it is to continue with another.
    origin: Option<Box<Fabric>>,
}

/// Reason why a run cannot continue with a fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unlike {
    /// The fabric differs in something other than its faults.
    Fabric,
    /// A past fault is missing from the fabric, or the fabric has a past fault that has not
    /// happened. Holds the time of the first.
    Past(Time),
    /// The faults change the lowest or highest rates of links, from which switches and hosts are
    /// configured.
    Rates,
}

impl Warm {
    /// Builds the world and runs until its network is ready. Takes `trace` out of the options.
    pub fn up(fabric: &Fabric, options: &mut Options, watch: &mut dyn Watch) -> Warm {
        let seed = options.seed.unwrap_or(fabric.seed);
        let (trace, capture) = (options.trace.take(), options.capture.clone());
        let (python, dataplane) = (options.python.clone(), options.dataplane);
        let setup = Setup { seed, dataplane, python, trace, capture, ..Setup::default() };
        let mut warm = Warm {
            world: World::begin(fabric, setup),
            seed,
            threads: 1,
            boot: Time::ZERO,
            addressed: 0,
            runs: false,
            warnings: Vec::new(),
            stopped: None,
            deadlock: None,
            origin: None,
        };
        warm.spread(options);
        let mut run = warm.watched(options, watch);
        run.go(Stage::Boot, Time::ZERO + options.boot, World::is_ready);
        let mut warm = run.warm;
        if let (Some(lacks), None) = (warm.world.unready(), &warm.stopped) {
            let warning = format!("the network was not ready after {}: {lacks}", options.boot);
            warm.warnings.push(warning);
        }
        warm.boot = warm.world.now();
        for fault in &fabric.faults_after_start {
            warm.world.engine_mut().plan(warm.boot + fault.at, fault.what);
        }
        let hosts = 0..fabric.hosts.len();
        warm.addressed = hosts.filter(|&host| warm.world.address(host).is_some()).count();
        warm
    }

    /// Runs the traffic for `span`, in whole milliseconds, so that the times of the completion
    /// checks do not change. It may end earlier, or be stopped by the observer. Afterwards the run
    /// may continue with faults other than those of `fabric`, with which it began.
    #[must_use]
    pub fn ahead(
        mut self,
        fabric: &Fabric,
        span: Span,
        options: &Options,
        watch: &mut dyn Watch,
    ) -> Warm {
        self.origin = Some(Box::new(fabric.clone()));
        if span == Span::ZERO || self.stopped.is_some() {
            return self;
        }
        let end = self.boot + span;
        let mut run = self.watched(options, watch);
        run.start_traffic();
        run.go(Stage::Traffic, end, |world| world.flows().are_done());
        run.warm
    }

    /// Returns when the network was ready.
    pub fn ready_at(&self) -> Time {
        self.boot
    }

    /// Returns the simulated time.
    pub fn now(&self) -> Time {
        self.world.now()
    }

    /// Returns the number of frames that came out of a link.
    pub fn packet_hops(&self) -> u64 {
        self.world.engine().packet_hops()
    }

    /// Returns the reason why the observer ended the run, if it did.
    pub fn stopped(&self) -> Option<&str> {
        self.stopped.as_deref()
    }

    /// Checks whether the run may continue with `fabric`.
    ///
    /// # Errors
    /// If `fabric` differs in more than its future faults.
    pub fn accepts(&self, fabric: &Fabric) -> Result<(), Unlike> {
        self.origin.as_ref().map_or(Ok(()), |origin| self.compare(origin, fabric))
    }

    /// Continues the run with `fabric`: the same one, with other faults to come. Takes threads,
    /// ports to capture, and the trace output from the options.
    ///
    /// # Errors
    /// If `fabric` differs in more than its future faults. The run is then unchanged.
    pub fn continue_as(&mut self, fabric: &Fabric, options: &mut Options) -> Result<(), Unlike> {
        if let Some(origin) = &self.origin {
            self.compare(origin, fabric)?;
            let to_come = |faults, from| self.split(faults, from).1;
            let all = [
                to_come(&fabric.faults, Time::ZERO),
                to_come(&fabric.faults_after_start, self.boot),
            ];
            let engine = self.world.engine_mut();
            engine.forget_faults();
            for (at, what) in all.into_iter().flatten() {
                engine.plan(at, what);
            }
            self.world.set_faults(fabric);
        }
        if let Some(trace) = options.trace.take() {
            self.world.engine_mut().write_to(trace);
        }
        self.spread(options);
        Ok(())
    }

    /// Runs to the end set by the options and the fabric. Returns the report.
    pub fn go_on(self, fabric: &Fabric, options: &Options, watch: &mut dyn Watch) -> Report {
        self.go_to_the_end(fabric, options, watch).0
    }

    /// Runs like [`Warm::go_on`], and also returns the final world: freeing a large one takes a
    /// while, which a process that ends can save.
    pub fn go_to_the_end(
        self,
        fabric: &Fabric,
        options: &Options,
        watch: &mut dyn Watch,
    ) -> (Report, World) {
        let boot = self.boot;
        let mut run = self.watched(options, watch);
        let world = &run.warm.world;
        run.samples = options.samples.map(|interval| Samples::begin(world, interval));
        let rounds = if fabric.traffic.is_empty() {
            run.pings(fabric, options)
        } else {
            run.traffic(fabric, options);
            Vec::new()
        };
        if let Some(duration) = options.duration {
            run.go(Stage::Traffic, boot + duration, |_| false);
        }
        let samples = run.samples;
        let mut warm = run.warm;
        warm.world.engine_mut().trace_mut().flush();
        let mut report = Report::of(&warm.world, warm.seed, boot, warm.addressed);
        report.rounds = rounds;
        warm.warnings.extend(warm.missed_faults(fabric));
        warm.warnings.append(&mut report.warnings);
        report.warnings = warm.warnings;
        report.silent = silent_entries(fabric, &warm.world, boot);
        report.threads = warm.threads;
        report.deadlock = warm.deadlock;
        report.stopped = warm.stopped;
        report.samples = samples;
        (report, warm.world)
    }

    /// Applies the ports to capture and the number of threads from the options.
    fn spread(&mut self, options: &Options) {
        self.threads = self.world.engine_mut().set_threads(options.threads);
        // The ports may belong to other shards now.
        let engine = self.world.engine_mut();
        options.capture.iter().for_each(|&port| engine.capture(port));
    }

    fn watched<'a>(self, options: &Options, watch: &'a mut dyn Watch) -> Run<'a> {
        Run { warm: self, watch, captures: !options.capture.is_empty(), samples: None }
    }

    /// Returns a warning about faults that the run did not reach.
    fn missed_faults(&self, fabric: &Fabric) -> Option<String> {
        let planned = fault_times(fabric, self.boot);
        let mut missed = planned.iter().filter(|&&at| at > self.world.now());
        let first = missed.next().filter(|_| self.stopped.is_none())?;
        Some(format!(
            "{} of {} faults were not reached: the first of them at {first}, the run ended at {}",
            missed.count() + 1,
            planned.len(),
            self.world.now()
        ))
    }

    /// Splits faults, with times relative to `from`, into past and future ones. A fault due now is
    /// past, unless the run has not advanced since `from`.
    fn split(&self, faults: &[Fault], from: Time) -> (Planned, Planned) {
        let now = self.world.now();
        let all = faults.iter().map(|fault| (from + fault.at, fault.what));
        all.partition(|&(at, _)| at < now || (at == now && from < now))
    }

    /// Checks whether a run of `before` may continue with `after` now.
    fn compare(&self, before: &Fabric, after: &Fabric) -> Result<(), Unlike> {
        let whole = |fabric: &Fabric| {
            let (faults, faults_after_start) = (Vec::new(), Vec::new());
            Fabric { faults, faults_after_start, ..fabric.clone() }
        };
        if whole(before) != whole(after) {
            return Err(Unlike::Fabric);
        }
        let past = |fabric: &Fabric| {
            let of = |faults, from| self.split(faults, from).0;
            [of(&fabric.faults, Time::ZERO), of(&fabric.faults_after_start, self.boot)]
        };
        for (before, after) in past(before).iter().zip(&past(after)) {
            let differ = before.iter().zip(after).find(|(before, after)| before != after);
            let shorter = before.len().min(after.len());
            let longer = before.get(shorter).or_else(|| after.get(shorter));
            if let Some(at) = differ.map(|(a, b)| a.0.min(b.0)).or(longer.map(|one| one.0)) {
                return Err(Unlike::Past(at));
            }
        }
        let links = (0..before.links.len()).map(Cable::Link);
        let hosts = (0..before.hosts.len()).map(Cable::Host);
        let mut cables = links.chain(hosts).chain([Cable::Controller]);
        match cables.all(|cable| before.rates(cable) == after.rates(cable)) {
            true => Ok(()),
            false => Err(Unlike::Rates),
        }
    }
}

/// Returns the times of the fabric's faults, in order, if traffic or pings began at `boot`.
fn fault_times(fabric: &Fabric, boot: Time) -> Vec<Time> {
    let after_start = fabric.faults_after_start.iter().map(|fault| boot + fault.at);
    let mut all: Vec<Time> = fabric.faults.iter().map(|fault| Time::ZERO + fault.at).collect();
    all.extend(after_start);
    all.sort_unstable();
    all
}

/// Returns the time of the last of the fabric's faults that were still to come at `boot`.
fn last_fault(fabric: &Fabric, boot: Time) -> Option<Time> {
    let after_start = fabric.faults_after_start.iter().map(|fault| boot + fault.at);
    let all = fabric.faults.iter().map(|fault| Time::ZERO + fault.at);
    all.filter(|&at| at > boot).chain(after_start).max()
}

/// Describes traffic that should have begun and did not: entries whose time came, with connected
/// hosts, none of which sent anything.
fn silent_entries(fabric: &Fabric, world: &World, boot: Time) -> Vec<String> {
    let ran = world.now().since(boot);
    let connected = world.truth().connected_hosts();
    let reached = |host: &usize| connected.binary_search(host).is_ok();
    let mut silent = Vec::new();
    for (sent, entry) in world.flows().sent().into_iter().zip(&fabric.traffic) {
        let due =
            entry.first_at().is_some_and(|at| at <= ran && entry.stop.is_none_or(|stop| at < stop));
        let able = entry.flows.iter().any(|(from, to)| reached(from) && reached(to))
            || entry.hosts.iter().any(reached);
        if due && able && sent == 0 {
            let none_fits = || traffic::unsendable(&entry.app, fabric.mtu);
            let lacks = none_fits().or_else(|| world.unready());
            let why = lacks.unwrap_or_else(|| "its hosts found no way to their targets".to_owned());
            silent.push(format!("{} sent nothing in {ran}: {why}", entry.name));
        }
    }
    silent
}

/// Run of a scenario with its observer.
struct Run<'a> {
    warm: Warm,
    watch: &'a mut dyn Watch,
    /// True if ports are captured.
    captures: bool,
    samples: Option<Samples>,
}

impl Run<'_> {
    /// Runs until `done` returns true, or to `end`, or until the observer ends the run.
    fn go(&mut self, stage: Stage, end: Time, mut done: impl FnMut(&World) -> bool) {
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
        if self.warm.deadlock.is_none() && deadlock::is_possible(self.warm.world.fabric()) {
            self.warm.deadlock = deadlock::named(&self.warm.world);
        }
        let engine = self.warm.world.engine();
        let (now, events) = (engine.now(), engine.events());
        let progress =
            Progress { stage, now, began, end, events, packet_hops: engine.packet_hops() };
        if let ControlFlow::Break(reason) = self.watch.progress(&progress) {
            self.warm.stopped.get_or_insert(reason);
        }
    }

    /// Starts the fabric's traffic, unless it is running.
    fn start_traffic(&mut self) {
        if !std::mem::replace(&mut self.warm.runs, true) {
            self.warm.world.start_traffic();
        }
    }

    /// Runs the fabric's traffic: for the requested time, or until all is complete and no data is
    /// in flight.
    fn traffic(&mut self, fabric: &Fabric, options: &Options) {
        if self.warm.stopped.is_some() {
            return;
        }
        self.start_traffic();
        let began = self.warm.boot;
        if options.duration.is_none() {
            let last = fabric.traffic.iter().map(|entry| entry.stop.unwrap_or(entry.start)).max();
            let settled = self.settled(fabric, options);
            let limit = began + options.traffic.max(last.unwrap_or_default() + DRAIN);
            self.go(Stage::Traffic, limit.max(settled), |world| world.flows().are_done());
            self.go(Stage::Traffic, self.warm.world.now() + DRAIN, |_| false);
            self.go(Stage::Faults, settled.max(self.warm.world.now()), |_| false);
            self.resolve(began);
        }
    }

    /// Continues while flows that have an end make progress, and datagrams of ended flows are
    /// neither received nor lost. Stops at a deadlock, which is permanent.
    fn resolve(&mut self, began: Time) {
        let quiet = if has_endless(self.warm.world.flows()) { QUIET_ENDLESS } else { QUIET };
        let mut left = unresolved(self.warm.world.flows(), began);
        while left.is_some() && self.warm.stopped.is_none() && self.warm.deadlock.is_none() {
            let mut look = self.warm.world.now() + LOOK;
            let quiet = quiet + longest_pause(self.warm.world.flows(), began);
            self.go(Stage::Traffic, self.warm.world.now() + quiet, |world| {
                let due = world.now() >= look;
                if due {
                    look = world.now() + LOOK;
                }
                due && unresolved(world.flows(), began) != left
            });
            let after = unresolved(self.warm.world.flows(), began);
            if after == left {
                return;
            }
            left = after;
        }
    }

    /// Returns when the fabric has settled after the last fault that was still to come when its
    /// network was ready, or that time if there is none.
    fn settled(&self, fabric: &Fabric, options: &Options) -> Time {
        let boot = self.warm.boot;
        last_fault(fabric, boot).map_or(boot, |last| last + options.settle)
    }

    /// Runs one round of pings and, if the fabric has faults, another after the last of them.
    fn pings(&mut self, fabric: &Fabric, options: &Options) -> Vec<Round> {
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

    /// Runs a round in which every connected pair pings until it has an answer.
    fn round(&mut self, options: &Options) -> Round {
        let plan = (options.interval, options.requests);
        let pings: Pings = all_pairs(&mut self.warm.world, plan, options.pairs_max);
        let end = self.warm.world.now() + options.interval * (u64::from(options.requests) + 2);
        self.go(Stage::Pings, end, |world| pings.done(world));
        pings.summary(&self.warm.world)
    }
}
