//! Figures of one run: the output of `axon sim --json`, as far as it fits cells of a table.
//!
//! Flows of one entry of the traffic are combined: counts are summed, and of times and rates the
//! minimum, the mean and the maximum are kept. Of other lists the length is kept.

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Figures of a completed run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Name of the fabric in its file.
    pub fabric: String,
    /// Seed of all random numbers of the run.
    pub seed: u64,
    /// Hash of all events, in hexadecimal.
    pub trace_hash: String,
    /// Events that the simulator handled in the whole run.
    pub events: u64,
    /// Number of frames that left a link.
    pub packet_hops: u64,
    /// Simulated time that the run covered, in nanoseconds.
    pub simulated_ns: u64,
    /// Time at which the first round of pings, or the traffic, began, in nanoseconds from the
    /// start.
    pub boot_ns: u64,
    /// Hosts in the fabric.
    pub hosts: u64,
    /// Hosts that had an address when the first round, or the traffic, began.
    pub addressed: u64,
    /// Hosts that were connected when the run ended and had no address.
    pub without_address: u64,
    /// Flows that should have ended and did not.
    pub unfinished: u64,
    /// Entries of the traffic that should have begun and sent nothing.
    pub silent: u64,
    /// Routes, at the end, that do not lead to their destination host.
    pub stale_routes: u64,
    /// Time at which the first deadlock was detected; empty if there was none.
    pub deadlock_at_ns: Option<u64>,
    /// Frames that left a link with a bit flipped.
    pub corrupted: u64,
    /// Number of warnings of the run.
    pub warnings: u64,
    /// Rounds of pings, by number from 1: none with traffic.
    pub rounds: BTreeMap<String, RoundFigures>,
    /// Entries of the traffic, by name.
    pub traffic: Vec<TrafficFigures>,
    /// Counters of agents, by the name of the agent and of the counter.
    pub agents: BTreeMap<String, BTreeMap<String, u64>>,
    /// Frames that nodes dropped, by reason.
    pub drops: BTreeMap<String, u64>,
    /// Frames that links lost, by reason.
    pub losses: BTreeMap<String, u64>,
    /// Frames that ended inside nodes in normal operation, which are not drops, by reason.
    pub ended: BTreeMap<String, u64>,
}

/// One round of pings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundFigures {
    /// Time at which the round began, in nanoseconds from the start of the run.
    pub at_ns: u64,
    /// Ordered pairs of hosts that pinged, times the address families used.
    pub pairs: u64,
    /// Pairs with an answer.
    pub answered: u64,
    /// Echo requests sent by all pairs.
    pub requests: u64,
    /// Echo replies received by all pairs.
    pub replies: u64,
    /// Maximum time from a request to its reply.
    pub rtt_max_ns: u64,
}

/// One entry of the traffic section: all of its flows together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrafficFigures {
    /// Name of the entry, which is a part of the names of its columns and has no column itself.
    pub name: String,
    /// Number of flows of the entry.
    pub flows: u64,
    /// Datagrams, frames of a replay, writes or requests sent.
    pub sent_packets: u64,
    /// Bytes of payload sent; of a replay, of frames.
    pub sent_bytes: u64,
    /// Datagrams, frames of a replay or reads received at the other end, or responses received.
    pub received_packets: u64,
    /// Bytes of payload received; of a replay, of frames.
    pub received_bytes: u64,
    /// Packets sent and not received so far: lost or in flight; empty if not known of any flow.
    pub missing_packets: Option<u64>,
    /// Number of the missing packets that have ended for a counted reason; empty if not known.
    pub lost_packets: Option<u64>,
    /// Number of the missing packets that are neither lost nor received; empty if not known.
    pub in_flight_packets: Option<u64>,
    /// Datagrams that arrived after one that was sent later.
    pub reordered: u64,
    /// Segments or requests that were retransmitted.
    pub retransmits: u64,
    /// Bytes of a stream that differ from those sent.
    pub wrong_bytes: u64,
    /// Completed transfers, rounds or transactions.
    pub completed: u64,
    /// Transfers, rounds or transactions that were given up or broke.
    pub failed: u64,
    /// Flows that should have ended and did not.
    pub unfinished: u64,
    /// Time of the first transmission of any flow; empty if there was none.
    pub first_ns: Option<u64>,
    /// Time of the last reception of any flow; empty if there was none.
    pub last_ns: Option<u64>,
    /// Time at which the last flow was done; empty if one of them is not.
    pub done_ns: Option<u64>,
    /// Goodput of the slowest flow that received anything, in bits per second.
    pub goodput_min_bps: Option<u64>,
    /// Mean goodput of the flows that received anything, in bits per second.
    pub goodput_mean_bps: Option<u64>,
    /// Goodput of the fastest flow, in bits per second.
    pub goodput_max_bps: Option<u64>,
    /// Number of measured times: of completed operations, or of datagrams if there were none.
    pub times: u64,
    /// Minimum time, in nanoseconds; empty if none was measured, as are the next four.
    pub times_min_ns: Option<u64>,
    /// Mean time, in nanoseconds.
    pub times_mean_ns: Option<u64>,
    /// Median time, at most 1.6 % too high.
    pub times_p50_ns: Option<u64>,
    /// 99th percentile of the times, at most 1.6 % too high.
    pub times_p99_ns: Option<u64>,
    /// Maximum time, in nanoseconds.
    pub times_max_ns: Option<u64>,
    /// Transactions of a file service per thousand seconds; empty for other traffic.
    pub transactions_per_1000s: Option<u64>,
    /// Bytes of files that a file service read per second; empty for other traffic.
    pub read_bytes_per_second: Option<u64>,
    /// Bytes of files that a file service wrote per second; empty for other traffic.
    pub written_bytes_per_second: Option<u64>,
    /// Lost packets, by reason.
    pub lost: BTreeMap<String, u64>,
}

