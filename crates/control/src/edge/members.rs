//! Members of groups: the reports of hosts (IGMP, MLD) are read here and go to the controller, and
//! the edge is the querier of its host ports.
//!
//! In plain English: a report makes its sender a member for twice the interval of queries and ten
//! seconds (RFC 3376 section 8.4). All hosts of a port are asked at that interval, and soon after
//! one of them is learned. When a host leaves a group, the port is asked for that group, and the
//! host is a member for two seconds more (section 8.8): another one behind the same port may have
//! kept silent because it heard this one. A host that joins and leaves all the time is a member for
//! longer each time: the controller makes the lists of the group anew with each change.

use super::context::{Cx, Timer};
use super::groups::{CHANGES, Left, MEMBERS_PER_PORT_MAX, Pair};
use super::state::Edge;
use crate::effect::Effect;
use alloc::vec::Vec;
use axon_node::Drop;
use axon_wire::membership::{self, Membership};
use axon_wire::message::Item;
use axon_wire::{MacAddr, PortNo, Span, Time};
use core::net::IpAddr;

/// So long after a host is learned its port is asked.
const QUERY_FIRST: Span = Span::from_millis(500);
/// Hosts answer a query to all within ten seconds, spread over them, and within half the interval:
/// a later query makes a host put its answer off (RFC 3376 section 8.3).
const RESPONSE_TENTHS: u64 = 100;
/// They answer one for a group that somebody leaves within one second (section 8.8).
const RESPONSE_SOON_TENTHS: u8 = 10;
/// For so long a host that leaves is still a member, and twice as long each time that it has come
/// back to the group soon, ...
const LEAVING: Span = Span::from_secs(2);
/// ... up to 64 seconds.
const LEAVING_DOUBLED_MAX: u32 = 5;
/// Within so long after its membership has ended, a host comes back soon.
const BACK_SOON: Span = Span::from_secs(120);

impl Edge {
    /// Takes a report of a host. Nothing about membership is forwarded.
    pub(super) fn membership(
        &mut self,
        cx: &mut Cx,
        (port, mac): (PortNo, MacAddr),
        read: Membership,
    ) -> Result<(), Drop> {
        let Membership::Report(changes) = read else {
            // A querier of the host's own asks nobody: the edge does.
            return Err(if read == Membership::Bad { Drop::Malformed } else { Drop::Broadcast });
        };
        if !self.groups.config.multicast {
            return Err(Drop::Broadcast);
        }
        for change in changes.iter().filter(|change| membership::is_reportable(change.group)) {
            match change.joined {
                true => self.joined(cx, port, (mac, change.group)),
                false => self.left(cx, port, (mac, change.group)),
            }
        }
        self.groups_due_later(port);
        Ok(())
    }

    fn joined(&mut self, cx: &mut Cx, port: PortNo, pair: Pair) {
        let until = cx.now + self.groups.config.query * 2 + Span::from_secs(10);
        let groups = self.groups.ports.entry(port).or_default();
        if let Some(known) = groups.members.get_mut(&pair) {
            *known = until;
            return;
        }
        if groups.members.len() >= MEMBERS_PER_PORT_MAX || !groups.changes.has(cx.now, CHANGES) {
            self.counters.members_refused += 1;
            return;
        }
        groups.changes.take(cx.now, CHANGES);
        groups.members.insert(pair, until);
        if let Some(left) = groups.left.get_mut(&pair) {
            left.times = (left.times + 1).min(LEAVING_DOUBLED_MAX);
            left.until = until + BACK_SOON;
        }
        self.counters.members_joined += 1;
        self.report_member(cx.out, port, pair);
    }

    fn left(&mut self, cx: &mut Cx, port: PortNo, pair: Pair) {
        let groups = self.groups.ports.entry(port).or_default();
        let Some(until) = groups.members.get_mut(&pair) else { return };
        let times = groups.left.get(&pair).map_or(0, |left| left.times);
        let leaving = LEAVING * (1 << times);
        if *until > cx.now + leaving {
            *until = cx.now + leaving;
            self.query(cx, port, Some(pair.1), RESPONSE_SOON_TENTHS);
        }
    }

    /// Asks the hosts of a port for a group, or for all.
    fn query(&mut self, cx: &mut Cx, port: PortNo, group: Option<IpAddr>, tenths: u8) {
        let how = (tenths, self.groups.config.query.as_millis() / 1000);
        let own = (self.server.mac, self.server.ip);
        let v4 = |group| membership::igmp_query(own, group, how);
        let v6 = |group| membership::mld_query(own.0, group, how);
        let frames = match group {
            Some(IpAddr::V4(group)) => [v4(Some(group))].to_vec(),
            Some(IpAddr::V6(group)) => [v6(Some(group))].to_vec(),
            None => [v4(None), v6(None)].to_vec(),
        };
        self.counters.group_queries += frames.len() as u64;
        cx.out.extend(frames.into_iter().map(|frame| Effect::Host { port, frame }));
    }

    /// A host has been learned at a port: it may be in groups.
    pub(super) fn groups_host_learned(&mut self, now: Time, port: PortNo) {
        if !self.groups.config.multicast {
            return;
        }
        let first = now + QUERY_FIRST;
        let groups = self.groups.ports.entry(port).or_default();
        groups.query_at = Some(groups.query_at.map_or(first, |at| at.min(first)));
        self.groups_due_later(port);
    }

    /// A host has left a port, and all that are one place with it: it is in no group there, and
    /// sends to none.
    pub(super) fn groups_host_gone(&mut self, cx: &mut Cx, port: PortNo, mac: MacAddr) {
        for port in self.hosts.joined_to(port) {
            self.groups_host_gone_from(cx, port, mac);
        }
    }

