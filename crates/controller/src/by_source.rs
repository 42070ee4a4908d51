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
use alloc::vec::Vec;
use axon_link::effect::Effect;
use axon_node::RouteKey;

impl Controller {
    /// Returns the origin of the route from a host to another: the host itself if it has or needs
    /// its own route, otherwise all hosts of the port. `None` if the policy forbids both.
    pub(super) fn origin(&self, at: Place, source: HostIndex, to: HostIndex) -> Option<Origin> {
        let (all, own) = (Origin::from(at), Origin { at, source: Some(source) });
        let is_allowed = |from: &Origin| self.net.may_reach(*from, to);
        if !self.net.has_pairs(at) {
            return Some(all).filter(is_allowed);
        }
        let has_own = self.net.has_pairs_only(at) || self.flows.find(own, to).is_some();
        let shared = Some(all).filter(|from| !has_own && is_allowed(from));
        shared.or_else(|| Some(own).filter(is_allowed))
    }

    /// Returns the route of this key at a port of a switch.
    pub(super) fn found_by_key(&self, at: Place, key: RouteKey) -> Option<RouteIndex> {
        let to = self.net.hosts().by_mac(key.destination)?;
        let source = match key.source {
            None => None,
            Some(mac) => Some(self.net.hosts().by_mac(mac)?),
        };
        self.flows.find(Origin { at, source }, to)
    }

    /// Replaces shared routes by each host's own after several hosts have appeared at a port, where
    /// each host has routes of its own.
    pub(super) fn split_at(&mut self, at: Place, out: &mut Vec<Effect>) {
        if !self.net.has_pairs_only(at) {
            return;
        }
        let hosts =
            self.net.hosts().hosts_at(at).filter_map(|host| self.net.hosts().by_mac(host.mac));
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
        let is_shared = route.source.is_none() && self.net.has_pairs(at);
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
