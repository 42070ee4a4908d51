//! What is to be proved, and what was found.

use super::each::{Each, Failures};
use super::{buffers, watchdog};
use axon_dcbx::Mismatch;
use axon_fabric::model::{End, Fabric};
use axon_prove::{Dependencies, Verdict};
use axon_wire::PrioritySet;

/// Which routes are looked at.
pub struct Asked {
    /// Pairs of hosts, by index; both directions of each.
    pub pairs: Vec<(usize, usize)>,
    /// How many pairs of hosts there are.
    pub all: u64,
    /// Of the pairs, how many only the traffic section brought in.
    pub traffic: usize,
    /// Seed of the draw, and of the router.
    pub seed: u64,
    /// Links that fail, by index.
    pub failed: Vec<usize>,
    /// What fails each by itself.
    pub each: Vec<Each>,
}

/// The backup routes, which edges take by themselves.
pub enum Backups {
    /// The file wants none.
    Off,
    /// There are none: a priority is lossless, and the router has no order for them to follow.
    NoOrder,
    /// No priority is lossless and the router has no order: they are no part of the proof.
    Lossy,
    /// How many there are, and what they and all routes say together.
    Proved(u64, Verdict),
}

/// What was found.
pub struct Proof<'a> {
    /// The fabric.
    pub fabric: &'a Fabric,
    /// Which routes were looked at.
    pub asked: Asked,
    /// Buffers and what they wait for, by the routes that stand in the end.
    pub dependencies: Dependencies,
    /// How many of those routes are on each layer.
    pub on_layer: Vec<u64>,
    /// What the dependencies say.
    pub verdict: Verdict,
    /// What the routes before the failures and all that came after say together, if there were
    /// failures.
    pub mixed: Option<Verdict>,
    /// The backups of these routes.
    pub backups: Backups,
    /// Routes that the failures moved.
    pub moved: u64,
    /// Whether what waits has room, where the fabric says how much there is.
    pub buffers: Option<buffers::Buffers>,
    /// Whether the watchdog ignores pauses caused by congestion, where there is a watchdog.
    pub watchdog: Option<watchdog::Watched>,
    /// Disagreements of the two ends of links by DCBX, by link.
    pub disagreements: Vec<(usize, Mismatch)>,
    /// Ports where lossless priorities have no PFC in force, and these priorities.
    pub without_pfc: Vec<(End, PrioritySet)>,
    /// What becomes of each failure by itself, of those that were asked for.
    pub failures: Vec<Failures>,
    /// Hosts that have no route to another, by index: from which, to which.
    pub unreachable: Vec<(usize, usize)>,
}

impl Asked {
    /// Whether every pair of hosts was looked at.
    pub fn is_all(&self) -> bool {
        self.pairs.len() as u64 == self.all
    }

    /// The two hosts of a flow, by its number: twice the place of its pair, one more for the way
    /// back.
    pub fn hosts(&self, flow: u32) -> (usize, usize) {
        let (a, b) = self.pairs[flow as usize / 2];
        if flow.is_multiple_of(2) { (a, b) } else { (b, a) }
    }
}

impl Proof<'_> {
    /// Whether nothing was found that speaks against it.
    pub fn is_proved(&self) -> bool {
        let is_free = |verdict: &Verdict| matches!(verdict, Verdict::Free(_));
        is_free(&self.verdict)
            && self.mixed.as_ref().is_none_or(is_free)
            && !matches!(self.backups, Backups::Proved(_, Verdict::Cycle(_)))
            && self.unreachable.is_empty()
            && self.failures.iter().all(Failures::are_proved)
            && self.disagreements.is_empty()
            && self.without_pfc.is_empty()
            && self.buffers.as_ref().is_none_or(buffers::Buffers::suffice)
            && self.watchdog.as_ref().is_none_or(watchdog::Watched::suffices)
    }
}
