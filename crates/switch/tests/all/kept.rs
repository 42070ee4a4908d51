//! Store of a controller, as its runtime would write it.

use axon_controller::Effect;
use axon_node::{StoreChange, StoreKey, Stored};
use std::collections::BTreeMap;

/// The entries of a store.
pub type Kept = BTreeMap<StoreKey, Stored>;

/// Carries out, and takes out of the effects, all changes of the store.
pub fn keep(kept: &mut Kept, effects: &mut Vec<Effect>) {
    for effect in effects.extract_if(.., |effect| matches!(effect, Effect::Store(_))) {
        match effect {
            Effect::Store(StoreChange::Put(entry)) => drop(kept.insert(entry.key(), entry)),
            Effect::Store(StoreChange::Delete(key)) => drop(kept.remove(&key)),
            _ => unreachable!(),
        }
    }
}
