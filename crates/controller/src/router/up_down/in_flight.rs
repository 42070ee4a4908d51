//! Paths on which frames may still be in flight while one order replaces another.

use super::super::Step;
use super::super::dependencies::ChannelDependencies;
use super::order::Order;
use crate::topology::Graph;
use alloc::collections::BTreeSet;

/// Pair of consecutive links on a path.
type Turn = [Step; 2];

/// Turns on the router's paths that frames in flight may still take.
///
/// Every path that the router returns, for a route or for a backup, is recorded here. While only
/// one order is in force, nothing more is needed, because paths that follow it form no cycle. When
/// a new order replaces it, the turns that violate the new one must be *drained*. From then on a
/// path has to follow the new order and must not close a cycle with these turns and those recorded
/// since ([`ChannelDependencies`]). So frames in flight never form a cycle, in whatever order edges
/// install their routes. When the frames on old paths have left ([`InFlight::drained`]), the old
/// turns are dropped, and only the new order counts.
///
/// A turn from or to a failed link is dropped as soon as the order changes. Such a link carries no
/// frames, so no buffer waits for another one over it.
#[derive(Clone, Debug, Default)]
pub(super) struct InFlight {
    /// Turns on paths that follow the current order.
    used: BTreeSet<Turn>,
    /// Turns on earlier paths that violate the current order.
    old: BTreeSet<Turn>,
    /// Dependencies of all these turns, while there are old ones.
    both: Option<ChannelDependencies>,
}

impl InFlight {
    /// Returns whether there are turns to be drained.
    pub(super) const fn is_draining(&self) -> bool {
        self.both.is_some()
    }

    /// Records the turns on a path that follows the order, unless the path closes a cycle with old
    /// turns. Returns whether they were recorded.
    pub(super) fn admit(&mut self, path: &[Step]) -> bool {
        let admitted = self.both.as_mut().is_none_or(|both| both.admit(path));
        if admitted {
            self.used.extend(turns(path));
        }
        admitted
    }

    /// Returns whether a path that follows the order has been recorded, or need not be.
    pub(super) fn includes(&self, path: &[Step]) -> bool {
        self.both.as_ref().is_none_or(|both| both.include(path))
    }

    /// Records a path in use that violates the order, unless it closes a cycle with the turns known
    /// to be in flight. Returns whether it was recorded.
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

    /// Handles a new order, or reversed links in the current one. Returns whether the turns in
    /// flight form no cycle.
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

    /// Drops the old turns, whose last frames have left the fabric.
    pub(super) fn drained(&mut self) {
        self.old.clear();
        self.both = None;
    }
}

fn turns(path: &[Step]) -> impl Iterator<Item = Turn> + '_ {
    path.windows(2).map(|pair| [pair[0], pair[1]])
}
