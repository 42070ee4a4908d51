//! What frames may be in flight on, while an order replaces another.

use super::super::Step;
use super::super::dependencies::ChannelDependencies;
use super::order::Order;
use crate::controller::topology::Graph;
use alloc::collections::BTreeSet;

/// A pair of consecutive links on a path.
type Turn = [Step; 2];

/// The turns that the paths of a router have made, as far as frames may still be in flight on them.
///
/// In plain English: every path that the router gives out, for a route or for a backup, is entered
/// here. As long as one order stands, that is all: paths that follow it have no cycle together.
/// When a new order replaces it, the turns that break the new one are those to be *drained*. From
/// then on a path has to follow the new order and, besides, may close no cycle with any of these
/// turns and of those given out since ([`ChannelDependencies`]). So whatever is in flight has no
/// cycle, at any moment, in whatever order edges take up their routes. When the frames on old paths
/// have left ([`InFlight::drained`]) the old turns are forgotten, and the new order alone counts.
///
/// A turn from or to a link that has failed is forgotten as soon as the order changes: nothing goes
/// over it, and nothing waits for a buffer that nobody can fill.
#[derive(Clone, Debug, Default)]
pub(super) struct InFlight {
    /// The turns of paths that follow the order that stands.
    used: BTreeSet<Turn>,
    /// The turns of earlier paths that break it.
    old: BTreeSet<Turn>,
    /// All of these, while there are old ones.
    both: Option<ChannelDependencies>,
}

impl InFlight {
    /// Whether there are turns to be drained.
    pub(super) const fn is_draining(&self) -> bool {
        self.both.is_some()
    }

    /// Enters the turns of a path that follows the order, unless it closes a cycle with old ones.
    /// Returns whether they were entered.
    pub(super) fn admit(&mut self, path: &[Step]) -> bool {
        let admitted = self.both.as_mut().is_none_or(|both| both.admit(path));
        if admitted {
            self.used.extend(turns(path));
        }
        admitted
    }

    /// Whether a path that follows the order has been admitted, or needs not be.
    pub(super) fn includes(&self, path: &[Step]) -> bool {
        self.both.as_ref().is_none_or(|both| both.include(path))
    }

    /// Enters a path that was found in use and that breaks the order, unless it closes a cycle with
    /// what is known to be in flight. Returns whether that is news.
    pub(super) fn found(&mut self, path: &[Step]) -> bool {
        let InFlight { used, old, both } = self;
        if turns(path).all(|turn| used.contains(&turn) || old.contains(&turn)) {
            return false;
        }
        let both = both.get_or_insert_with(|| {
            let mut both = ChannelDependencies::default();
            for turn in used.iter() {
                both.admit(turn);
            }
            both
        });
        let free = both.admit(path);
        if free {
            old.extend(turns(path));
        }
        free
    }

    /// Another order stands from now on, or links of it were turned. Returns whether what is in
    /// flight has no cycle.
    pub(super) fn ordered(&mut self, graph: &Graph, order: &Order) -> bool {
        let is_there = |step: &Step| graph.edge(step.switch, step.egress).is_some();
        let mut all = core::mem::take(&mut self.used);
        all.append(&mut self.old);
        all.retain(|turn| turn.iter().all(is_there));
        let follows = |turn: &Turn| {
            let [first, second] = turn.map(|step| {
                let to = graph.edge(step.switch, step.egress).map(|edge| edge.to);
                to.is_some_and(|to| order.is_up(step.switch, to))
            });
            first || !second
        };
        (self.used, self.old) = all.into_iter().partition(follows);
        self.both = None;
        let mut free = true;
        if !self.old.is_empty() {
            let mut both = ChannelDependencies::default();
            for turn in self.used.iter().chain(&self.old) {
                free &= both.admit(turn);
            }
            self.both = Some(both);
        }
        free
    }

    /// The frames on paths of before have left the fabric.
    pub(super) fn drained(&mut self) {
        self.old.clear();
        self.both = None;
    }
}

fn turns(path: &[Step]) -> impl Iterator<Item = Turn> + '_ {
    path.windows(2).map(|pair| [pair[0], pair[1]])
}
