//! Results of a sweep while it runs.

use super::child::Outcome;
use super::progress::Progress;
use super::store::{Kept, Status, Store};
use crate::sim::size;
use anyhow::Result;
use axon_wire::Bytes;
use std::collections::BTreeMap;

/// Results so far.
pub struct Results {
    /// Folder that has them.
    pub store: Store,
    /// Finished runs, by number.
    pub kept: BTreeMap<usize, Kept>,
    /// Progress display.
    pub progress: Progress,
    /// Runs that need more memory than their share.
    pub large: Vec<usize>,
    /// Memory that all runs together may use.
    pub memory_max: Option<Bytes>,
}

impl Results {
    /// Handles a run that has ended.
    ///
    /// # Errors
    /// Its result cannot be stored.
    pub(crate) fn done(&mut self, run: usize, outcome: Outcome) -> Result<()> {
        match outcome {
            Outcome::Kept(kept) => self.keep(run, *kept),
            Outcome::OutOfMemory => {
                self.large.push(run);
                Ok(())
            }
        }
    }

    /// Updates the display; called at intervals.
    pub(crate) fn look(&mut self) {
        self.progress.look();
    }

    /// Stores that a run needs more memory than there is.
    ///
    /// # Errors
    /// It cannot be stored.
    pub(crate) fn too_large(
        &mut self,
        run: usize,
        parameters: Vec<(String, String)>,
    ) -> Result<()> {
        let most = self.memory_max.map_or_else(String::new, |Bytes(most)| size(most));
        let kept = Kept {
            parameters: parameters.into_iter().collect(),
            status: Status::Stopped,
            reason: Some(format!("it needs more memory than --memory-max {most}")),
            figures: None,
        };
        self.keep(run, kept)
    }

    fn keep(&mut self, run: usize, kept: Kept) -> Result<()> {
        self.store.keep(run, &kept)?;
        self.progress.add(kept.status == Status::Passed);
        self.kept.insert(run, kept);
        Ok(())
    }
}
