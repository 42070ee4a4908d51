//! Results of a run: the report, the counters of every port, and samples over time.

mod flows;
mod pings;
mod ports;
mod samples;
mod unfinished;

pub use flows::{EntryTimes, FlowReport, Flows, Times, never_started};
pub use ports::{EndCount, PortCount, end_counts, port_counts};
pub use samples::{FlowSamples, PortSamples, Samples};

pub(crate) use pings::{Pings, all_pairs};
pub(crate) use unfinished::{has_endless, longest_pause, unresolved};

use crate::link::links::{LinkId, Loss};
use crate::world::World;
use crate::world::agents::{self, AgentReport};
use crate::world::deadlock::Deadlock;
use axon_node::Drop;
use axon_wire::Time;
use serde::Serialize;
use std::collections::BTreeMap;

/// Report of a scenario. In JSON, times are in nanoseconds.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Name of the fabric in its file.
    pub fabric: String,
    /// Seed of all random draws of the run.
    pub seed: u64,
    /// Number of hosts in the fabric.
    pub hosts: usize,
    /// Number of hosts that had an address when the first round, or the traffic, began.
    pub addressed: usize,
    /// Start time of the first round, or of the traffic, in nanoseconds from the start of the run.
    pub boot_ns: u64,
    /// Rounds of pings: none with traffic, otherwise one, or two if the fabric has faults.
    pub rounds: Vec<Round>,
    /// Traffic of the fabric file, flow by flow.
    pub flows: Vec<FlowReport>,
    /// Times of the traffic entries, each over all of its flows.
    pub entries: Vec<EntryTimes>,
    /// Counters of the fabric's agents.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentReport>,
    /// Frames dropped by nodes, by reason.
    pub drops: BTreeMap<&'static str, u64>,
    /// Frames that ended inside nodes in normal operation, which are not drops, by reason.
    pub ended: BTreeMap<&'static str, u64>,
    /// Frames lost by links, by reason.
    pub losses: BTreeMap<&'static str, u64>,
    /// Number of frames that arrived with a flipped bit.
    pub corrupted: u64,
    /// Routes, at the end, that do not lead to their host.
    pub stale_routes: Vec<String>,
    /// First deadlock seen: the run continued, and has failed.
    pub deadlock: Option<Deadlock>,
    /// Frame counts that do not balance, which indicate a bug.
    pub unaccounted: Option<String>,
    /// Requested options that the run could not follow.
    pub warnings: Vec<String>,
    /// Traffic that should have begun and sent nothing, with the reason: the run has failed.
    pub silent: Vec<String>,
    /// Flows that did not end, with their progress: the run has failed.
    pub unfinished: Vec<String>,
    /// Hosts that were connected when the run ended and had no address: the run has failed.
    pub without_address: Vec<String>,
    /// Reason why the run ended early, if it did.
    pub stopped: Option<String>,
    /// Simulated time of the run, in nanoseconds.
    pub simulated_ns: u64,
    /// Number of events handled in the whole run.
    pub events: u64,
    /// Number of frames that came out of a link.
    pub packet_hops: u64,
    /// Hash of the whole trace, in hexadecimal.
    pub trace_hash: String,
    /// Error that kept the trace from being written completely, if any.
    pub trace_error: Option<String>,
    /// Number of threads used; one if links between parts of the world have no delay.
    #[serde(skip)]
    pub threads: usize,
    /// Counters of each port of a switch.
    #[serde(skip)]
    pub ports: Vec<PortCount>,
    /// Places where frames were dropped or lost, by reason.
    #[serde(skip)]
    pub dropped_at: Vec<EndCount>,
    /// Places where frames ended in normal operation, by reason.
    #[serde(skip)]
    pub ended_at: Vec<EndCount>,
    /// Samples over time, if requested.
    #[serde(skip)]
    pub samples: Option<Samples>,
}

