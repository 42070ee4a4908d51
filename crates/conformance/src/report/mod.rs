//! Report of a run, as text, JSON or JUnit XML.

pub mod junit;
pub mod text;

use crate::case::{Outcome, Verdict};
use serde::Serialize;

/// Report of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Tested device: `axon`, `eth1`.
    pub device: String,
    /// Outcomes in the order of the run.
    pub cases: Vec<Outcome>,
}

impl Report {
    /// Returns the number of cases with this verdict.
    pub(crate) fn count(&self, verdict: Verdict) -> usize {
        self.cases.iter().filter(|case| case.verdict == verdict).count()
    }

    /// Returns whether at least one case passed, and none failed or remained undecided. Cases that
    /// are not applicable do not count either way.
    pub fn is_good(&self) -> bool {
        let bad = [Verdict::Failed, Verdict::Inconclusive, Verdict::Broken];
        bad.into_iter().all(|verdict| self.count(verdict) == 0) && self.count(Verdict::Passed) > 0
    }
}
