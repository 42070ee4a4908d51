//! A whole scenario, start to report: hosts boot and get addresses, every pair pings, the
//! fabric's faults happen, every connected pair pings again.

use crate::links::{LinkId, Loss};
use crate::ping::{PingPlan, PingStats};
use crate::world::{PingId, World};
use axon_fabric::model::Fabric;
use axon_plane::Drop;
use axon_wire::{Span, Time};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write;

/// How a scenario is run.
pub struct Options {
    /// The world's seed; the fabric's without.
    pub seed: Option<u64>,
    /// Takes the trace as lines of text, if given.
    pub trace: Option<Box<dyn Write>>,
    /// How long hosts may take to get their addresses before the pings begin all the same.
    pub boot: Span,
    /// Between two requests of a ping that has no answer yet.
    pub interval: Span,
    /// Requests of one ping at most.
    pub requests: u16,
    /// Quiet time after the last fault, before the second round.
    pub settle: Span,
    /// Ordered pairs that ping in one round at most; of more, an even share is taken.
    pub pairs_max: usize,
}

impl Default for Options {
    /// Twenty requests 250 ms apart, half a minute to boot, three seconds to settle, at most
    /// 10,000 pairs.
    fn default() -> Options {
        Options {
            seed: None,
            trace: None,
            boot: Span::from_secs(30),
            interval: Span::from_millis(250),
            requests: 20,
            settle: Span::from_secs(3),
            pairs_max: 10_000,
        }
    }
}

/// What came of a scenario. As JSON, times are in nanoseconds.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The fabric's name.
    pub fabric: String,
    /// The world's seed.
    pub seed: u64,
    /// Hosts in the fabric.
    pub hosts: usize,
    /// Hosts that had an address when the first round began.
    pub addressed: usize,
    /// When the first round began.
    pub boot_ns: u64,
    /// The rounds of pings: one, or two where the fabric has faults.
    pub rounds: Vec<Round>,
    /// Frames that ended inside nodes, by reason; the ordinary end of control packets
    /// (`consumed`) included.
    pub drops: BTreeMap<&'static str, u64>,
    /// Frames that links lost, by reason.
    pub losses: BTreeMap<&'static str, u64>,
    /// Routes, at the end, that do not lead to the host they are for.
    pub stale_routes: Vec<String>,
    /// Accounts of frames that do not balance: a bug, if there is any.
    pub unaccounted: Option<String>,
    /// Simulated time.
    pub simulated_ns: u64,
    /// Events handled.
    pub events: u64,
    /// Frames that came out of a link.
    pub packet_hops: u64,
    /// The hash of everything that happened, in hexadecimal.
    pub trace_hash: String,
    /// Why the trace could not be written to its end, if so.
    pub trace_error: Option<String>,
}

/// One round of pings.
#[derive(Clone, Debug, Serialize)]
pub struct Round {
    /// When it began.
    pub at_ns: u64,
    /// Ordered pairs of hosts that were connected and pinged.
    pub pairs: usize,
    /// Pairs with an answer.
    pub answered: usize,
    /// Requests sent.
    pub requests: u64,
    /// Replies received.
    pub replies: u64,
    /// The longest time from a request to its reply.
    pub rtt_max_ns: u64,
    /// Pairs without an answer, as `h1 h2`.
    pub unanswered: Vec<String>,
}

impl Report {
    /// Whether every connected pair was answered in every round, no route is stale and every
    /// frame is accounted for.
    pub fn passed(&self) -> bool {
        self.rounds.iter().all(|round| round.answered == round.pairs)
            && self.stale_routes.is_empty()
            && self.unaccounted.is_none()
    }

    /// The report as JSON.
    ///
    /// # Panics
    /// Never: every key is a string.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("string keys")
    }
}

