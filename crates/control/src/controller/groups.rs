//! Groups: who is a member, and lists for the edges of those who send.
//!
//! An edge asks for the list of a group when one of its hosts sends to it, and gets it anew with
//! each change, until it says that the host sends no more. A list names one member of each port: a
//! copy that leaves by a port comes to all behind it. Not in the list are the sender's own port and
//! ports whose hosts the sender may not reach (`isolation.rs`). The group of everybody has all
//! hosts.
//!
//! A membership holds where its switch has reported it, so one of a host that has moved counts
//! again when the host's new switch reports it. Changes are gathered for 20 ms. A list that a switch
//! has no room for, since it leaves too much unacknowledged, is made again a second later.

use super::Controller;
use super::hosts::{Host, Place};
use super::topology::SwitchIndex;
use crate::edge::COPIES_MAX;
use crate::effect::Effect;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use axon_wire::message::Item;
use axon_wire::{MacAddr, NodeId, PortNo, Span, Time, membership};
use core::net::IpAddr;

/// Hosts in one part of a list.
const PART_HOSTS: usize = 64;
/// Memberships, and senders, that are kept for one port ...
const PER_PORT_MAX: usize = 256;
/// ... and for one switch.
const PER_SWITCH_MAX: usize = 1 << 14;
/// For so long changes are gathered.
const GATHER: Span = Span::from_millis(20);
/// After so long a list that was refused is made again.
const AGAIN: Span = Span::from_secs(1);

/// Who sends where: the group, the port of the sender, the sender.
type Key = (IpAddr, Place, MacAddr);

/// All groups of the fabric.
#[derive(Clone, Debug, Default)]
pub(super) struct Groups {
    members: BTreeMap<IpAddr, BTreeMap<MacAddr, Place>>,
    /// With the list that was sent last.
    senders: BTreeMap<Key, Option<Vec<MacAddr>>>,
    /// How many of both there are at a port and at a switch.
    of_port: BTreeMap<Place, usize>,
    of_switch: BTreeMap<SwitchIndex, usize>,
    /// Lists that may have changed.
    dirty: BTreeSet<Key>,
    due: Option<Time>,
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

    fn takes(&mut self, at: Place) -> bool {
        let of_port = self.of_port.get(&at).copied().unwrap_or(0);
        let of_switch = self.of_switch.get(&at.switch).copied().unwrap_or(0);
        let room = of_port < PER_PORT_MAX && of_switch < PER_SWITCH_MAX;
        if room {
            *self.of_port.entry(at).or_default() += 1;
            *self.of_switch.entry(at.switch).or_default() += 1;
        }
        room
    }

