//! Rate control for group lists. A list is made soon after a change, but at a bounded rate.
//!
//! Changes are gathered for 20 ms. Then the lists for a group are made together, which takes one
//! token from the group's bucket. A bucket holds eight tokens and gains two per second. Without a
//! token, the lists wait for the next one. So hosts that join and leave all the time delay the
//! lists of their own group by half a second, and they cause a bounded number of lists. A list that
//! is made for another reason than a membership, such as a policy change, does not wait.

use super::hosts::Place;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use axon_link::bucket::{Bucket, Rate};
use axon_wire::{MacAddr, Span, Time};
use core::net::IpAddr;

/// Time for which changes are gathered.
pub(super) const GATHER: Span = Span::from_millis(20);
/// Rate at which the lists for one group are made after changes to its members.
const LISTS: Rate = Rate { every: Span::from_millis(500), burst: 8 };

/// Key of a list: the group, the port of the sender, and the sender.
pub(super) type Key = (IpAddr, Place, MacAddr);

/// Lists that may have changed.
#[derive(Clone, Debug, Default)]
pub(super) struct Pace {
    dirty: BTreeMap<Key, Time>,
    due: BTreeSet<(Time, Key)>,
    /// Token buckets of the groups whose lists were made recently.
    made: BTreeMap<IpAddr, Bucket>,
}

impl Pace {
    /// Returns when the next list is due.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.due.first().map(|&(at, _)| at)
    }

    /// Returns when the lists for a group may be made, if its members change at `now`.
    pub(super) fn next(&self, now: Time, group: IpAddr) -> Time {
        let bucket = self.made.get(&group).copied().unwrap_or_default();
        bucket.next(now + GATHER, LISTS)
    }

    /// Schedules these lists for the time `at`, unless they are due earlier.
    pub(super) fn changed(&mut self, keys: impl IntoIterator<Item = Key>, at: Time) {
        for key in keys {
            let due = self.dirty.entry(key).or_insert(Time::MAX);
            if at < *due {
                self.due.remove(&(*due, key));
                self.due.insert((at, key));
                *due = at;
            }
        }
    }

    /// Removes a list from the schedule.
    pub(super) fn forget(&mut self, key: &Key) {
        if let Some(at) = self.dirty.remove(key) {
            self.due.remove(&(at, *key));
        }
    }

    /// Removes all lists for which `of` is true from the schedule.
    pub(super) fn forget_all(&mut self, of: impl Fn(&Key) -> bool) {
        self.dirty.retain(|key, _| !of(key));
        self.due.retain(|(_, key)| !of(key));
    }

    /// Takes the lists that are due, in the order of their keys.
    pub(super) fn take_due(&mut self, now: Time) -> Vec<Key> {
        let mut keys = Vec::new();
        while let Some(&(at, key)) = self.due.first()
            && at <= now
        {
            self.due.pop_first();
            self.dirty.remove(&key);
            keys.push(key);
        }
        if keys.is_empty() {
            return keys;
        }
        keys.sort_unstable();
        self.made.retain(|_, bucket| !bucket.is_full(now));
        let groups: BTreeSet<IpAddr> = keys.iter().map(|key| key.0).collect();
        for group in groups {
            let bucket = self.made.entry(group).or_default();
            if bucket.has(now, LISTS) {
                bucket.take(now, LISTS);
            }
        }
        keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;

    #[test]
    fn a_group_that_changes_all_the_time_has_its_lists_made_twice_a_second() {
        let (group, quiet) =
            (Ipv4Addr::new(239, 1, 1, 1).into(), Ipv4Addr::new(239, 1, 1, 2).into());
        let key = |group| (group, Place::FIRST, MacAddr([2; 6]));
        let mut pace = Pace::default();
        let mut made = 0;
        for millis in 0..100_000 {
            let now = Time::ZERO + Span::from_millis(millis);
            let at = pace.next(now, group);
            pace.changed([key(group)], at);
            made += pace.take_due(now).len();
        }
        assert!((200..=208).contains(&made), "{made} in 100 seconds");
        // Other groups are not delayed, and neither are changes other than memberships.
        let now = Time::ZERO + Span::from_secs(100);
        assert_eq!(pace.next(now, quiet), now + GATHER);
        pace.changed([key(group)], now + GATHER);
        assert_eq!(pace.take_due(now + GATHER), [key(group)]);
        assert_eq!(pace.deadline(), None);
        // The bucket refills when idle.
        let later = now + Span::from_secs(10);
        assert_eq!(pace.next(later, group), later + GATHER);
    }

    #[test]
    fn what_is_forgotten_is_not_made() {
        let group = Ipv4Addr::new(239, 1, 1, 1).into();
        let key = |n| (group, Place::FIRST, MacAddr([n; 6]));
        let mut pace = Pace::default();
        pace.changed([key(2), key(4), key(6)], Time::ZERO + GATHER);
        pace.forget(&key(4));
        pace.forget_all(|&(_, _, mac)| mac == MacAddr([6; 6]));
        assert_eq!(pace.take_due(Time::ZERO + GATHER), [key(2)]);
        assert_eq!((pace.deadline(), pace.dirty.len()), (None, 0));
    }
}
