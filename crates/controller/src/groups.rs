//! Multicast groups: their members, and the lists of receivers for the edges of senders.
//!
//! An edge requests the list of a group when one of its hosts sends to it. It receives the list
//! again after each change, until it reports that the host no longer sends. A list has one member
//! for each port, because a copy sent to a port reaches all hosts behind it. The sender's own port
//! is not in the list, nor are ports whose hosts the sender may not reach (`isolation.rs`). The
//! ports of a bond count as one (`bonds.rs`). The all-hosts group contains all hosts.
//!
//! A membership is stored with the port where its switch has reported it, and counts while the host
//! is present there. While a host moves, two switches may claim it for a while, and likewise its
//! memberships. A host that returns has its memberships again. Changes are gathered for 20 ms. The
//! lists for a group are made up to eight times in a row, and then at most twice a second
//! (`group_list_pace.rs`). If a list is refused because a switch has too many unacknowledged
//! commands, it is made again a second later.

use super::group_list_pace::{GATHER, Key, Pace};
use super::hosts::{Host, Place};
use super::network::Network;
use super::topology::SwitchIndex;
use crate::effect::Effect;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use axon_link::config::COPIES_MAX;
use axon_wire::message::Item;
use axon_wire::{MacAddr, NodeId, PortNo, Span, Time, membership};
use core::net::IpAddr;
use core::ops::RangeInclusive;

/// Maximum number of hosts in one part of a list.
const PART_HOSTS: usize = 64;
/// Time after which a refused list is made again.
const AGAIN: Span = Span::from_secs(1);
/// Maximum number of memberships and senders at one port.
const PER_PORT_MAX: usize = 256;
/// Maximum number of memberships and senders at one switch.
const PER_SWITCH_MAX: usize = 1 << 14;

/// Returns the range that contains all entries of a host among the members of a group.
fn all_places(mac: MacAddr) -> RangeInclusive<(MacAddr, Place)> {
    (mac, Place::FIRST)..=(mac, Place::LAST)
}

/// All multicast groups in the fabric.
#[derive(Clone, Debug, Default)]
pub(super) struct Groups {
    /// Members of each group, with the ports where they were reported.
    members: BTreeMap<IpAddr, BTreeSet<(MacAddr, Place)>>,
    /// Senders, each with the list that was sent last.
    senders: BTreeMap<Key, Option<Vec<MacAddr>>>,
    /// Numbers of memberships and senders at each port and at each switch.
    of_port: BTreeMap<Place, usize>,
    of_switch: BTreeMap<SwitchIndex, usize>,
    /// Lists that may have changed, and the times at which they are made.
    pace: Pace,
    /// Number of refused memberships, senders, and hosts in lists.
    refused: u64,
}