/// Report of a run, as far as it is needed here; see `axon_sim::run::Report`.
#[derive(Debug, Deserialize)]
pub struct Ran {
    fabric: String,
    seed: u64,
    hosts: u64,
    addressed: u64,
    boot_ns: u64,
    rounds: Vec<RoundFigures>,
    flows: Vec<Flow>,
    entries: Vec<Entry>,
    #[serde(default)]
    agents: Vec<Agent>,
    drops: BTreeMap<String, u64>,
    ended: BTreeMap<String, u64>,
    losses: BTreeMap<String, u64>,
    corrupted: u64,
    stale_routes: Vec<String>,
    deadlock: Option<Deadlock>,
    unaccounted: Option<String>,
    warnings: Vec<String>,
    silent: Vec<String>,
    unfinished: Vec<String>,
    without_address: Vec<String>,
    /// Reason that the run was stopped early, if it was.
    pub stopped: Option<String>,
    simulated_ns: u64,
    events: u64,
    packet_hops: u64,
    trace_hash: String,
}

#[derive(Debug, Deserialize)]
struct Deadlock {
    at_ns: u64,
}

#[derive(Debug, Deserialize)]
struct Agent {
    agent: String,
    counters: BTreeMap<String, u64>,
    payload: BTreeMap<String, u64>,
    refused: u64,
}

#[derive(Debug, Deserialize)]
struct Entry {
    name: String,
    flows: usize,
    times: Option<Times>,
}

#[derive(Debug, Deserialize)]
struct Times {
    count: u64,
    min_ns: u64,
    mean_ns: u64,
    p50_ns: u64,
    p99_ns: u64,
    max_ns: u64,
}

#[derive(Debug, Deserialize)]
struct Files {
    transactions_per_1000s: u64,
    read_bytes_per_second: u64,
    written_bytes_per_second: u64,
}

#[derive(Debug, Deserialize)]
struct Flow {
    sent_packets: u64,
    sent_bytes: u64,
    received_packets: u64,
    received_bytes: u64,
    missing_packets: Option<u64>,
    lost_packets: Option<u64>,
    lost: BTreeMap<String, u64>,
    in_flight_packets: Option<u64>,
    reordered: u64,
    retransmits: u64,
    wrong_bytes: u64,
    first_ns: Option<u64>,
    last_ns: Option<u64>,
    goodput_bps: Option<u64>,
    completed: u64,
    failed: u64,
    unfinished: bool,
    done_ns: Option<u64>,
    files: Option<Files>,
}

impl Ran {
    /// Parses the output of `axon sim --json`.
    ///
    /// # Errors
    /// The text is something else.
    pub(crate) fn read(json: &[u8]) -> Result<Ran> {
        serde_json::from_slice(json).context("the run wrote no report")
    }

    /// Returns the reasons of its failure, in the order of the report.
    pub(crate) fn why(&self) -> String {
        let mut why = Vec::new();
        let mut add = |count: usize, of: String| {
            if count > 0 {
                why.push(format!("{count} {of}"));
            }
        };
        let unanswered =
            self.rounds.iter().map(|round| round.pairs.saturating_sub(round.answered)).sum::<u64>();
        add(unanswered as usize, "pairs of hosts had no answer".into());
        let never = |flow: &&Flow| flow.failed > 0 && flow.sent_packets == 0;
        add(self.flows.iter().filter(never).count(), "flows were not started".into());
        let wrong = |flow: &&Flow| flow.wrong_bytes > 0;
        add(self.flows.iter().filter(wrong).count(), "flows received wrong bytes".into());
        let all = self.flows.len();
        add(self.unfinished.len(), format!("of {all} flows did not come to their end"));
        let hosts = self.hosts;
        add(self.without_address.len(), format!("of {hosts} hosts have no address"));
        add(self.stale_routes.len(), "routes are stale".into());
        why.extend(self.silent.iter().cloned());
        if let Some(Deadlock { at_ns }) = self.deadlock {
            why.push(format!(
                "a deadlock at {}.{:03} ms",
                at_ns / 1_000_000,
                at_ns / 1_000 % 1_000
            ));
        }
        why.extend(self.unaccounted.clone());
        why.join("; ")
    }

