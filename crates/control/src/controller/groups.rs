//! Groups: who is a member, and lists for the edges of those who send.
//!
//! An edge asks for the list of a group when one of its hosts sends to it, and gets it anew with
//! each change, until it says that the host sends no more. A list names one member of each port: a
//! copy that leaves by a port comes to all behind it. Not in the list are the sender's own port and
//! ports whose hosts the sender may not reach (`isolation.rs`). The ports of a bond count as one
//! (`bonds.rs`). The group of everybody has all
//! hosts.
//!
//! A membership holds where its switch has reported it, and counts while the host is there. A host
//! that moves may be claimed by two switches for a while, and so may its memberships; a host that
//! comes back is a member as it was. Changes are gathered for 20 ms. The lists of a group that
//! changes all the time are made eight times in a row, and then twice a second (`pace.rs`). A list
//! that a switch has no room for, since it leaves too much unacknowledged, is made again a second
//! later.

use super::Controller;
use super::hosts::{Host, Place};
use super::members::Key;
use crate::edge::COPIES_MAX;
use crate::effect::Effect;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use axon_wire::message::Item;
use axon_wire::{MacAddr, NodeId, PortNo, Span, Time, membership};
use core::net::IpAddr;

/// Hosts in one part of a list.
const PART_HOSTS: usize = 64;
/// After so long a list that was refused is made again.
const AGAIN: Span = Span::from_secs(1);

impl Controller {
    /// A switch reports that a host of its own is in a group, or no longer.
    pub(super) fn group_member(
        &mut self,
        now: Time,
        (at, mac): (Place, MacAddr),
        (group, joined): (IpAddr, bool),
    ) {
        let host = self.hosts.by_mac(mac).and_then(|index| self.hosts.get(index));
        // It sends its reports by any port of its bond, and is claimed at one of them.
        let is_claimed =
            host.is_some_and(|host| self.ports_of(at).iter().any(|&at| host.is_claimed_at(at)));
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
                self.groups.pace.forget(&key);
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
        host.is_some_and(|host| self.is_one_place(host.place(), at))
    }

    /// Who is to have what a host sends to a group: one host of each port, in the order of ports.
    fn group_list(&mut self, (group, at, mac): Key) -> Vec<MacAddr> {
        let mut list: BTreeMap<Place, MacAddr> = BTreeMap::new();
        if !self.is_host_at(mac, at) {
            return Vec::new();
        }
        let mut enter = |host: &Host| {
            let first = list.entry(self.home(host.place())).or_insert(host.mac);
            *first = host.mac.min(*first);
        };
        if membership::is_everybody(group) {
            self.hosts.iter().for_each(|(_, host)| enter(host));
        } else {
            let members = self.groups.members.get(&group).into_iter().flatten();
            for &(member, place) in members {
                let host = self.hosts.by_mac(member).and_then(|index| self.hosts.get(index));
                let is_there = |host: &&Host| self.is_one_place(host.place(), place);
                host.filter(is_there).into_iter().for_each(&mut enter);
            }
        }
        list.remove(&self.home(at));
        list.retain(|_, host| self.may_send_copies((at, mac), *host));
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
        for key in self.groups.take_due(now) {
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
            self.groups.again(now + AGAIN, key);
            self.counters.groups_refused += 1;
        }
    }

    /// The memberships and senders that are known.
    pub fn groups_len(&self) -> usize {
        self.groups.len()
    }

    /// The members of a group as they were reported, in the order of their MACs. One that was
    /// reported by two switches comes once.
    pub fn members_of(&self, group: IpAddr) -> impl Iterator<Item = MacAddr> {
        let mut members: Vec<MacAddr> = self.groups.members_of(group).map(|(mac, _)| mac).collect();
        members.dedup();
        members.into_iter()
    }
}
