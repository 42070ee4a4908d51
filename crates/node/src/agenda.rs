//! Timers by key.

use alloc::collections::{BTreeMap, BTreeSet};
use axon_wire::Time;

/// One due time for each key. Every entry is removed with its key, so the agenda is bounded by the
/// number of keys; equal times are ordered by key.
#[derive(Clone, Debug)]
pub struct Agenda<K> {
    when: BTreeMap<K, Time>,
    order: BTreeSet<(Time, K)>,
}

impl<K> Default for Agenda<K> {
    fn default() -> Agenda<K> {
        Agenda { when: BTreeMap::new(), order: BTreeSet::new() }
    }
}

impl<K: Copy + Ord> Agenda<K> {
    /// Returns an empty agenda.
    pub fn new() -> Agenda<K> {
        Agenda::default()
    }

    /// Sets the due time of `key` to `at`.
    pub fn set(&mut self, key: K, at: Time) {
        if let Some(before) = self.when.insert(key, at) {
            self.order.remove(&(before, key));
        }
        self.order.insert((at, key));
    }

    /// Removes the due time of `key`.
    pub fn cancel(&mut self, key: K) {
        if let Some(before) = self.when.remove(&key) {
            self.order.remove(&(before, key));
        }
    }

    /// Removes and returns the earliest key that is due at `now`.
    pub fn pop_due(&mut self, now: Time) -> Option<K> {
        let &(at, key) = self.order.first()?;
        if at > now {
            return None;
        }
        self.cancel(key);
        Some(key)
    }

    /// Returns the earliest due time.
    pub fn next(&self) -> Option<Time> {
        self.order.first().map(|&(at, _)| at)
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.when.len()
    }

    /// Returns whether there is no due time.
    pub fn is_empty(&self) -> bool {
        self.when.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_one_time_and_comes_when_it_is_due() {
        let at = Time::from_nanos;
        let mut agenda = Agenda::new();
        agenda.set('a', at(5));
        agenda.set('b', at(3));
        agenda.set('a', at(2));
        assert_eq!(agenda.next(), Some(at(2)));
        assert_eq!(agenda.pop_due(at(1)), None);
        assert_eq!(agenda.pop_due(at(9)), Some('a'));
        agenda.cancel('b');
        assert_eq!(agenda.pop_due(at(9)), None);
        assert!(agenda.is_empty());
    }
}
