//! What the controller knows of groups: members, senders, and the lists that are due; `groups.rs`
//! says what for.

use super::hosts::Place;
use super::topology::SwitchIndex;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use axon_wire::{MacAddr, Span, Time, membership};
use core::net::IpAddr;

/// Memberships, and senders, that are kept for one port ...
const PER_PORT_MAX: usize = 256;
/// ... and for one switch.
const PER_SWITCH_MAX: usize = 1 << 14;
/// For so long changes are gathered.
pub(super) const GATHER: Span = Span::from_millis(20);

/// Who sends where: the group, the port of the sender, the sender.
pub(super) type Key = (IpAddr, Place, MacAddr);

/// All groups of the fabric.
#[derive(Clone, Debug, Default)]
pub(super) struct Groups {
    pub(super) members: BTreeMap<IpAddr, BTreeMap<MacAddr, Place>>,
    /// With the list that was sent last.
    pub(super) senders: BTreeMap<Key, Option<Vec<MacAddr>>>,
    /// How many of both there are at a port and at a switch.
    of_port: BTreeMap<Place, usize>,
    of_switch: BTreeMap<SwitchIndex, usize>,
    /// Lists that may have changed.
    pub(super) dirty: BTreeSet<Key>,
    pub(super) due: Option<Time>,
}

impl Groups {
    /// When lists are to be made.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.due
    }

    /// The memberships and senders that are kept.
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

    /// The lists of a group may have changed.
    pub(super) fn touch(&mut self, now: Time, group: IpAddr) {
        let senders: Vec<Key> = self
            .senders
            .range((group, Place::FIRST, MacAddr([0; 6]))..)
            .take_while(|(key, _)| key.0 == group)
            .map(|(&key, _)| key)
            .collect();
        if !senders.is_empty() {
            self.dirty.extend(senders);
            self.due.get_or_insert(now + GATHER);
        }
    }

    /// Something has changed about a host: lists of its groups, and of everybody, may be others.
    pub(super) fn host_changed(&mut self, now: Time, mac: MacAddr) {
        let is_of = |group: &IpAddr| {
            let is_member = |members: &BTreeMap<MacAddr, Place>| members.contains_key(&mac);
            membership::is_everybody(*group) || self.members.get(group).is_some_and(is_member)
        };
        let mut groups: Vec<IpAddr> = self.senders.keys().map(|key| key.0).collect();
        groups.dedup();
        groups.retain(is_of);
        groups.into_iter().for_each(|group| self.touch(now, group));
    }

    /// A host is gone, and so are its memberships.
    pub(super) fn host_gone(&mut self, now: Time, mac: MacAddr) {
        self.host_changed(now, mac);
        let mut places = Vec::new();
        self.members.retain(|_, members| {
            places.extend(members.remove(&mac));
            !members.is_empty()
        });
        let senders: Vec<Key> = self.senders.keys().filter(|key| key.2 == mac).copied().collect();
        for key in senders {
            self.senders.remove(&key);
            self.dirty.remove(&key);
            places.push(key.1);
        }
        places.into_iter().for_each(|place| self.gives(place));
    }

    /// All lists may have changed: others may be reached.
    pub(super) fn all_changed(&mut self, now: Time) {
        if !self.senders.is_empty() {
            self.dirty.extend(self.senders.keys().copied());
            self.due.get_or_insert(now + GATHER);
        }
    }

    /// A switch has restarted and knows nothing of its members and senders any more.
    pub(super) fn forget_switch(&mut self, now: Time, switch: SwitchIndex) {
        let (mut gone, mut groups) = (Vec::new(), Vec::new());
        self.members.retain(|&group, members| {
            let before = members.len();
            members.retain(|_, place| {
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
        self.dirty.retain(|key| key.1.switch != switch);
        gone.into_iter().for_each(|place| self.gives(place));
        groups.into_iter().for_each(|group| self.touch(now, group));
    }
}
