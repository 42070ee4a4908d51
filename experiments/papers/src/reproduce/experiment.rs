//! Experiment: its place in a paper, and the function that runs it.

use super::context::Context;
use super::outcome::Outcome;
use anyhow::Result;

/// Table or figure of a paper.
#[derive(Debug)]
pub struct Experiment {
    /// ID: `axon/fig4.1`.
    pub id: &'static str,
    /// Source file, from the root of the repository: `file!()`.
    pub file: &'static str,
    /// Short title.
    pub title: &'static str,
    /// Place in the paper: `000 §4.3.1, figure 4.1`.
    pub source: &'static str,
    /// Description of the set-up and the measurement; a short paragraph.
    pub setup: &'static str,
    /// Runs the experiment.
    pub run: fn(&mut Context) -> Result<Outcome>,
}
