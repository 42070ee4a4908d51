//! One experiment: its place in a paper, and the function that runs it.

use super::context::Context;
use super::outcome::Outcome;
use anyhow::Result;

/// One table or figure of a paper.
#[derive(Debug)]
pub struct Experiment {
    /// `axon/fig4.1`.
    pub id: &'static str,
    /// Its source file, from the root of the repository: `file!()`.
    pub file: &'static str,
    /// A few words.
    pub title: &'static str,
    /// Where in which paper: `000 §4.3.1, figure 4.1`.
    pub source: &'static str,
    /// What is set up and measured, in our words; a short paragraph.
    pub setup: &'static str,
    /// Runs it.
    pub run: fn(&mut Context) -> Result<Outcome>,
}
