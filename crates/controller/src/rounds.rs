//! Rerouting and rounds: routes are updated when the graph or the hosts change.
//!
//! The routes over a lost link are found from the link. Each route gets a new path from the router
//! and a new stamp at once. A route without a path is removed. The next frames from its hosts then
//! miss, and their switch repeats its request until there is a path.
//!
//! A router with its own rule, such as [`super::router::UpDown`], may have to change the rule when
//! the graph changes. All routes that violate the new rule then get new paths too.
//!
//! A restored link invalidates no route, so nothing moves at once. When the graph has not changed
//! for ten heartbeats, a round begins: the router checks every route, one batch per heartbeat, and
//! routes that have a better path are moved. The router defines what is better. For shortest paths,
//! it is a shorter path. Routes that are equally long stay, because a move may reorder frames and
//! gains nothing. A router that balances load also gets rounds after new flows, ten heartbeats
//! apart, until it has settled.
//!
//! **Order.** A switch replaces a route between two frames. It does not wait for frames on the old
//! path, so a frame may overtake earlier ones by at most the difference of the two paths' delays. A
//! flow is out of order for at most that long, once per move, and never if the new path is the
//! slower one.

use super::flows::RouteIndex;
use super::routes::Decisions;
use super::vlans::Vlans;
use crate::effect::Effects;
use alloc::vec::Vec;
use axon_wire::vlan::VlanId;
use axon_wire::{Span, Time};

/// Number of routes checked in one batch of a round.
const BATCH: u32 = 2_048;

/// Search for better paths, in batches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rounds {
    /// Time from a change to the first batch. Further batches follow at intervals of a tenth of it.
    settle: Span,
    current: Option<Round>,
}

/// Progress of a round that has begun.
#[derive(Clone, Copy, Debug)]
struct Round {
    /// Time of the next batch.
    next: Time,
    /// Next route to be checked: its VLAN, and its index there.
    at: (VlanId, u32),
    /// Number of routes moved in this round so far.
    moved: u32,
}

impl Rounds {
    /// Creates the state without a round in progress.
    pub(super) const fn new(settle: Span) -> Rounds {
        Rounds { settle, current: None }
    }

    /// Starts a new round, after links were added to the graph.
    pub(super) fn restart(&mut self, now: Time) {
        self.current = Some(Round { next: now + self.settle, at: (VlanId::NONE, 0), moved: 0 });
    }

    /// Schedules a round if the router needs one and none is in progress.
    pub(super) fn plan(&mut self, now: Time, decisions: &Decisions) {
        let is_wanted = decisions.round_wanted && decisions.paths.router().improves();
        if is_wanted && self.current.is_none() {
            self.restart(now);
        }
    }

    /// Returns when the next batch is due.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.current.map(|round| round.next)
    }

    /// Runs one batch of a round if it is due.
    pub(super) fn improve(&mut self, now: Time, all: &mut Vlans, out: &mut Effects) {
        let Some(mut round) = self.current.filter(|round| round.next <= now) else {
            return;
        };
        if round.at == (VlanId::NONE, 0) {
            begin(all);
        }
        let (mut left, mut next) = (BATCH, None);
        all.each(out, |fwd, _, out| {
            let (net, routes) = (&fwd.net, &mut fwd.routes);
            let (vlan, end) = (net.vlan(), routes.flows().end());
            let first = if vlan == round.at.0 { round.at.1 } else { 0 };
            if vlan < round.at.0 || first >= end {
                return;
            }
            let until = first.saturating_add(left).min(end);
            for at in first..until {
                round.moved += u32::from(routes.improve(net, RouteIndex(at), out));
            }
            left -= until - first;
            next = next.or((until < end).then_some((vlan, until)));
        });
        let pause = Span::from_ticks(self.settle.ticks() / 10);
        self.current = next.map(|at| Round { next: now + pause, at, ..round });
        let flows = all.iter().map(|(_, vlan)| vlan.flows().len()).sum();
        let decisions = &mut all.shared.decisions;
        if next.is_none() {
            let is_settled = decisions.paths.router().settled(round.moved as usize, flows);
            decisions.round_wanted |= !is_settled;
        }
        self.plan(now, decisions);
    }
}

/// Begins a round in the router with the flows of all VLANs.
fn begin(all: &mut Vlans) {
    all.shared.decisions.round_wanted = false;
    if all.shared.decisions.paths.router().improves() {
        let mut flows = Vec::new();
        all.each(&mut Vec::new(), |fwd, _, _| flows.extend(fwd.routes.all(&fwd.net)));
        let router = all.shared.decisions.paths.router_mut();
        router.round(all.shared.fabric.graph(), &flows);
    }
}
