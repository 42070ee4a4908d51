//! Counts of routes by the switch at their other end, for ports and switches with large accounts.
//!
//! Such a count is needed only for an account that is more than half full, so most accounts have
//! none. It is started with one pass over all routes when half of the account is used, and dropped
//! when less than a quarter is used.

use super::topology::SwitchIndex;
use alloc::collections::BTreeMap;

/// Counts for one account, by the switch at the other end.
pub(super) type ByOther = BTreeMap<SwitchIndex, usize>;

/// Accounts of ports, or of switches, for which counts are kept. Each account has room for `ROOM`
/// routes.
#[derive(Clone, Debug)]
pub(super) struct Peers<K, const ROOM: usize> {
    counted: BTreeMap<K, ByOther>,
}

impl<K, const ROOM: usize> Default for Peers<K, ROOM> {
    fn default() -> Peers<K, ROOM> {
        Peers { counted: BTreeMap::new() }
    }
}

impl<K: Ord + Copy, const ROOM: usize> Peers<K, ROOM> {
    /// Returns the number of an account's routes for hosts at `other`. Returns `all` if no counts
    /// are kept for the account, in which case that is at most half of its room.
    pub(super) fn of(&self, account: K, other: SwitchIndex, all: usize) -> usize {
        let counts = self.counted.get(&account);
        counts.map_or(all, |counts| counts.get(&other).copied().unwrap_or_default())
    }

    /// Counts a route that was added to an account, which now has `all` routes. `count` counts all
    /// of them anew, if necessary.
    pub(super) fn added(
        &mut self,
        (account, other): (K, SwitchIndex),
        all: usize,
        count: impl FnOnce() -> ByOther,
    ) {
        if all < ROOM / 4 {
            return;
        }
        match self.counted.get_mut(&account) {
            Some(counts) => *counts.entry(other).or_default() += 1,
            None if all >= ROOM / 2 => drop(self.counted.insert(account, count())),
            None => {}
        }
    }

    /// Counts a route that was removed from an account, which now has `all` routes.
    pub(super) fn removed(&mut self, (account, other): (K, SwitchIndex), all: usize) {
        if self.counted.is_empty() {
            return;
        }
        if all < ROOM / 4 {
            self.counted.remove(&account);
        } else if let Some(counts) = self.counted.get_mut(&account)
            && let Some(count) = counts.get_mut(&other)
        {
            *count -= 1;
            if *count == 0 {
                counts.remove(&other);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_counted_from_half_of_its_room_until_a_quarter() {
        let mut peers = Peers::<u8, 16>::default();
        let (here, other) = (1u8, [SwitchIndex(5), SwitchIndex(6)]);
        let mut has = [0, 0];
        for all in 1..=12 {
            has[all % 2] += 1;
            let count = || ByOther::from([(other[0], has[0]), (other[1], has[1])]);
            peers.added((here, other[all % 2]), all, count);
            let said = other.map(|other| peers.of(here, other, all));
            assert_eq!(said, if all >= 8 { has } else { [all; 2] });
        }
        for all in (0..12).rev() {
            let from = usize::from(has[0] < has[1]);
            has[from] -= 1;
            peers.removed((here, other[from]), all);
            let said = other.map(|other| peers.of(here, other, all));
            assert_eq!(said, if all >= 4 { has } else { [all; 2] });
        }
        assert!(peers.counted.is_empty());
    }
}
