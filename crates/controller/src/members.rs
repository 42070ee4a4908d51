//! Group state of the controller: members, senders, and the lists that are due. See `groups.rs`.

use super::hosts::Place;
use super::pace::{GATHER, Pace};
use super::topology::SwitchIndex;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use axon_wire::{MacAddr, Time, membership};
use core::net::IpAddr;
use core::ops::RangeInclusive;

/// Maximum number of memberships and senders of one port.
const PER_PORT_MAX: usize = 256;
/// Maximum number of memberships and senders of one switch.
const PER_SWITCH_MAX: usize = 1 << 14;

/// Returns the range of all entries of a host in the members of a group.
fn all_places(mac: MacAddr) -> RangeInclusive<(MacAddr, Place)> {
    (mac, Place::FIRST)..=(mac, Place::LAST)
}

pub(super) use super::pace::Key;

/// All groups of the fabric.
#[derive(Clone, Debug, Default)]
pub(super) struct Groups {
    /// Members of each group, and where they were reported.
    pub(super) members: BTreeMap<IpAddr, BTreeSet<(MacAddr, Place)>>,
    /// Senders, with the list sent last.
    pub(super) senders: BTreeMap<Key, Option<Vec<MacAddr>>>,
    /// Number of memberships and senders of each port and of each switch.
    of_port: BTreeMap<Place, usize>,
    of_switch: BTreeMap<SwitchIndex, usize>,
    /// Lists that may have changed, and when they are made.
    pub(super) pace: Pace,
}

impl Groups {
    /// Returns when lists are due.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.pace.deadline()
    }

    /// Returns the lists that are due.
    pub(super) fn take_due(&mut self, now: Time) -> Vec<Key> {
        self.pace.take_due(now)
    }

    /// Schedules a list to be made again at `at`.
    pub(super) fn again(&mut self, at: Time, key: Key) {
        self.pace.changed([key], at);
    }

    /// Returns the members of a group, and where they were reported.
    pub(super) fn members_of(&self, group: IpAddr) -> impl Iterator<Item = (MacAddr, Place)> {
        self.members.get(&group).into_iter().flatten().copied()
    }

    /// Returns the number of memberships and senders.
    pub(super) fn len(&self) -> usize {
        self.of_switch.values().sum()
    }

    pub(super) fn takes(&mut self, at: Place) -> bool {
        let of_port = self.of_port.get(&at).copied().unwrap_or(0);
        let of_switch = self.of_switch.get(&at.switch).copied().unwrap_or(0);
        let room = of_port < PER_PORT_MAX && of_switch < PER_SWITCH_MAX;
        if room {
            *self.of_port.entry(at).or_default() += 1;
            *self.of_switch.entry(at.switch).or_default() += 1;
        }
        room
    }

    pub(super) fn gives(&mut self, at: Place) {
        fn less<K: Ord>(counts: &mut BTreeMap<K, usize>, key: K) {
            let left = counts.get_mut(&key).map(|count| {
                *count -= 1;
                *count
            });
            if left == Some(0) {
                counts.remove(&key);
            }
        }
        less(&mut self.of_port, at);
        less(&mut self.of_switch, at.switch);
    }

    /// Marks the lists of a group as changed.
    pub(super) fn touch(&mut self, now: Time, group: IpAddr) {
        let senders: Vec<Key> = self
            .senders
            .range((group, Place::FIRST, MacAddr([0; 6]))..)
            .take_while(|(key, _)| key.0 == group)
            .map(|(&key, _)| key)
            .collect();
        let at = self.pace.next(now, group);
        self.pace.changed(senders, at);
    }

    /// Marks the lists of a changed host's groups, and of the all-hosts group, as changed.
    pub(super) fn host_changed(&mut self, now: Time, mac: MacAddr) {
        let is_of =
            |group: &IpAddr| membership::is_everybody(*group) || self.is_member(mac, *group);
        let mut groups: Vec<IpAddr> = self.senders.keys().map(|key| key.0).collect();
        groups.dedup();
        groups.retain(is_of);
        groups.into_iter().for_each(|group| self.touch(now, group));
    }

    fn is_member(&self, mac: MacAddr, group: IpAddr) -> bool {
        let members = self.members.get(&group);
        members.is_some_and(|members| members.range(all_places(mac)).next().is_some())
    }

    /// Removes the memberships of a host that is gone.
    pub(super) fn host_gone(&mut self, now: Time, mac: MacAddr) {
        self.host_changed(now, mac);
        let mut places = Vec::new();
        self.members.retain(|_, members| {
            let gone: Vec<_> = members.range(all_places(mac)).copied().collect();
            for entry in gone {
                members.remove(&entry);
                places.push(entry.1);
            }
            !members.is_empty()
        });
        let senders: Vec<Key> = self.senders.keys().filter(|key| key.2 == mac).copied().collect();
        for key in senders {
            self.senders.remove(&key);
            self.pace.forget(&key);
            places.push(key.1);
        }
        places.into_iter().for_each(|place| self.gives(place));
    }

    /// Marks all lists as changed, because reachability has changed.
    pub(super) fn all_changed(&mut self, now: Time) {
        self.pace.changed(self.senders.keys().copied(), now + GATHER);
    }

    /// Removes the members and senders of a switch that has restarted.
    pub(super) fn forget_switch(&mut self, now: Time, switch: SwitchIndex) {
        let (mut gone, mut groups) = (Vec::new(), Vec::new());
        self.members.retain(|&group, members| {
            let before = members.len();
            members.retain(|(_, place)| {
                let stays = place.switch != switch;
                gone.extend((!stays).then_some(*place));
                stays
            });
            groups.extend((members.len() < before).then_some(group));
            !members.is_empty()
        });
        self.senders.retain(|key, _| {
            let stays = key.1.switch != switch;
            gone.extend((!stays).then_some(key.1));
            stays
        });
        self.pace.forget_all(|key| key.1.switch == switch);
        gone.into_iter().for_each(|place| self.gives(place));
        groups.into_iter().for_each(|group| self.touch(now, group));
    }
}
