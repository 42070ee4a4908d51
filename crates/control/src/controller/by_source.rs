//! Routes of single hosts behind one port, by source and destination.
//!
//! In plain English: as a rule the hosts at a port share a route to a destination. Where source
//! addresses are trusted ([`BySource`]), a host gets one of its own: if it may reach the
//! destination and a neighbour of it may not, or at every port with several hosts, so that each may
//! take another path. A host without a route of its own and without one for all gets nothing
//! through, whatever its neighbours have.
//!
//! A port changes from one kind of route to the other one route at a time. The routes of those that
//! may have one come first, and then the route for all goes: on the ordered stream to the switch,
//! so the frames of the former never miss. A host that has a route of its own keeps it when its
//! neighbours leave. A port to a real network has routes for all only.

use super::Controller;
use super::flows::{Account, Origin, Route, RouteIndex};
use super::hosts::{HostIndex, Place};
use super::router::pair_hash;
use crate::config::BySource;
use crate::effect::Effect;
use alloc::vec::Vec;
use axon_node::RouteKey;
use axon_wire::MacAddr;

impl Controller {
    /// Whether hosts at a port may have routes of their own.
    pub(super) fn has_pairs(&self, at: Place) -> bool {
        let is_uplink = || {
            let here = (self.graph.switch(at.switch).incarnation.node, at.port);
            self.uplinks.iter().any(|uplink| uplink.at == here)
        };
        self.by_source != BySource::Never && !is_uplink()
    }

    /// Whether all hosts at a port have routes of their own, and none for all.
    fn has_pairs_only(&self, at: Place) -> bool {
        self.by_source == BySource::Always
            && self.has_pairs(at)
            && self.hosts.hosts_at(at).nth(1).is_some()
    }

    /// For whose frames the route from a host at a port to another host is to be: for its own if
    /// there is such a route or has to be, or for those of all at the port. `None` if the policy
    /// forbids either.
    pub(super) fn origin(&self, at: Place, source: HostIndex, to: HostIndex) -> Option<Origin> {
        let (all, own) = (Origin::from(at), Origin { at, source: Some(source) });
        let is_allowed = |from: &Origin| self.may_reach(*from, to);
        if !self.has_pairs(at) {
            return Some(all).filter(is_allowed);
        }
        let has_own = self.has_pairs_only(at) || self.flows.find(own, to).is_some();
        let shared = Some(all).filter(|from| !has_own && is_allowed(from));
        shared.or_else(|| Some(own).filter(is_allowed))
    }

    /// The hash of a route's flow, if `of_port` is that of all frames from its port. Where hosts
    /// have routes of their own to share the load, each has a hash of its own; where it is for the
    /// sake of the policy, all keep the path that they had.
    pub(super) fn hash_of(&self, from: Origin, of_port: u64) -> u64 {
        let source = self.mac_of(from.source).filter(|_| self.by_source == BySource::Always);
        source.map_or(of_port, |source| pair_hash(of_port, source))
    }

    /// The MAC of the host that a route is for, if it is for one.
    pub(super) fn mac_of(&self, source: Option<HostIndex>) -> Option<MacAddr> {
        source.and_then(|source| self.hosts.get(source)).map(|host| host.mac)
    }

    /// The route at a port of a switch that a switch names so.
    pub(super) fn found_by_key(&self, at: Place, key: RouteKey) -> Option<RouteIndex> {
        let to = self.hosts.by_mac(key.destination)?;
        let source = match key.source {
            None => None,
            Some(mac) => Some(self.hosts.by_mac(mac)?),
        };
        self.flows.find(Origin { at, source }, to)
    }

    /// Hosts at a port have come to be several: where each has routes of its own, it gets them in
    /// place of those for all.
    pub(super) fn split_at(&mut self, at: Place, out: &mut Vec<Effect>) {
        if !self.has_pairs_only(at) {
            return;
        }
        let hosts = self.hosts.hosts_at(at).filter_map(|host| self.hosts.by_mac(host.mac));
        let mut routes: Vec<RouteIndex> = hosts.flat_map(|host| self.flows.used_by(host)).collect();
        routes.sort_unstable();
        routes.dedup();
        for index in routes {
            let is_shared = |route: &Route| route.at == at && route.source.is_none();
            if self.flows.get(index).is_some_and(is_shared) {
                self.split(index, out);
            }
        }
    }

    /// Removes a route. If it was for all hosts at a port, those of its users that may have one get
    /// a route of their own before.
    pub(super) fn split(&mut self, index: RouteIndex, out: &mut Vec<Effect>) {
        let Some(route) = self.flows.get(index) else { return };
        let (at, to, account) = (route.at, route.destination, route.account());
        let is_shared = route.source.is_none() && self.has_pairs(at);
        let users = if is_shared { route.users().to_vec() } else { Vec::new() };
        for user in users {
            let from = Origin { at, source: Some(user) };
            if self.flows.find(from, to).is_some() || !self.has_room_for_pair(at, account) {
                continue;
            }
            let made = self.found_or_made(None, from, to, (user, account));
            made.into_iter().for_each(|made| self.send(made, out));
        }
        self.remove(index, out);
    }

    /// Whether one more route fits into the bounds that a route of this account counts in.
    fn has_room_for_pair(&self, at: Place, account: Account) -> bool {
        match account {
            Account::Requested(by, other) => self.excess_of(by, other, &[at]).is_none(),
            Account::Inherited(by) => self.has_room_for_inherited(by.switch),
        }
    }
}
