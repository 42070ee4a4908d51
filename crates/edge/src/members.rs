//! Group membership: hosts' reports (IGMP, MLD) are handled here and reported to the controller.
//! The edge is the querier of its host ports.
//!
//! A report makes its sender a member for twice the query interval and ten seconds (RFC 3376
//! section 8.4). All hosts of a port are queried at that interval, and soon after one of them is
//! learned. When a host leaves a group, the port is queried for that group, and the host stays a
//! member for two seconds more (section 8.8), because another host of the port may have suppressed
//! its own report. A host that joins and leaves repeatedly stays a member for longer each time,
//! because the controller remakes the lists of the group with each change.

use super::context::{Cx, Timer};
use super::groups::{CHANGES, Left, MEMBERS_PER_PORT_MAX, Pair};
use super::parts::Parts;
use alloc::vec::Vec;
use axon_link::effect::Effect;
use axon_node::Drop;
use axon_wire::membership::{self, Membership};
use axon_wire::message::Item;
use axon_wire::{MacAddr, PortNo, Span, Time};
use core::net::IpAddr;

/// Delay of the query after a host is learned.
const QUERY_FIRST: Span = Span::from_millis(500);
/// Maximum response time of a general query, over which hosts spread their answers; also at most
/// half the interval, because a later query makes a host postpone its answer (RFC 3376 section
/// 8.3).
const RESPONSE_TENTHS: u64 = 100;
/// Maximum response time of a query for a group that a host leaves (section 8.8).
const RESPONSE_SOON_TENTHS: u8 = 10;
/// Time for which a host that leaves is still a member. It doubles each time the host has soon
/// returned to the group.
const LEAVING: Span = Span::from_secs(2);
/// Maximum number of these doublings, for 64 seconds.
const LEAVING_DOUBLED_MAX: u32 = 5;
/// Time after the end of a membership within which a host has soon returned.
const BACK_SOON: Span = Span::from_secs(120);

impl Parts {
    /// Handles a report of a host. Membership reports are never forwarded.
    pub(super) fn membership(
        &mut self,
        cx: &mut Cx,
        (port, mac): (PortNo, MacAddr),
        read: Membership,
    ) -> Result<(), Drop> {
        let Membership::Report(changes) = read else {
            // A host's own query is dropped: the edge is the querier.
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
        self.groups_due_later(cx, port);
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
            cx.counters.members_refused += 1;
            return;
        }
        groups.changes.take(cx.now, CHANGES);
        groups.members.insert(pair, until);
        if let Some(left) = groups.left.get_mut(&pair) {
            left.times = (left.times + 1).min(LEAVING_DOUBLED_MAX);
            left.until = until + BACK_SOON;
        }
        cx.counters.members_joined += 1;
        self.report_member(cx, port, pair);
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

    /// Queries the hosts of a port for a group, or for all.
    fn query(&mut self, cx: &mut Cx, port: PortNo, group: Option<IpAddr>, tenths: u8) {
        let how = (tenths, self.groups.config.query.as_millis() / 1000);
        let own = (cx.settings.server.mac, cx.settings.server.ip);
        let v4 = |group| membership::igmp_query(own, group, how);
        let v6 = |group| membership::mld_query(own.0, group, how);
        let frames = match group {
            Some(IpAddr::V4(group)) => [v4(Some(group))].to_vec(),
            Some(IpAddr::V6(group)) => [v6(Some(group))].to_vec(),
            None => [v4(None), v6(None)].to_vec(),
        };
        cx.counters.group_queries += frames.len() as u64;
        cx.out.extend(frames.into_iter().map(|frame| Effect::Host { port, frame }));
    }

    /// Schedules a query of a port where a host has been learned.
    pub(super) fn groups_host_learned(&mut self, cx: &mut Cx, port: PortNo) {
        if !self.groups.config.multicast {
            return;
        }
        let first = cx.now + QUERY_FIRST;
        let groups = self.groups.ports.entry(port).or_default();
        groups.query_at = Some(groups.query_at.map_or(first, |at| at.min(first)));
        self.groups_due_later(cx, port);
    }

    /// Removes the memberships and senders of a host that has left a port and all others of its
    /// bond.
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
        self.groups_due_later(cx, port);
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
        cx.counters.members_left += 1;
        self.report_member(cx, port, pair);
    }

    /// Reports whether a host is in a group, if the controller lacks that. Without a controller
    /// nothing is sent; [`Edge::report_groups`] reports later.
    fn report_member(&mut self, cx: &mut Cx, port: PortNo, pair: Pair) {
        if !cx.controller.is_reachable() {
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
            cx.out.push(Effect::Report(Item::GroupMember { port, mac, group, joined }));
        }
    }

    /// Reports the memberships of a host that is itself reported as new. The controller may have
    /// removed them with the host while it was elsewhere.
    pub(super) fn report_members_again(&mut self, cx: &mut Cx, port: PortNo, mac: MacAddr) {
        // It may have joined by any port of its bond.
        for port in self.hosts.joined_to(port) {
            let groups = self.groups.ports.get(&port);
            let pairs = groups.into_iter().flat_map(|groups| groups.members.keys());
            let pairs: Vec<Pair> = pairs.filter(|pair| pair.0 == mac).copied().collect();
            for pair in pairs {
                self.groups.reported.remove(&(port, pair));
                self.report_member(cx, port, pair);
            }
        }
    }

    /// Reports all that the controller lacks, and requests all lists again. `anew` if it may have
    /// lost its state.
    pub(super) fn report_groups(&mut self, cx: &mut Cx, anew: bool) {
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
            self.report_member(cx, port, pair);
        }
        self.ask_for_lists(cx);
    }

    /// Sets the timer of a port's groups.
    pub(super) fn groups_due_later(&mut self, cx: &mut Cx, port: PortNo) {
        match self.groups.due(port) {
            Some(at) => cx.agenda.set(Timer::Groups(port), at),
            None => cx.agenda.cancel(Timer::Groups(port)),
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
        self.groups_due_later(cx, port);
    }
}