    fn gives(&mut self, at: Place) {
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
    fn touch(&mut self, now: Time, group: IpAddr) {
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

impl Controller {
    /// A switch reports that a host of its own is in a group, or no longer.
    pub(super) fn group_member(
        &mut self,
        now: Time,
        (at, mac): (Place, MacAddr),
        (group, joined): (IpAddr, bool),
    ) {
        let is_here = self.is_host_at(mac, at);
        if !membership::is_reportable(group) || joined && !is_here {
            self.counters.item_misplaced += 1;
            return;
        }
        let known = self.groups.members.get(&group).and_then(|members| members.get(&mac)).copied();
        match (joined, known) {
            (true, Some(place)) if place == at => return,
            // The word of another switch: a newer one is known.
            (false, place) if place != Some(at) => return,
            _ => {}
        }
        if let Some(place) = known {
            self.groups.gives(place);
        }
        let stays = joined && self.groups.takes(at);
        self.counters.groups_refused += u64::from(joined && !stays);
        let members = self.groups.members.entry(group).or_default();
        match stays {
            true => drop(members.insert(mac, at)),
            false => drop(members.remove(&mac)),
        }
        if members.is_empty() {
            self.groups.members.remove(&group);
        }
        self.groups.touch(now, group);
    }

    /// A switch asks who is to have what a host of its own sends to a group, or no longer.
    pub(super) fn group_asked(
        &mut self,
        (at, mac): (Place, MacAddr),
        (group, wanted): (IpAddr, bool),
        out: &mut Vec<Effect>,
    ) {
        let key = (group, at, mac);
        if !wanted {
            if self.groups.senders.remove(&key).is_some() {
                self.groups.dirty.remove(&key);
                self.groups.gives(at);
            }
            return;
        }
        let is_group = membership::is_everybody(group) || membership::is_reportable(group);
        if !is_group || !self.is_host_at(mac, at) {
            self.counters.item_misplaced += 1;
            return;
        }
        if !self.groups.senders.contains_key(&key) && !self.groups.takes(at) {
            self.counters.groups_refused += 1;
            return;
        }
        self.groups.senders.insert(key, None);
        self.send_list(key, out);
    }

    fn is_host_at(&self, mac: MacAddr, at: Place) -> bool {
        let host = self.hosts.by_mac(mac).and_then(|index| self.hosts.get(index));
        host.is_some_and(|host| host.place() == at)
    }

    /// Who is to have what a host sends to a group: one host of each port, in the order of ports.
    fn group_list(&mut self, (group, at, mac): Key) -> Vec<MacAddr> {
        let mut list: BTreeMap<Place, MacAddr> = BTreeMap::new();
        if !self.is_host_at(mac, at) {
            return Vec::new();
        }
        let mut enter = |host: &Host| {
            let first = list.entry(host.place()).or_insert(host.mac);
            *first = host.mac.min(*first);
        };
        if membership::is_everybody(group) {
            self.hosts.iter().for_each(|(_, host)| enter(host));
        } else {
            let members = self.groups.members.get(&group).into_iter().flatten();
            for (&member, &place) in members {
                let host = self.hosts.by_mac(member).and_then(|index| self.hosts.get(index));
                host.filter(|host| host.place() == place).into_iter().for_each(&mut enter);
            }
        }
        list.remove(&at);
        list.retain(|_, host| self.may_reach_mac(at, *host));
        self.counters.groups_refused += list.len().saturating_sub(COPIES_MAX) as u64;
        list.into_values().take(COPIES_MAX).collect()
    }

    /// Sends a list, if it is not as it was sent last.
    fn send_list(&mut self, key: Key, out: &mut Vec<Effect>) {
        let list = self.group_list(key);
        let Some(sent) = self.groups.senders.get_mut(&key) else { return };
        if sent.as_ref() == Some(&list) {
            return;
        }
        let (group, Place { switch, port }, mac) = key;
        let to = self.graph.switch(switch).incarnation.node;
        for part in 0..list.len().div_ceil(PART_HOSTS).max(1) {
            let first = part * PART_HOSTS;
            let end = (first + PART_HOSTS).min(list.len());
            let (hosts, more) = (list[first..end].to_vec(), end < list.len());
            let first = first as u16;
            let item = Item::GroupHosts { port, mac, group, first, more, hosts };
            out.push(Effect::Command { to, item });
        }
        *sent = Some(list);
    }

    /// Makes the lists that may have changed, if it is time.
    pub(super) fn make_lists(&mut self, now: Time, out: &mut Vec<Effect>) {
        if self.groups.due.is_none_or(|due| due > now) {
            return;
        }
        self.groups.due = None;
        for key in core::mem::take(&mut self.groups.dirty) {
            self.send_list(key, out);
        }
    }

    /// A part of a list was refused: its switch leaves too much unacknowledged.
    pub fn list_refused(
        &mut self,
        now: Time,
        to: NodeId,
        (port, mac, group): (PortNo, MacAddr, IpAddr),
    ) {
        let Some(switch) = self.graph.index_of(to) else { return };
        let key = (group, Place { switch, port }, mac);
        if let Some(sent) = self.groups.senders.get_mut(&key) {
            *sent = None;
            self.groups.dirty.insert(key);
            self.groups.due = Some(self.groups.due.unwrap_or(now + AGAIN).max(now + GATHER));
            self.counters.groups_refused += 1;
        }
    }

    /// The memberships and senders that are known.
    pub fn groups_len(&self) -> usize {
        self.groups.len()
    }

    /// The members of a group as they were reported, in the order of their MACs.
    pub fn members_of(&self, group: IpAddr) -> impl Iterator<Item = MacAddr> {
        self.groups.members.get(&group).into_iter().flat_map(|members| members.keys().copied())
    }
}
