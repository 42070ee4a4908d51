//! Group membership: hosts' reports (IGMP, MLD) are handled here and reported to the controller.
//! The edge is the querier of its host ports.
//!
//! A report makes its sender a member for twice the query interval and ten seconds (RFC 3376
//! section 8.4). All hosts of a port are queried at that interval, and soon after one of them is
//! learned. When a host leaves a group, the port is queried for that group, and the host stays a
//! member for two seconds more (section 8.8), because another host of the port may have suppressed
//! its own report. A host that joins and leaves repeatedly stays a member for longer each time,
//! because the controller remakes the lists of the group with each change.

use super::context::Cx;
use crate::config::GroupConfig;
use crate::effect::Effect;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use axon_link::bucket::{Bucket, Rate};
use axon_node::Drop;
use axon_wire::membership::{self, Membership};
use axon_wire::message::Item;
use axon_wire::{MacAddr, PortNo, Span, Time};
use core::net::IpAddr;

/// Maximum number of memberships (pairs of a host and a group) of one port. Further ones are
/// refused.
pub(super) const MEMBERS_PER_PORT_MAX: usize = 256;
/// Rate of membership changes of one port that are reported. A host may join all of its groups in
/// one report.
const CHANGES: Rate = Rate { every: Span::from_millis(20), burst: MEMBERS_PER_PORT_MAX as u64 };
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

/// A host and a group.
pub(super) type Pair = (MacAddr, IpAddr);

/// Memberships of the hosts of all ports.
#[derive(Clone, Debug)]
pub(super) struct Members {
    config: GroupConfig,
    ports: BTreeMap<PortNo, PortMembers>,
    /// Memberships reported to the controller.
    reported: BTreeSet<(PortNo, Pair)>,
}

/// Memberships of the hosts of one port.
#[derive(Clone, Debug, Default)]
struct PortMembers {
    /// Expiry of each membership unless it is reported again.
    members: BTreeMap<Pair, Time>,
    /// Time of the next query of all hosts of the port for their groups.
    query_at: Option<Time>,
    changes: Bucket,
    /// Memberships that ended recently.
    left: BTreeMap<Pair, Left>,
}

/// An ended membership, kept to damp hosts that join and leave repeatedly.
#[derive(Clone, Copy, Debug)]
struct Left {
    /// Number of consecutive times that it ended and began again.
    times: u32,
    /// Expiry of this entry.
    until: Time,
}

impl Members {
    /// Creates an empty list.
    pub(super) fn new(config: GroupConfig) -> Members {
        Members { config, ports: BTreeMap::new(), reported: BTreeSet::new() }
    }

    /// Handles a report of a host. Membership reports are never forwarded.
    pub(super) fn handle(
        &mut self,
        cx: &mut Cx,
        (port, mac): (PortNo, MacAddr),
        read: Membership,
    ) -> Result<(), Drop> {
        let Membership::Report(changes) = read else {
            // A host's own query is dropped: the edge is the querier.
            return Err(if read == Membership::Bad { Drop::Malformed } else { Drop::Broadcast });
        };
        if !self.config.multicast {
            return Err(Drop::Broadcast);
        }
        for change in changes.iter().filter(|change| membership::is_reportable(change.group)) {
            match change.joined {
                true => self.joined(cx, port, (mac, change.group)),
                false => self.left(cx, port, (mac, change.group)),
            }
        }
        Ok(())
    }

    fn joined(&mut self, cx: &mut Cx, port: PortNo, pair: Pair) {
        let until = cx.now + self.config.query * 2 + Span::from_secs(10);
        let groups = self.ports.entry(port).or_default();
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
        let groups = self.ports.entry(port).or_default();
        let Some(until) = groups.members.get_mut(&pair) else { return };
        let times = groups.left.get(&pair).map_or(0, |left| left.times);
        let leaving = LEAVING * (1 << times);
        if *until > cx.now + leaving {
            *until = cx.now + leaving;
            self.query(cx, port, Some(pair.1), RESPONSE_SOON_TENTHS);
        }
    }