impl Groups {
    /// Returns when lists are due.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.pace.deadline()
    }

    /// Returns the number of memberships and senders.
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

    /// Marks the lists for a group as changed.
    fn touch(&mut self, now: Time, group: IpAddr) {
        let senders: Vec<Key> = self
            .senders
            .range((group, Place::FIRST, MacAddr([0; 6]))..)
            .take_while(|(key, _)| key.0 == group)
            .map(|(&key, _)| key)
            .collect();
        let at = self.pace.next(now, group);
        self.pace.changed(senders, at);
    }

    /// Marks the lists for a changed host's groups, and for the all-hosts group, as changed.
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

    /// Removes the members and senders at a switch that has restarted.
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

    /// Returns the number of refused memberships, senders, and hosts in lists.
    pub(super) const fn refused(&self) -> u64 {
        self.refused
    }

    /// Returns the memberships at a switch, each as the group, the member and its port.
    pub(super) fn members_at(
        &self,
        switch: SwitchIndex,
    ) -> impl Iterator<Item = (IpAddr, MacAddr, Place)> {
        let all = self.members.iter();
        let all = all
            .flat_map(|(&group, members)| members.iter().map(move |&(mac, at)| (group, mac, at)));
        all.filter(move |(_, _, at)| at.switch == switch)
    }

    /// Handles a switch's report that one of its hosts has joined or left a group. Returns `false`
    /// if the report is misplaced.
    pub(super) fn report(
        &mut self,
        net: &Network,
        now: Time,
        (at, mac): (Place, MacAddr),
        (group, joined): (IpAddr, bool),
    ) -> bool {
        let host = net.host(mac);
        // A host at a bond sends reports through any of its ports, but is claimed at only one of
        // them.
        let is_claimed = host
            .is_some_and(|host| net.fabric().ports_of(at).iter().any(|&at| host.is_claimed_at(at)));
        if !membership::is_reportable(group) || joined && !is_claimed {
            return false;
        }
        let known = self.members.get(&group).is_some_and(|all| all.contains(&(mac, at)));
        if known == joined {
            return true;
        }
        if joined && !self.takes(at) {
            self.refused += 1;
            return true;
        }
        let members = self.members.entry(group).or_default();
        if joined {
            members.insert((mac, at));
        } else {
            members.remove(&(mac, at));
            self.gives(at);
        }
        if self.members.get(&group).is_some_and(BTreeSet::is_empty) {
            self.members.remove(&group);
        }
        self.touch(now, group);
        true
    }

    /// Handles a switch's request for the receivers of frames from a host to a group, or the end of
    /// that request. Returns `false` if the request is misplaced.
    pub(super) fn ask(
        &mut self,
        net: &Network,
        (at, mac): (Place, MacAddr),
        (group, wanted): (IpAddr, bool),
        out: &mut Vec<Effect>,
    ) -> bool {
        let key = (group, at, mac);
        if !wanted {
            if self.senders.remove(&key).is_some() {
                self.pace.forget(&key);
                self.gives(at);
            }
            return true;
        }
        let is_group = membership::is_everybody(group) || membership::is_reportable(group);
        if !is_group || !net.is_host_at(mac, at) {
            return false;
        }
        if !self.senders.contains_key(&key) && !self.takes(at) {
            self.refused += 1;
            return true;
        }
        self.senders.insert(key, None);
        self.send_list(net, key, out);
        true
    }

    /// Returns the receivers of frames from a host to a group: one host for each port, in order of
    /// ports.
    fn list(&mut self, net: &Network, (group, at, mac): Key) -> Vec<MacAddr> {
        let mut list: BTreeMap<Place, MacAddr> = BTreeMap::new();
        if !net.is_host_at(mac, at) {
            return Vec::new();
        }
        let mut enter = |host: &Host| {
            let first = list.entry(net.fabric().first_port(host.place())).or_insert(host.mac);
            *first = host.mac.min(*first);
        };
        if membership::is_everybody(group) {
            net.hosts().iter().for_each(|(_, host)| enter(host));
        } else {
            let members = self.members.get(&group).into_iter().flatten();
            for &(member, place) in members {
                let host = net.host(member);
                let is_there = |host: &&Host| net.fabric().is_one_place(host.place(), place);
                host.filter(is_there).into_iter().for_each(&mut enter);
            }
        }
        list.remove(&net.fabric().first_port(at));
        list.retain(|_, host| net.may_send_copies((at, mac), *host));
        self.refused += list.len().saturating_sub(COPIES_MAX) as u64;
        list.into_values().take(COPIES_MAX).collect()
    }

    /// Sends a list if it differs from the one sent last.
    fn send_list(&mut self, net: &Network, key: Key, out: &mut Vec<Effect>) {
        let list = self.list(net, key);
        let Some(sent) = self.senders.get_mut(&key) else { return };
        if sent.as_ref() == Some(&list) {
            return;
        }
        let (group, Place { switch, port }, mac) = key;
        let to = net.fabric().node(switch);
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

    /// Makes the lists that are due, and sends those that have changed.
    pub(super) fn make_lists(&mut self, net: &Network, now: Time, out: &mut Vec<Effect>) {
        for key in self.pace.take_due(now) {
            self.send_list(net, key, out);
        }
    }

    /// Schedules a list again, after part of it was refused because of too many unacknowledged
    /// commands.
    pub(super) fn list_refused(
        &mut self,
        net: &Network,
        now: Time,
        to: NodeId,
        (port, mac, group): (PortNo, MacAddr, IpAddr),
    ) {
        let Some(switch) = net.graph().index_of(to) else { return };
        let key = (group, Place { switch, port }, mac);
        if let Some(sent) = self.senders.get_mut(&key) {
            *sent = None;
            self.pace.changed([key], now + AGAIN);
            self.refused += 1;
        }
    }

    /// Returns the reported members of a group, sorted by MAC address. A member reported by two
    /// switches is listed once.
    pub(super) fn members_of(&self, group: IpAddr) -> impl Iterator<Item = MacAddr> {
        let mut members: Vec<MacAddr> =
            self.members.get(&group).into_iter().flatten().map(|(mac, _)| *mac).collect();
        members.dedup();
        members.into_iter()
    }
}
