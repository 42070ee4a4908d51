//! Keeps the tables of a switch as a program wants them: what differs goes into one transaction.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use axon_pipeline::{Change, ChangeError, Control, EntryName};

/// All entries that a program has made.
#[derive(Clone, Debug, Default)]
pub struct Book {
    entries: BTreeMap<EntryName, Change>,
}

impl Book {
    /// Makes the tables what `wanted` says, which has each entry once. Entries that stay keep
    /// their counters.
    ///
    /// # Errors
    /// The first change that cannot be made; the tables are as before.
    pub fn sync(
        &mut self,
        wanted: Vec<Change>,
        control: &mut dyn Control,
    ) -> Result<(), ChangeError> {
        let wanted: BTreeMap<EntryName, Change> =
            wanted.into_iter().map(|change| (change.entry(), change)).collect();
        let gone = self.entries.keys().filter(|name| !wanted.contains_key(name));
        let gone = gone.map(|name| name.removal());
        let new = wanted.iter().filter(|(name, change)| self.entries.get(name) != Some(change));
        let changes: Vec<Change> = gone.chain(new.map(|(_, change)| change.clone())).collect();
        if !changes.is_empty() {
            control.commit(&changes)?;
            self.entries = wanted;
        }
        Ok(())
    }
}