    /// Queries the hosts of a port for a group, or for all.
    fn query(&self, cx: &mut Cx, port: PortNo, group: Option<IpAddr>, tenths: u8) {
        let how = (tenths, self.config.query.as_millis() / 1000);
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

    /// Schedules a query of a port where a host has been learned; `false` if groups have no
    /// members.
    pub(super) fn host_learned(&mut self, cx: &mut Cx, port: PortNo) -> bool {
        if !self.config.multicast {
            return false;
        }
        let first = cx.now + QUERY_FIRST;
        let groups = self.ports.entry(port).or_default();
        groups.query_at = Some(groups.query_at.map_or(first, |at| at.min(first)));
        true
    }

    fn member_gone(&mut self, cx: &mut Cx, port: PortNo, pair: Pair) {
        let groups = self.ports.get_mut(&port);
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
    /// nothing is sent; [`Members::report_all`] reports later.
    fn report_member(&mut self, cx: &mut Cx, port: PortNo, pair: Pair) {
        if !cx.controller.is_reachable() {
            return;
        }
        let groups = self.ports.get(&port);
        let joined = groups.is_some_and(|groups| groups.members.contains_key(&pair));
        let news = match joined {
            true => self.reported.insert((port, pair)),
            false => self.reported.remove(&(port, pair)),
        };
        if news {
            let (mac, group) = pair;
            cx.out.push(Effect::Report(Item::GroupMember { port, mac, group, joined }));
        }
    }

    /// Reports the memberships of a host that is itself reported as new. The controller may have
    /// removed them with the host while it was elsewhere.
    pub(super) fn report_again(&mut self, cx: &mut Cx, ports: &[PortNo], mac: MacAddr) {
        // It may have joined by any port of its bond.
        for &port in ports {
            let groups = self.ports.get(&port);
            let pairs = groups.into_iter().flat_map(|groups| groups.members.keys());
            let pairs: Vec<Pair> = pairs.filter(|pair| pair.0 == mac).copied().collect();
            for pair in pairs {
                self.reported.remove(&(port, pair));
                self.report_member(cx, port, pair);
            }
        }
    }

    /// Reports all that the controller lacks. `anew` if it may have
    /// lost its state.
    pub(super) fn report_all(&mut self, cx: &mut Cx, anew: bool) {
        let members = self
            .ports
            .iter()
            .flat_map(|(&port, groups)| groups.members.keys().map(move |&pair| (port, pair)));
        let now: Vec<(PortNo, Pair)> = members.collect();
        if anew {
            let is_now = |entry: &(PortNo, Pair)| now.contains(entry);
            self.reported.retain(|entry| !is_now(entry));
        }
        let before: Vec<_> = self.reported.iter().copied().collect();
        for (port, pair) in before.into_iter().chain(now) {
            self.report_member(cx, port, pair);
        }
    }

    /// Removes the memberships of a host that has left a port; of all of the port if `is_last`.
    pub(super) fn host_gone(&mut self, cx: &mut Cx, port: PortNo, mac: MacAddr, is_last: bool) {
        let Some(groups) = self.ports.get(&port) else { return };
        let members = groups.members.keys().filter(|pair| pair.0 == mac);
        let members: Vec<Pair> = members.copied().collect();
        members.into_iter().for_each(|pair| self.member_gone(cx, port, pair));
        if is_last {
            self.ports.remove(&port);
        }
    }

    /// Ends the memberships that are due at a port. Returns whether its hosts are to be queried.
    pub(super) fn expire(&mut self, cx: &mut Cx, port: PortNo) -> bool {
        let Some(groups) = self.ports.get_mut(&port) else { return false };
        let due = |until: Time| until <= cx.now;
        let members = groups.members.iter().filter(|&(_, &until)| due(until));
        let members: Vec<Pair> = members.map(|(&pair, _)| pair).collect();
        groups.left.retain(|_, left| !due(left.until));
        let ask = groups.query_at.is_some_and(due);
        if ask {
            groups.query_at = Some(cx.now + self.config.query);
        }
        members.into_iter().for_each(|pair| self.member_gone(cx, port, pair));
        ask
    }

    /// Queries all hosts of a port for their groups.
    pub(super) fn query_all(&self, cx: &mut Cx, port: PortNo) {
        let half = self.config.query.as_millis() / 200;
        self.query(cx, port, None, half.clamp(1, RESPONSE_TENTHS) as u8);
    }

    /// Returns when a port is due: a query, or the end of a membership.
    pub(super) fn due(&self, port: PortNo) -> Option<Time> {
        let groups = self.ports.get(&port)?;
        let members = groups.members.values().copied();
        let left = groups.left.values().map(|left| left.until);
        members.chain(left).chain(groups.query_at).min()
    }

    /// Returns the memberships of hosts at this switch: port, host, group.
    pub(super) fn all(&self) -> impl Iterator<Item = (PortNo, MacAddr, IpAddr)> {
        self.ports.iter().flat_map(|(&port, groups)| {
            groups.members.keys().map(move |&(mac, group)| (port, mac, group))
        })
    }

    /// Returns the ports with state.
    #[cfg(test)]
    pub(super) fn ports(&self) -> impl Iterator<Item = PortNo> {
        self.ports.keys().copied()
    }

    /// Returns the number of memberships of a port that ended recently.
    #[cfg(test)]
    pub(super) fn left_count(&self, port: PortNo) -> usize {
        self.ports.get(&port).map_or(0, |groups| groups.left.len())
    }
}
