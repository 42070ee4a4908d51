//! What is due when.

use alloc::collections::{BTreeMap, BTreeSet};
use axon_wire::Time;

/// One due time for each key. Every entry is removed with its key, so the agenda is as
/// bounded as what it serves; equal times come in the order of the keys.
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
    /// Nothing is due.
    pub fn new() -> Agenda<K> {
        Agenda::default()
    }

    /// Makes `at` the one time at which `key` is due.
    pub fn set(&mut self, key: K, at: Time) {
        if let Some(before) = self.when.insert(key, at) {
            self.order.remove(&(before, key));
        }
        self.order.insert((at, key));
    }

    /// `key` is not due any more.
    pub fn cancel(&mut self, key: K) {
        if let Some(before) = self.when.remove(&key) {
            self.order.remove(&(before, key));
        }
    }

    /// The earliest key that is due at `now`, taken off the agenda.
    pub fn pop_due(&mut self, now: Time) -> Option<K> {
        let &(at, key) = self.order.first()?;
        if at > now {
            return None;
        }
        self.cancel(key);
        Some(key)
    }

    /// The earliest time of all.
    pub fn next(&self) -> Option<Time> {
        self.order.first().map(|&(at, _)| at)
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.when.len()
    }

    /// Whether nothing is due at any time.
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
