//! Multicast groups: membership, and lists for the edges of senders.
//!
//! An edge requests the list of a group when one of its hosts sends to it. It receives the list
//! again after each change, until it reports that the host sends no more. A list has one member of
//! each port, because a copy sent to a port reaches all hosts behind it. The sender's own port is
//! not in the list, nor are ports whose hosts the sender may not reach (`isolation.rs`). The ports
//! of a bond count as one (`bonds.rs`). The all-hosts group has all hosts.
//!
//! A membership is stored by the port where its switch has reported it, and counts while the host
//! is present. A host that moves may be claimed by two switches for a while, and so may its
//! memberships. A host that returns has its memberships again. Changes are gathered for 20 ms. The
//! lists of a group are made up to eight times in a row, and then at most twice a second
//! (`pace.rs`). A list refused because a switch has too many unacknowledged commands is made again
//! a second later.

use super::conductor::Controller;
use super::hosts::{Host, Place};
use super::members::Key;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use axon_link::config::COPIES_MAX;
use axon_link::effect::Effect;
use axon_wire::message::Item;
use axon_wire::{MacAddr, NodeId, PortNo, Span, Time, membership};
use core::net::IpAddr;

/// Maximum number of hosts in one part of a list.
const PART_HOSTS: usize = 64;
/// Retry interval of a refused list.
const AGAIN: Span = Span::from_secs(1);

impl Controller {
    /// Handles a switch's report that one of its hosts has joined or left a group.
    pub(super) fn group_member(
        &mut self,
        now: Time,
        (at, mac): (Place, MacAddr),
        (group, joined): (IpAddr, bool),
    ) {
        let host = self.net.host(mac);
        // A host at a bond sends reports by any of its ports, and is claimed at one of them.
        let is_claimed = host.is_some_and(|host| {
            self.net.fabric().ports_of(at).iter().any(|&at| host.is_claimed_at(at))
        });
        if !membership::is_reportable(group) || joined && !is_claimed {
            self.counters.item_misplaced += 1;
            return;
        }
        let known = self.groups.members.get(&group).is_some_and(|all| all.contains(&(mac, at)));
        if known == joined {
            return;
        }
        if joined && !self.groups.takes(at) {
            self.counters.groups_refused += 1;
            return;
        }
        let members = self.groups.members.entry(group).or_default();
        if joined {
            members.insert((mac, at));
        } else {
            members.remove(&(mac, at));
            self.groups.gives(at);
        }
        if self.groups.members.get(&group).is_some_and(BTreeSet::is_empty) {
            self.groups.members.remove(&group);
        }
        self.groups.touch(now, group);
    }

    /// Handles a switch's request for the receivers of a host's frames to a group, or its end.
    pub(super) fn group_asked(
        &mut self,
        (at, mac): (Place, MacAddr),
        (group, wanted): (IpAddr, bool),
        out: &mut Vec<Effect>,
    ) {
        let key = (group, at, mac);
        if !wanted {
            if self.groups.senders.remove(&key).is_some() {
                self.groups.pace.forget(&key);
                self.groups.gives(at);
            }
            return;
        }
        let is_group = membership::is_everybody(group) || membership::is_reportable(group);
        if !is_group || !self.net.is_host_at(mac, at) {
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

    /// Returns the receivers of a host's frames to a group: one host of each port, in order of
    /// ports.
    fn group_list(&mut self, (group, at, mac): Key) -> Vec<MacAddr> {
        let mut list: BTreeMap<Place, MacAddr> = BTreeMap::new();
        if !self.net.is_host_at(mac, at) {
            return Vec::new();
        }
        let mut enter = |host: &Host| {
            let first = list.entry(self.net.fabric().first_port(host.place())).or_insert(host.mac);
            *first = host.mac.min(*first);
        };
        if membership::is_everybody(group) {
            self.net.hosts().iter().for_each(|(_, host)| enter(host));
        } else {
            let members = self.groups.members.get(&group).into_iter().flatten();
            for &(member, place) in members {
                let host = self.net.host(member);
                let is_there = |host: &&Host| self.net.fabric().is_one_place(host.place(), place);
                host.filter(is_there).into_iter().for_each(&mut enter);
            }
        }
        list.remove(&self.net.fabric().first_port(at));
        list.retain(|_, host| self.net.may_send_copies((at, mac), *host));
        self.counters.groups_refused += list.len().saturating_sub(COPIES_MAX) as u64;
        list.into_values().take(COPIES_MAX).collect()
    }

    /// Sends a list if it has changed since it was sent last.
    fn send_list(&mut self, key: Key, out: &mut Vec<Effect>) {
        let list = self.group_list(key);
        let Some(sent) = self.groups.senders.get_mut(&key) else { return };
        if sent.as_ref() == Some(&list) {
            return;
        }
        let (group, Place { switch, port }, mac) = key;
        let to = self.net.fabric().node(switch);
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

    /// Makes the lists that are due.
    pub(super) fn make_lists(&mut self, now: Time, out: &mut Vec<Effect>) {
        for key in self.groups.take_due(now) {
            self.send_list(key, out);
        }
    }

    /// Schedules a list again whose part was refused for too many unacknowledged commands.
    pub fn list_refused(
        &mut self,
        now: Time,
        to: NodeId,
        (port, mac, group): (PortNo, MacAddr, IpAddr),
    ) {
        let Some(switch) = self.net.graph().index_of(to) else { return };
        let key = (group, Place { switch, port }, mac);
        if let Some(sent) = self.groups.senders.get_mut(&key) {
            *sent = None;
            self.groups.again(now + AGAIN, key);
            self.counters.groups_refused += 1;
        }
    }

    /// Returns the number of memberships and senders.
    pub fn groups_len(&self) -> usize {
        self.groups.len()
    }

    /// Returns the reported members of a group, sorted by MAC address. A member reported by two
    /// switches is listed once.
    pub fn members_of(&self, group: IpAddr) -> impl Iterator<Item = MacAddr> {
        let mut members: Vec<MacAddr> = self.groups.members_of(group).map(|(mac, _)| mac).collect();
        members.dedup();
        members.into_iter()
    }
}