    fn groups_host_gone_from(&mut self, cx: &mut Cx, port: PortNo, mac: MacAddr) {
        let Some(groups) = self.groups.ports.get_mut(&port) else { return };
        let of_host = |pair: &&Pair| pair.0 == mac;
        let members: Vec<Pair> = groups.members.keys().filter(of_host).copied().collect();
        let senders: Vec<Pair> = groups.senders.keys().filter(of_host).copied().collect();
        members.into_iter().for_each(|pair| self.member_gone(cx, port, pair));
        senders.into_iter().for_each(|pair| self.sender_gone(cx, port, pair));
        if self.hosts.count_on(port) == 0 {
            self.groups.ports.remove(&port);
        }
        self.groups_due_later(port);
    }

    fn member_gone(&mut self, cx: &mut Cx, port: PortNo, pair: Pair) {
        let groups = self.groups.ports.get_mut(&port);
        let Some(groups) = groups.filter(|groups| groups.members.contains_key(&pair)) else {
            return;
        };
        groups.members.remove(&pair);
        if groups.left.len() < MEMBERS_PER_PORT_MAX || groups.left.contains_key(&pair) {
            let left = groups.left.entry(pair).or_insert(Left { times: 0, until: cx.now });
            left.until = cx.now + BACK_SOON;
        }
        self.counters.members_left += 1;
        self.report_member(cx.out, port, pair);
    }

    /// Reports whether a host is in a group, if the controller does not know. Without a controller
    /// nothing is sent; [`Edge::report_groups`] does it later.
    fn report_member(&mut self, out: &mut Vec<Effect>, port: PortNo, pair: Pair) {
        if !self.reachable {
            return;
        }
        let groups = self.groups.ports.get(&port);
        let joined = groups.is_some_and(|groups| groups.members.contains_key(&pair));
        let news = match joined {
            true => self.groups.reported.insert((port, pair)),
            false => self.groups.reported.remove(&(port, pair)),
        };
        if news {
            let (mac, group) = pair;
            out.push(Effect::Report(Item::GroupMember { port, mac, group, joined }));
        }
    }

    /// Reports the memberships of a host that is itself reported as a new one: the controller may
    /// have forgotten them with the host, when it was elsewhere meanwhile.
    pub(super) fn report_members_again(
        &mut self,
        out: &mut Vec<Effect>,
        port: PortNo,
        mac: MacAddr,
    ) {
        // It may have joined by any port of its bond.
        for port in self.hosts.joined_to(port) {
            let groups = self.groups.ports.get(&port);
            let pairs = groups.into_iter().flat_map(|groups| groups.members.keys());
            let pairs: Vec<Pair> = pairs.filter(|pair| pair.0 == mac).copied().collect();
            for pair in pairs {
                self.groups.reported.remove(&(port, pair));
                self.report_member(out, port, pair);
            }
        }
    }

    /// Reports all that the controller does not have yet, and asks for all lists again. `anew` if
    /// it may have forgotten what it had.
    pub(super) fn report_groups(&mut self, out: &mut Vec<Effect>, anew: bool) {
        let members = self
            .groups
            .ports
            .iter()
            .flat_map(|(&port, groups)| groups.members.keys().map(move |&pair| (port, pair)));
        let now: Vec<(PortNo, Pair)> = members.collect();
        if anew {
            let is_now = |entry: &(PortNo, Pair)| now.contains(entry);
            self.groups.reported.retain(|entry| !is_now(entry));
        }
        let before: Vec<_> = self.groups.reported.iter().copied().collect();
        for (port, pair) in before.into_iter().chain(now) {
            self.report_member(out, port, pair);
        }
        self.ask_for_lists(out);
    }

    /// Sets the one timer of a port's groups.
    pub(super) fn groups_due_later(&mut self, port: PortNo) {
        match self.groups.due(port) {
            Some(at) => self.agenda.set(Timer::Groups(port), at),
            None => self.agenda.cancel(Timer::Groups(port)),
        }
    }

    /// Handles the expired timer of a port's groups.
    pub(super) fn groups_due(&mut self, cx: &mut Cx, port: PortNo) {
        let Some(groups) = self.groups.ports.get_mut(&port) else { return };
        let due = |until: Time| until <= cx.now;
        let members = groups.members.iter().filter(|&(_, &until)| due(until));
        let members: Vec<Pair> = members.map(|(&pair, _)| pair).collect();
        let senders = groups.senders.iter().filter(|(_, sender)| due(sender.until));
        let senders: Vec<Pair> = senders.map(|(&pair, _)| pair).collect();
        groups.left.retain(|_, left| !due(left.until));
        let ask = groups.query_at.is_some_and(due);
        if ask {
            groups.query_at = Some(cx.now + self.groups.config.query);
        }
        members.into_iter().for_each(|pair| self.member_gone(cx, port, pair));
        senders.into_iter().for_each(|pair| self.sender_gone(cx, port, pair));
        if ask {
            let half = self.groups.config.query.as_millis() / 200;
            self.query(cx, port, None, half.clamp(1, RESPONSE_TENTHS) as u8);
        }
        self.groups_due_later(port);
    }

    /// The memberships of hosts at this switch: port, host, group.
    pub fn members(&self) -> impl Iterator<Item = (PortNo, MacAddr, IpAddr)> {
        self.groups.ports.iter().flat_map(|(&port, groups)| {
            groups.members.keys().map(move |&(mac, group)| (port, mac, group))
        })
    }
}
