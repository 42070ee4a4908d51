//! Rounds of pings between all connected pairs, until each has an answer.

use super::Round;
use crate::world::{PingId, World, reach};
use axon_simhost::ping::{PingPlan, PingStats};
use axon_wire::{Span, Time};
use std::net::IpAddr;

/// Running round of pings.
pub(crate) struct Pings {
    at: Time,
    /// Source host, target host, whether over IPv6, and the ping if it could be started.
    started: Vec<(usize, usize, bool, Option<PingId>)>,
}

/// Starts a ping for every ordered pair of connected hosts that may reach each other, or for a
/// regular subset if there are more than `pairs_max`; over both families if hosts have both.
pub(crate) fn all_pairs(
    world: &mut World,
    (interval, requests): (Span, u16),
    pairs_max: usize,
) -> Pings {
    let at = world.now();
    let hosts = world.truth().connected_hosts();
    let others = hosts.len().saturating_sub(1);
    let all = hosts.len() * others;
    let pair = |number: usize| {
        let (from, to) = (number / others, number % others);
        // The host itself is skipped in its row.
        (hosts[from], hosts[if to < from { to } else { to + 1 }])
    };
    let may = |&(from, to): &(usize, usize)| world.truth().may_reach(from, to);
    let everyone = reach::everyone_may_reach_everyone(world.fabric());
    let count = if everyone { all } else { (0..all).map(pair).filter(may).count() };
    let every = count.div_ceil(pairs_max.max(1)).max(1);
    let chosen: Vec<(usize, usize)> = match everyone {
        true => (0..all).step_by(every).map(pair).collect(),
        false => (0..all).map(pair).filter(may).step_by(every).collect(),
    };
    let has_v6: Vec<bool> =
        (0..world.fabric().hosts.len()).map(|host| reach::wants_v6(world.fabric(), host)).collect();
    let mut started = Vec::new();
    for (from, to) in chosen {
        let v4 = world.address(to).map(IpAddr::V4);
        let v6 = || world.nodes().address6(to).map(IpAddr::V6);
        let families =
            [(false, v4)].into_iter().chain((has_v6[from] && has_v6[to]).then(|| (true, v6())));
        for (is_v6, target) in families.collect::<Vec<_>>() {
            let plan = |target| PingPlan::until_reply(target, interval, requests);
            let id = target.and_then(|target| world.ping(from, plan(target)));
            started.push((from, to, is_v6, id));
        }
    }
    Pings { at, started }
}

impl Pings {
    /// Returns whether every ping has an answer or has given up.
    pub(crate) fn done(&self, world: &World) -> bool {
        let stats = self.started.iter().filter_map(|&(_, _, _, id)| world.ping_stats(id?));
        stats.into_iter().all(|stats| stats.done)
    }

    /// Returns the results of the round.
    pub(crate) fn summary(&self, world: &World) -> Round {
        let mut round = Round {
            at_ns: self.at.as_nanos(),
            pairs: self.started.len(),
            answered: 0,
            requests: 0,
            replies: 0,
            rtt_max_ns: 0,
            unanswered: Vec::new(),
        };
        for &(from, to, is_v6, id) in &self.started {
            let stats: PingStats = id.and_then(|id| world.ping_stats(id)).unwrap_or_default();
            round.requests += u64::from(stats.sent);
            round.replies += u64::from(stats.received);
            round.rtt_max_ns = round.rtt_max_ns.max(stats.rtt_max.map_or(0, Span::as_nanos));
            if stats.received > 0 {
                round.answered += 1;
            } else {
                let name = |host: usize| &world.fabric().hosts[host].name;
                let family = if is_v6 { " over IPv6" } else { "" };
                round.unanswered.push(format!("{} {}{family}", name(from), name(to)));
            }
        }
        round
    }
}
