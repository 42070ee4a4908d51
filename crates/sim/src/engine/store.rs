//! The store of a station: what its node keeps for the next incarnation. It outlives a crash.

use axon_node::{StoreChange, StoreKey, Stored};
use std::collections::BTreeMap;

/// The entries of a store, by key. The time of a simulation goes on over a crash, so entries are
/// kept as they are.
#[derive(Debug, Default)]
pub(crate) struct Store(BTreeMap<StoreKey, Stored>);

impl Store {
    /// Makes a change.
    pub(crate) fn keep(&mut self, change: StoreChange) {
        match change {
            StoreChange::Put(entry) => drop(self.0.insert(entry.key(), entry)),
            StoreChange::Delete(key) => drop(self.0.remove(&key)),
        }
    }

    /// All entries, in the order of their keys.
    pub(crate) fn all(&self) -> Vec<Stored> {
        self.0.values().cloned().collect()
    }
}