/// Runs a scenario.
pub fn run(fabric: &Fabric, options: Options) -> Report {
    let seed = options.seed.unwrap_or(fabric.seed);
    let mut world = World::with_trace(fabric, seed, options.trace);
    world.run_until_true(Time::ZERO + options.boot, World::all_have_addresses);
    let boot = world.now();
    let addressed = (0..fabric.hosts.len()).filter(|&host| world.address(host).is_some()).count();
    let plan = (options.interval, options.requests);
    let mut rounds = vec![all_pairs(&mut world, plan, options.pairs_max)];
    if let Some(last) = fabric.faults.last() {
        world.run_until((Time::ZERO + last.at).max(world.now()) + options.settle);
        rounds.push(all_pairs(&mut world, plan, options.pairs_max));
    }
    world.engine_mut().trace_mut().flush();
    report(&world, seed, boot, addressed, rounds)
}

/// Lets every connected pair ping until it has an answer.
fn all_pairs(world: &mut World, (interval, requests): (Span, u16), pairs_max: usize) -> Round {
    let at = world.now();
    let hosts = world.connected_hosts();
    let pairs: Vec<(usize, usize)> = hosts
        .iter()
        .flat_map(|&from| hosts.iter().map(move |&to| (from, to)))
        .filter(|(from, to)| from != to)
        .collect();
    let every = pairs.len().div_ceil(pairs_max.max(1)).max(1);
    let mut started: Vec<(usize, usize, Option<PingId>)> = Vec::new();
    for &(from, to) in pairs.iter().step_by(every) {
        let target = world.address(to);
        let id = target
            .and_then(|target| world.ping(from, PingPlan::until_reply(target, interval, requests)));
        started.push((from, to, id));
    }
    let limit = at + interval * (u64::from(requests) + 2);
    world.run_until_true(limit, |world| {
        started.iter().filter_map(|&(_, _, id)| world.ping_stats(id?)).all(|stats| stats.done)
    });
    summary(world, at, &started)
}

fn summary(world: &World, at: Time, started: &[(usize, usize, Option<PingId>)]) -> Round {
    let mut round = Round {
        at_ns: at.as_nanos(),
        pairs: started.len(),
        answered: 0,
        requests: 0,
        replies: 0,
        rtt_max_ns: 0,
        unanswered: Vec::new(),
    };
    for &(from, to, id) in started {
        let stats: PingStats = id.and_then(|id| world.ping_stats(id)).unwrap_or_default();
        round.requests += u64::from(stats.sent);
        round.replies += u64::from(stats.received);
        round.rtt_max_ns = round.rtt_max_ns.max(stats.rtt_max.map_or(0, Span::as_nanos));
        if stats.received > 0 {
            round.answered += 1;
        } else {
            let name = |host: usize| &world.fabric().hosts[host].name;
            round.unanswered.push(format!("{} {}", name(from), name(to)));
        }
    }
    round
}

fn report(world: &World, seed: u64, boot: Time, addressed: usize, rounds: Vec<Round>) -> Report {
    let engine = world.engine();
    let ended = engine.accounts().dropped;
    let drops = Drop::ALL.iter().zip(ended).filter(|&(_, count)| count > 0);
    let mut losses = BTreeMap::new();
    let ids = (0..engine.links().len()).map(LinkId);
    for fates in ids.flat_map(|link| [engine.fates(link, 0), engine.fates(link, 1)]) {
        for (loss, count) in Loss::ALL.iter().zip(fates.lost).filter(|&(_, count)| count > 0) {
            *losses.entry(loss.name()).or_insert(0) += count;
        }
    }
    Report {
        fabric: world.fabric().name.clone(),
        seed,
        hosts: world.fabric().hosts.len(),
        addressed,
        boot_ns: boot.as_nanos(),
        rounds,
        drops: drops.map(|(reason, count)| (reason.name(), count)).collect(),
        losses,
        stale_routes: world.stale_routes().iter().map(ToString::to_string).collect(),
        unaccounted: engine.check_conservation().err(),
        simulated_ns: world.now().as_nanos(),
        events: engine.events(),
        packet_hops: engine.packet_hops(),
        trace_hash: format!("{:016x}", engine.trace_hash()),
        trace_error: engine.trace().failure().map(ToString::to_string),
    }
}
