//! Persistent store of a station: the data that its node keeps for the next incarnation. It
//! survives a crash.

use axon_node::{StoreChange, StoreKey, Stored};
use std::collections::BTreeMap;

/// Entries of a store, by key. Simulated time continues over a crash, so entries are kept
/// unchanged.
#[derive(Debug, Default)]
pub(crate) struct Store(BTreeMap<StoreKey, Stored>);

impl Store {
    /// Applies a change.
    pub(crate) fn keep(&mut self, change: StoreChange) {
        match change {
            StoreChange::Put(entry) => drop(self.0.insert(entry.key(), entry)),
            StoreChange::Delete(key) => drop(self.0.remove(&key)),
        }
    }

    /// Returns all entries, in the order of their keys.
    pub(crate) fn all(&self) -> Vec<Stored> {
        self.0.values().cloned().collect()
    }
}
