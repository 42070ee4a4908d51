//! Stamps of removed routes, so that no older decision restores one.

use super::entry_reservations::Key;
use alloc::collections::{BTreeMap, BTreeSet};
use axon_wire::message::Stamp;
use axon_wire::{Span, Time};

/// Time for which the stamp of a removed route is remembered, longer than any message is in flight.
const TOMBSTONE_SPAN: Span = Span::from_secs(10);
/// Maximum number of such stamps; the oldest are dropped first.
const TOMBSTONES_MAX: usize = 16_384;

/// Stamps of removed routes.
#[derive(Clone, Debug, Default)]
pub(super) struct Tombstones {
    of: BTreeMap<Key, (Stamp, Time)>,
    /// Expiry of each stamp.
    order: BTreeSet<(Time, Key)>,
}

impl Tombstones {
    /// Returns the stamp of a removed route.
    pub(super) fn get(&self, key: Key) -> Option<Stamp> {
        self.of.get(&key).map(|&(stamp, _)| stamp)
    }

    /// Remembers the stamp of a removed route.
    pub(super) fn insert(&mut self, now: Time, key: Key, stamp: Stamp) {
        self.remove(key);
        let until = now + TOMBSTONE_SPAN;
        self.of.insert(key, (stamp, until));
        self.order.insert((until, key));
        while self.of.len() > TOMBSTONES_MAX {
            let Some((_, oldest)) = self.order.pop_first() else {
                break;
            };
            self.of.remove(&oldest);
        }
    }

    /// Drops the stamp of a route that is set again.
    pub(super) fn remove(&mut self, key: Key) {
        if let Some((_, until)) = self.of.remove(&key) {
            self.order.remove(&(until, key));
        }
    }

    /// Drops all stamps, because a new incarnation of the controller restarts its numbers.
    pub(super) fn clear(&mut self) {
        self.of.clear();
        self.order.clear();
    }

    /// Drops the stamps of routes that were removed long enough ago.
    pub(super) fn expire(&mut self, now: Time) {
        while let Some(&(until, key)) = self.order.first()
            && until <= now
        {
            self.order.remove(&(until, key));
            self.of.remove(&key);
        }
    }

    /// Returns when [`Tombstones::expire`] is due next.
    pub(super) fn next_expiry(&self) -> Option<Time> {
        self.order.first().map(|&(until, _)| until)
    }

    /// Returns the number of stamps.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        assert_eq!(self.of.len(), self.order.len());
        self.of.len()
    }
}