/// Round of pings.
#[derive(Clone, Debug, Serialize)]
pub struct Round {
    /// Start of the round, in nanoseconds from the start of the run.
    pub at_ns: u64,
    /// Number of ordered pairs of connected hosts that were pinged, counted once per address
    /// family.
    pub pairs: usize,
    /// Number of pairs with an answer.
    pub answered: usize,
    /// Number of echo requests sent by all pairs.
    pub requests: u64,
    /// Number of echo replies received by all pairs.
    pub replies: u64,
    /// Maximum time from a request to its reply, in nanoseconds.
    pub rtt_max_ns: u64,
    /// Pairs without an answer, as `h1 h2`.
    pub unanswered: Vec<String>,
}

impl Report {
    /// Returns whether the run has passed: it reached its end; every connected pair was answered in
    /// every round; every flow was started, ended if it has an end, and received only what was
    /// sent; no entry was silent; every connected host has an address; no route is stale; there was
    /// no deadlock; every frame is accounted for; and the trace, if requested, is complete.
    pub fn passed(&self) -> bool {
        self.stopped.is_none()
            && self.rounds.iter().all(|round| round.answered == round.pairs)
            && !self.flows.iter().any(|flow| flow.wrong_bytes > 0 || never_started(flow))
            && self.silent.is_empty()
            && self.unfinished.is_empty()
            && self.without_address.is_empty()
            && self.stale_routes.is_empty()
            && self.deadlock.is_none()
            && self.unaccounted.is_none()
            && self.trace_error.is_none()
    }

    /// Returns the report as JSON.
    ///
    /// # Panics
    /// Never: every key is a string.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("string keys")
    }

    /// Returns the report of a world in its current state, without the rounds, the samples, a
    /// deadlock and the reason for an early end.
    pub(crate) fn of(world: &World, seed: u64, boot: Time, addressed: usize) -> Report {
        let engine = world.engine();
        let ended = engine.accounts().dropped;
        let ends = Drop::ALL.iter().zip(ended).filter(|&(_, count)| count > 0);
        let (ended, drops): (Vec<_>, Vec<_>) = ends.partition(|(reason, _)| reason.is_ordinary());
        let named = |ends: Vec<(&Drop, u64)>| {
            ends.into_iter().map(|(reason, count)| (reason.name(), count)).collect()
        };
        let mut losses = BTreeMap::new();
        let mut corrupted = 0;
        let ids = (0..engine.links().len()).map(LinkId);
        for fates in ids.flat_map(|link| [engine.fates(link, 0), engine.fates(link, 1)]) {
            corrupted += fates.corrupted;
            for (loss, count) in Loss::ALL.iter().zip(fates.lost).filter(|&(_, count)| count > 0) {
                *losses.entry(loss.name()).or_insert(0) += count;
            }
        }
        let readiness = world.readiness();
        let mut flows = world.flows().report();
        let unfinished = unfinished::mark(world.flows(), boot, &mut flows);
        let (without_address, cut_off) = readiness.without_address();
        let mut warnings = unfinished::in_flight(&flows, world.now());
        warnings.extend(cut_off);
        warnings.extend(unfinished::forbidden(world));
        warnings.extend(readiness.program_warnings());
        warnings.extend(agents::warnings(world.fabric()));
        let (ended_at, dropped_at) = end_counts(world).into_iter().partition(|end| end.is_ordinary);
        Report {
            fabric: world.fabric().name.clone(),
            seed,
            hosts: world.fabric().hosts.len(),
            addressed,
            boot_ns: boot.as_nanos(),
            rounds: Vec::new(),
            flows,
            entries: world.flows().times(),
            agents: agents::reports(world),
            drops: named(drops),
            ended: named(ended),
            losses,
            corrupted,
            stale_routes: world.truth().stale_routes().iter().map(ToString::to_string).collect(),
            deadlock: None,
            unaccounted: engine.check_conservation().err(),
            warnings,
            silent: Vec::new(),
            unfinished,
            without_address,
            stopped: None,
            simulated_ns: world.now().as_nanos(),
            events: engine.events(),
            packet_hops: engine.packet_hops(),
            trace_hash: format!("{:016x}", engine.trace_hash()),
            trace_error: engine.trace().failure().map(ToString::to_string),
            threads: 1,
            ports: port_counts(world),
            dropped_at,
            ended_at,
            samples: None,
        }
    }
}
