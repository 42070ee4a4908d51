//! What came of a run: the report, the counts of every port, and samples over time.

mod flows;
mod pings;
mod ports;
mod samples;
mod unfinished;

pub use flows::{EntryTimes, FlowReport, Times};
pub use ports::{EndCount, PortCount, end_counts, port_counts};
pub use samples::{FlowSamples, PortSamples, Samples};

pub(crate) use pings::{Pings, all_pairs};

use crate::link::links::{LinkId, Loss};
use crate::world::World;
use crate::world::agents::AgentReport;
use crate::world::deadlock::Deadlock;
use axon_node::Drop;
use axon_wire::Time;
use serde::Serialize;
use std::collections::BTreeMap;

/// What came of a scenario. As JSON, times are in nanoseconds.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The name of the fabric in its file.
    pub fabric: String,
    /// The seed that all random draws of the run follow from.
    pub seed: u64,
    /// Hosts in the fabric.
    pub hosts: usize,
    /// Hosts that had an address when the first round, or the traffic, began.
    pub addressed: usize,
    /// When the first round, or the traffic, began, in nanoseconds from the start of the run.
    pub boot_ns: u64,
    /// The rounds of pings: none with traffic, otherwise one, or two where the fabric has
    /// faults.
    pub rounds: Vec<Round>,
    /// The traffic of the fabric file, flow by flow.
    pub flows: Vec<FlowReport>,
    /// The times of its entries, over all of their flows.
    pub entries: Vec<EntryTimes>,
    /// What the agents of the fabric have counted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentReport>,
    /// Frames that nodes dropped, by reason.
    pub drops: BTreeMap<&'static str, u64>,
    /// Frames that ended inside nodes in normal operation, which are no drops, by reason.
    pub ended: BTreeMap<&'static str, u64>,
    /// Frames that links lost, by reason.
    pub losses: BTreeMap<&'static str, u64>,
    /// Frames that came out of a link with a bit flipped.
    pub corrupted: u64,
    /// Routes, at the end, that do not lead to the host they are for.
    pub stale_routes: Vec<String>,
    /// The first deadlock that was seen: the run went on, and has failed.
    pub deadlock: Option<Deadlock>,
    /// Accounts of frames that do not balance: a bug, if there is any.
    pub unaccounted: Option<String>,
    /// What the run could not do as it was asked to.
    pub warnings: Vec<String>,
    /// Traffic that should have begun and sent nothing, and why: the run has failed.
    pub silent: Vec<String>,
    /// Flows that did not come to their end, and how far they came: the run has failed.
    pub unfinished: Vec<String>,
    /// Hosts that were connected when the run ended and had no address: the run has failed.
    pub without_address: Vec<String>,
    /// Why the run ended before its end, if it did.
    pub stopped: Option<String>,
    /// The simulated time that the run covered, in nanoseconds.
    pub simulated_ns: u64,
    /// Events that the simulator handled in the whole run.
    pub events: u64,
    /// Frames that came out of a link.
    pub packet_hops: u64,
    /// The hash of everything that happened, in hexadecimal.
    pub trace_hash: String,
    /// Why the trace could not be written to its end, if so.
    pub trace_error: Option<String>,
    /// Threads that it really ran on: one where links between its parts take no time.
    #[serde(skip)]
    pub threads: usize,
    /// What each port of a switch has counted.
    #[serde(skip)]
    pub ports: Vec<PortCount>,
    /// Where frames were dropped or lost, by reason.
    #[serde(skip)]
    pub dropped_at: Vec<EndCount>,
    /// Where frames ended in normal operation, by reason.
    #[serde(skip)]
    pub ended_at: Vec<EndCount>,
    /// What was sampled over time, if that was asked for.
    #[serde(skip)]
    pub samples: Option<Samples>,
}

/// Whether a flow found no address to begin with.
pub fn never_started(flow: &FlowReport) -> bool {
    flow.failed > 0 && flow.sent_packets == 0
}

/// One round of pings.
#[derive(Clone, Debug, Serialize)]
pub struct Round {
    /// When the round began, in nanoseconds from the start of the run.
    pub at_ns: u64,
    /// Ordered pairs of hosts that were connected and pinged, times the families over which they
    /// were.
    pub pairs: usize,
    /// Pairs with an answer.
    pub answered: usize,
    /// Echo requests sent by all pairs.
    pub requests: u64,
    /// Echo replies received by all pairs.
    pub replies: u64,
    /// The longest time from a request to its reply.
    pub rtt_max_ns: u64,
    /// Pairs without an answer, as `h1 h2`.
    pub unanswered: Vec<String>,
}

impl Report {
    /// Whether the run came to its end, every connected pair was answered in every round,
    /// every flow was started, came to its end if it has one, and received nothing but what was
    /// sent, no entry was silent, every connected host has an address, no route is stale, no
    /// buffers wait for each other for ever and every frame is
    /// accounted for; and the trace, if one was wanted, is whole.
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

    /// The report as JSON.
    ///
    /// # Panics
    /// Never: every key is a string.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("string keys")
    }

    /// The report of a world as it is: all but the rounds, the samples, a deadlock and why
    /// it stopped.
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
        let mut flows = world.traffic_report();
        let unfinished = world.mark_unfinished(boot, &mut flows);
        let (without_address, cut_off) = world.without_address();
        let mut warnings = world.in_flight_warnings(&flows);
        warnings.extend(cut_off);
        warnings.extend(world.forbidden_flows());
        warnings.extend(world.program_warnings());
        warnings.extend(world.agent_warnings());
        let (ended_at, dropped_at) = end_counts(world).into_iter().partition(|end| end.is_ordinary);
        Report {
            fabric: world.fabric().name.clone(),
            seed,
            hosts: world.fabric().hosts.len(),
            addressed,
            boot_ns: boot.as_nanos(),
            rounds: Vec::new(),
            flows,
            entries: world.traffic_times(),
            agents: world.agent_reports(),
            drops: named(drops),
            ended: named(ended),
            losses,
            corrupted,
            stale_routes: world.stale_routes().iter().map(ToString::to_string).collect(),
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
