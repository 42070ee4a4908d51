//! Routes by source and destination, for single hosts of a port.
//!
//! Normally the hosts of a port share a route to a destination. Where source addresses are trusted
//! ([`BySource`]), a host may get its own route. Depending on the configuration, this happens if
//! the host may reach the destination and another host at the port may not, or at every port with
//! several hosts, so that each host may take a different path. A host with neither its own route
//! nor a shared one is blocked, regardless of the routes that the other hosts have.
//!
//! A port changes from one kind of route to the other one route at a time. The hosts' own routes
//! are installed first, and then the shared route is removed. The stream to the switch is ordered,
//! so frames from these hosts never miss a route. A host that has its own route keeps it when the
//! other hosts leave. A port to an external network has only shared routes.

use super::flows::{Origin, Route, RouteIndex};
use super::forwarding::Forwarding;
use super::hosts::Place;
use crate::effect::Effect;
use alloc::vec::Vec;

impl Forwarding<'_> {
    /// Replaces shared routes by separate routes for each host, after several hosts have appeared
    /// at a port where every host has its own routes.
    pub(super) fn split_at(&mut self, at: Place, out: &mut Vec<Effect>) {
        if !self.net.has_pairs_only(at) {
            return;
        }
        let hosts =
            self.net.hosts().hosts_at(at).filter_map(|host| self.net.hosts().by_mac(host.mac));
        let mut routes: Vec<RouteIndex> =
            hosts.flat_map(|host| self.routes.flows().used_by(host)).collect();
        routes.sort_unstable();
        routes.dedup();
        for index in routes {
            let is_shared = |route: &Route| route.at == at && route.source.is_none();
            if self.routes.flows().get(index).is_some_and(is_shared) {
                self.split(index, out);
            }
        }
    }

    /// Removes a route. If it is a shared one, its users that are allowed a separate route get that
    /// first.
    pub(super) fn split(&mut self, index: RouteIndex, out: &mut Vec<Effect>) {
        let Some(route) = self.routes.flows().get(index) else { return };
        let (at, to, account) = (route.at, route.destination, route.account());
        let is_shared = route.source.is_none() && self.net.has_pairs(at);
        let users = if is_shared { route.users().to_vec() } else { Vec::new() };
        for user in users {
            let from = Origin { at, source: Some(user) };
            let flows = self.routes.flows();
            let waiting = |switch| self.take_over.len_of(switch);
            if flows.find(from, to).is_some() || !self.bounds.has_room(flows, waiting, at, account)
            {
                continue;
            }
            let made = self.routes.found_or_made(&self.net, None, from, to, (user, account));
            made.into_iter().for_each(|made| self.routes.send(&self.net, made, out));
        }
        self.routes.remove(&self.net, index, out);
    }
}
