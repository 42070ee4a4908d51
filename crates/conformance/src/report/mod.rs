//! What came of a run: as text, as JSON, as JUnit XML.

pub mod junit;
pub mod text;

use crate::case::{Outcome, Verdict};
use serde::Serialize;

/// A run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// What was tested: `axon`, `eth1`.
    pub device: String,
    /// Each case, in the order in which they ran.
    pub cases: Vec<Outcome>,
}

impl Report {
    /// How many cases ended so.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.cases.iter().filter(|case| case.verdict == verdict).count()
    }

    /// Whether nothing failed or remained open, and something passed. What is not applicable has
    /// not passed, but is no fault either.
    pub fn is_good(&self) -> bool {
        let bad = [Verdict::Failed, Verdict::Inconclusive, Verdict::Broken];
        bad.into_iter().all(|verdict| self.count(verdict) == 0) && self.count(Verdict::Passed) > 0
    }
}
