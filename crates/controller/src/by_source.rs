//! Routes by source and destination, for single hosts of a port.
//!
//! Normally the hosts of a port share a route to a destination. Where source addresses are trusted
//! ([`BySource`]), a host gets a route of its own if it may reach the destination and another host
//! of the port may not, or on every port with several hosts, so that each may take a different
//! path. A host without its own route and without a shared one is blocked, whatever routes the
//! other hosts have.
//!
//! A port changes from one kind of route to the other one route at a time. The hosts' own routes
//! are installed first, and then the shared route is removed. The stream to the switch is ordered,
//! so frames of these hosts never miss. A host that has its own route keeps it when the other hosts
//! leave. A port to an external network has shared routes only.

use super::conductor::Controller;
use super::flows::{Account, Origin, Route, RouteIndex};
use super::hosts::{HostIndex, Place};
use super::router::pair_hash;
use crate::config::BySource;
use alloc::vec::Vec;
use axon_link::effect::Effect;
use axon_node::RouteKey;
use axon_wire::MacAddr;

impl Controller {
    /// Returns whether hosts at a port may have routes of their own.
    pub(super) fn has_pairs(&self, at: Place) -> bool {
        let is_uplink = || {
            let here = (self.graph.switch(at.switch).incarnation.node, at.port);
            self.uplinks.iter().any(|uplink| uplink.at == here)
        };
        self.by_source != BySource::Never && !is_uplink()
    }

    /// Returns whether all hosts at a port have routes of their own, and no shared ones.
    fn has_pairs_only(&self, at: Place) -> bool {
        self.by_source == BySource::Always
            && self.has_pairs(at)
            && self.hosts.hosts_at(at).nth(1).is_some()
    }

    /// Returns the origin of the route from a host to another: the host itself if it has or needs
    /// its own route, otherwise all hosts of the port. `None` if the policy forbids both.
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

    /// Returns the flow hash of a route; `of_port` is the hash for all frames of its port. Each
    /// host has a hash of its own if routes share the load ([`BySource::Always`]). If they exist
    /// because of the policy, all keep the path of the port.
    pub(super) fn hash_of(&self, from: Origin, of_port: u64) -> u64 {
        let source = self.mac_of(from.source).filter(|_| self.by_source == BySource::Always);
        source.map_or(of_port, |source| pair_hash(of_port, source))
    }

    /// Returns the MAC address of a route's source host, if it has one.
    pub(super) fn mac_of(&self, source: Option<HostIndex>) -> Option<MacAddr> {
        source.and_then(|source| self.hosts.get(source)).map(|host| host.mac)
    }

    /// Returns the route of this key at a port of a switch.
    pub(super) fn found_by_key(&self, at: Place, key: RouteKey) -> Option<RouteIndex> {
        let to = self.hosts.by_mac(key.destination)?;
        let source = match key.source {
            None => None,
            Some(mac) => Some(self.hosts.by_mac(mac)?),
        };
        self.flows.find(Origin { at, source }, to)
    }

    /// Replaces shared routes by each host's own after several hosts have appeared at a port, where
    /// each host has routes of its own.
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

    /// Removes a route. The users of a shared route that may have one get a route of their own
    /// first.
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

    /// Returns whether one more route fits in the bounds of this account.
    fn has_room_for_pair(&self, at: Place, account: Account) -> bool {
        match account {
            Account::Requested(by, other) => self.excess_of(by, other, &[at]).is_none(),
            Account::Inherited(by) => self.has_room_for_inherited(by.switch),
        }
    }
}
