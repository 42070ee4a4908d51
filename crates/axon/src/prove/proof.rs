//! Scope and results of a proof.

use super::each::{Each, Failures};
use super::{buffers, watchdog};
use axon_dcbx::Mismatch;
use axon_fabric::model::{End, Fabric};
use axon_prove::{Dependencies, Verdict};
use axon_wire::PrioritySet;

/// Routes to check.
pub struct Asked {
    /// Pairs of hosts, by index; both directions of each are checked.
    pub pairs: Vec<(usize, usize)>,
    /// Number of pairs of hosts in the fabric.
    pub all: u64,
    /// Number of the pairs that only the traffic section added.
    pub traffic: usize,
    /// Seed of the draw, and of the router.
    pub seed: u64,
    /// Links that fail together, by index.
    pub failed: Vec<usize>,
    /// Kinds of single failures.
    pub each: Vec<Each>,
}

/// Backup routes, which edges use without the controller.
pub enum Backups {
    /// The file wants none.
    Off,
    /// There are no backups: a priority is lossless, and the router has no order for them to
    /// follow.
    NoOrder,
    /// No priority is lossless and the router has no order: backups are not part of the proof.
    Lossy,
    /// Number of backups, and the verdict for them and all routes together.
    Proved(u64, Verdict),
}

/// Results of a proof.
pub struct Proof<'a> {
    /// The fabric.
    pub fabric: &'a Fabric,
    /// Routes that were checked.
    pub asked: Asked,
    /// Dependencies of buffers by the final routes.
    pub dependencies: Dependencies,
    /// Number of those routes on each layer.
    pub on_layer: Vec<u64>,
    /// Verdict for the dependencies.
    pub verdict: Verdict,
    /// Verdict for the routes before the failures and all that followed, taken together, if there
    /// were failures.
    pub mixed: Option<Verdict>,
    /// Backups of these routes.
    pub backups: Backups,
    /// Number of routes that the failures moved.
    pub moved: u64,
    /// Check of the headroom, where the fabric configures memory.
    pub buffers: Option<buffers::Buffers>,
    /// Check of the watchdog against pauses caused by congestion; `None` without a watchdog.
    pub watchdog: Option<watchdog::Watched>,
    /// Disagreements of the two ends of links by DCBX, by link.
    pub disagreements: Vec<(usize, Mismatch)>,
    /// Ports where lossless priorities have no PFC in force, and these priorities.
    pub without_pfc: Vec<(End, PrioritySet)>,
    /// Results of the requested kinds of single failures.
    pub failures: Vec<Failures>,
    /// Pairs of hosts without a route, by index: from, to.
    pub unreachable: Vec<(usize, usize)>,
}

impl Asked {
    /// Returns whether every pair of hosts was checked.
    pub(crate) fn is_all(&self) -> bool {
        self.pairs.len() as u64 == self.all
    }

    /// Returns the two hosts of a flow, by its number: twice the index of its pair, plus one for
    /// the reverse direction.
    pub(crate) fn hosts(&self, flow: u32) -> (usize, usize) {
        let (a, b) = self.pairs[flow as usize / 2];
        if flow.is_multiple_of(2) { (a, b) } else { (b, a) }
    }
}

impl Proof<'_> {
    /// Returns whether nothing was found against the fabric.
    pub(crate) fn is_proved(&self) -> bool {
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