    /// Returns its figures.
    pub(crate) fn figures(self) -> Figures {
        let mut flows = &self.flows[..];
        let mut traffic: Vec<TrafficFigures> = Vec::new();
        for entry in &self.entries {
            let (own, rest) = flows.split_at(entry.flows.min(flows.len()));
            flows = rest;
            traffic.push(together(entry.name.clone(), entry, own));
        }
        let count = |list: &[String]| list.len() as u64;
        let rounds = (1..).zip(self.rounds).map(|(at, round): (u32, _)| (at.to_string(), round));
        let agents = self.agents.into_iter().map(Agent::counts);
        Figures {
            without_address: count(&self.without_address),
            unfinished: count(&self.unfinished),
            silent: count(&self.silent),
            stale_routes: count(&self.stale_routes),
            warnings: count(&self.warnings),
            deadlock_at_ns: self.deadlock.map(|deadlock| deadlock.at_ns),
            rounds: rounds.collect(),
            agents: agents.collect(),
            traffic,
            fabric: self.fabric,
            seed: self.seed,
            trace_hash: self.trace_hash,
            events: self.events,
            packet_hops: self.packet_hops,
            simulated_ns: self.simulated_ns,
            boot_ns: self.boot_ns,
            hosts: self.hosts,
            addressed: self.addressed,
            corrupted: self.corrupted,
            drops: self.drops,
            losses: self.losses,
            ended: self.ended,
        }
    }
}

impl Agent {
    /// Returns the agent's name, and all its counters.
    fn counts(self) -> (String, BTreeMap<String, u64>) {
        let payload = self.payload.into_iter();
        let mut counts = self.counters;
        counts.extend(payload.map(|(name, count)| (format!("payload.{name}"), count)));
        counts.insert("refused".to_owned(), self.refused);
        (self.agent, counts)
    }
}

/// Combines the flows of an entry.
fn together(name: String, entry: &Entry, flows: &[Flow]) -> TrafficFigures {
    let sum = |of: fn(&Flow) -> u64| flows.iter().map(of).sum::<u64>();
    let known = |of: fn(&Flow) -> Option<u64>| {
        flows.iter().filter_map(of).reduce(|sum, packets| sum + packets)
    };
    let files = |of: fn(&Files) -> u64| {
        let all = flows.iter().filter_map(|flow| flow.files.as_ref().map(of));
        all.reduce(|sum, rate| sum + rate)
    };
    let goodputs: Vec<u64> = flows.iter().filter_map(|flow| flow.goodput_bps).collect();
    let mean = goodputs.iter().sum::<u64>().checked_div(goodputs.len() as u64);
    let done: Option<Vec<u64>> = flows.iter().map(|flow| flow.done_ns).collect();
    let mut lost = BTreeMap::new();
    for (reason, count) in flows.iter().flat_map(|flow| &flow.lost) {
        *lost.entry(reason.clone()).or_default() += count;
    }
    let times = |of: fn(&Times) -> u64| entry.times.as_ref().map(of);
    TrafficFigures {
        name,
        flows: flows.len() as u64,
        sent_packets: sum(|flow| flow.sent_packets),
        sent_bytes: sum(|flow| flow.sent_bytes),
        received_packets: sum(|flow| flow.received_packets),
        received_bytes: sum(|flow| flow.received_bytes),
        missing_packets: known(|flow| flow.missing_packets),
        lost_packets: known(|flow| flow.lost_packets),
        in_flight_packets: known(|flow| flow.in_flight_packets),
        reordered: sum(|flow| flow.reordered),
        retransmits: sum(|flow| flow.retransmits),
        wrong_bytes: sum(|flow| flow.wrong_bytes),
        completed: sum(|flow| flow.completed),
        failed: sum(|flow| flow.failed),
        unfinished: sum(|flow| flow.unfinished.into()),
        first_ns: flows.iter().filter_map(|flow| flow.first_ns).min(),
        last_ns: flows.iter().filter_map(|flow| flow.last_ns).max(),
        done_ns: done.and_then(|done| done.into_iter().max()),
        goodput_min_bps: goodputs.iter().min().copied(),
        goodput_mean_bps: mean,
        goodput_max_bps: goodputs.iter().max().copied(),
        times: times(|times| times.count).unwrap_or(0),
        times_min_ns: times(|times| times.min_ns),
        times_mean_ns: times(|times| times.mean_ns),
        times_p50_ns: times(|times| times.p50_ns),
        times_p99_ns: times(|times| times.p99_ns),
        times_max_ns: times(|times| times.max_ns),
        transactions_per_1000s: files(|files| files.transactions_per_1000s),
        read_bytes_per_second: files(|files| files.read_bytes_per_second),
        written_bytes_per_second: files(|files| files.written_bytes_per_second),
        lost,
    }
}
