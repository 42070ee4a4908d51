//! Routes for hosts: their paths, and the commands that install and remove them at switches.
//!
//! A route has a stamp: the controller's epoch and the number of the decision. The router counts
//! the flows on each link. So each path in use is added to its counts, and is removed from them
//! before another one is computed. See `rounds.rs` for the events that change routes.

use super::bonds::Exits;
use super::drain::Drain;
use super::flows::{Account, Flows, Origin, Route, RouteIndex};
use super::hosts::{HostIndex, Place};
use super::network::Network;
use super::paths::Paths;
use super::router::{Flow, Router};
use super::topology::{Change, SwitchIndex};
use crate::effect::Effect;
use alloc::boxed::Box;
use alloc::vec::Vec;
use axon_link::config::NodeConfig;
use axon_node::RouteKey;
use axon_node::telemetry::ControllerCounters;
use axon_wire::message::{Item, Stamp};

/// State of decisions about routes, whichever VLAN they are in. The router counts the routes of all
/// of them.
#[derive(Clone, Debug)]
pub(super) struct Decisions {
    /// Epoch in the stamps, which is the number of this controller's incarnation.
    pub(super) epoch: u64,
    /// Number of the last stamp issued.
    pub(super) number: u64,
    pub(super) paths: Paths,
    pub(super) drain: Drain,
    /// True if routes were added or moved since the last round began.
    pub(super) round_wanted: bool,
    /// Counts of routes that were moved, removed or aged out, and of moves within bonds.
    pub(super) counters: ControllerCounters,
}

impl Decisions {
    /// Creates the state without routes, which will have at most `hops_max` hops.
    pub(super) fn new(config: &NodeConfig, router: Box<dyn Router>, hops_max: usize) -> Decisions {
        Decisions {
            epoch: config.incarnation.number,
            number: 0,
            paths: Paths::new(router, hops_max),
            drain: Drain::new(config.timers.drain_max()),
            round_wanted: false,
            counters: ControllerCounters::default(),
        }
    }
}

/// Routes in one VLAN, and the decisions about those in all.
#[derive(Debug)]
pub(super) struct Routes<'a> {
    decisions: &'a mut Decisions,
    flows: &'a mut Flows,
}

/// State that the other parts use.
impl<'a> Routes<'a> {
    /// Combines the routes in a VLAN with the decisions about those in all.
    pub(super) const fn new(decisions: &'a mut Decisions, flows: &'a mut Flows) -> Routes<'a> {
        Routes { decisions, flows }
    }

    pub(super) const fn flows(&self) -> &Flows {
        self.flows
    }

    pub(super) const fn flows_mut(&mut self) -> &mut Flows {
        self.flows
    }

    pub(super) const fn paths(&self) -> &Paths {
        &self.decisions.paths
    }

    pub(super) const fn paths_mut(&mut self) -> &mut Paths {
        &mut self.decisions.paths
    }

    pub(super) const fn epoch(&self) -> u64 {
        self.decisions.epoch
    }

    /// Counts a move of a route to another port of its bond.
    pub(super) const fn count_bond_move(&mut self) {
        self.decisions.counters.bond_moves += 1;
    }

    /// Returns whether routes were added or moved since the last round began.
    pub(super) const fn round_wanted(&self) -> bool {
        self.decisions.round_wanted
    }

    /// Records whether a round is wanted.
    pub(super) const fn want_round(&mut self, wanted: bool) {
        self.decisions.round_wanted = wanted;
    }
}

/// Paths and commands.
impl Routes<'_> {
    /// Returns the origin of the route from a host to another host. It is the host alone if the
    /// host has or needs its own route, otherwise all hosts at the port. Returns `None` if the
    /// policy forbids both.
    pub(super) fn origin(
        &self,
        net: &Network,
        at: Place,
        source: HostIndex,
        to: HostIndex,
    ) -> Option<Origin> {
        let (all, own) = (Origin::from(at), Origin { at, source: Some(source) });
        let is_allowed = |from: &Origin| net.may_reach(*from, to);
        if !net.has_pairs(at) {
            return Some(all).filter(is_allowed);
        }
        let has_own = net.has_pairs_only(at) || self.flows.find(own, to).is_some();
        let shared = Some(all).filter(|from| !has_own && is_allowed(from));
        shared.or_else(|| Some(own).filter(is_allowed))
    }

    /// Returns the route with this key at a port of a switch.
    pub(super) fn found_by_key(
        &self,
        net: &Network,
        at: Place,
        key: RouteKey,
    ) -> Option<RouteIndex> {
        let to = net.hosts().by_mac(key.destination)?;
        let source = match key.source {
            None => None,
            Some(mac) => Some(net.hosts().by_mac(mac)?),
        };
        self.flows.find(Origin { at, source }, to)
    }

    /// Returns the route from a port to a host, with one more user. Makes the route if `found` is
    /// `None`.
    pub(super) fn found_or_made(
        &mut self,
        net: &Network,
        found: Option<RouteIndex>,
        from: Origin,
        destination: HostIndex,
        (user, account): (HostIndex, Account),
    ) -> Option<RouteIndex> {
        let route = match found {
            Some(route) => route,
            None => {
                let exit = self.find_path(net, from, destination)?;
                let number = self.next_number();
                self.decisions.paths.place();
                self.decisions.round_wanted = true;
                self.flows.insert(
                    from,
                    destination,
                    self.decisions.paths.found(),
                    exit,
                    (number, account),
                )
            }
        };
        self.flows.add_user(route, user);
        Some(route)
    }

    /// Computes the links from a port to a host, and their layer, and stores them as the path in
    /// [`Paths`]. Returns the place where they end. If the router's choice does not fit in a
    /// header, a shortest path is used.
    pub(super) fn find_path(
        &mut self,
        net: &Network,
        from: Origin,
        destination: HostIndex,
    ) -> Option<Place> {
        match self.exits_in_order(net, from, destination)? {
            Exits::One(exit) => self.decisions.paths.find_to(net, from, destination, exit),
            Exits::Of(exits) => exits
                .into_iter()
                .find_map(|exit| self.decisions.paths.find_to(net, from, destination, exit)),
        }
    }

    /// Removes the new routes of a request that could not be answered. No switch has them yet.
    /// While the old order of links drains, there may be a path in one direction only. Existing
    /// routes stay, with their new user.
    pub(super) fn unmake(&mut self, routes: [(Option<RouteIndex>, Origin, HostIndex); 2]) {
        for (found, from, destination) in routes {
            let made = self.flows.find(from, destination).filter(|_| found.is_none());
            if let Some(made) = made {
                self.unplace(made);
                self.flows.remove(made);
            }
        }
    }

    /// Returns the flow of a route, as input for the router, and the place where the route ends.
    /// Returns `None` if the policy forbids the route.
    pub(super) fn flow(
        &self,
        net: &Network,
        from: Origin,
        destination: HostIndex,
    ) -> Option<(Flow, Place)> {
        let exit = match self.exits_in_order(net, from, destination)? {
            Exits::One(exit) => exit,
            Exits::Of(exits) => *exits.first()?,
        };
        self.decisions.paths.flow_to(net, from, destination, exit)
    }

    /// Removes a route's path from the router's counts.
    pub(super) fn unplace(&mut self, index: RouteIndex) {
        if let Some(route) = self.flows.get(index) {
            self.decisions.paths.unplace(route);
        }
    }

    /// Updates the path of a route, or removes the route if there is no path. A route that would
    /// end where it begins is removed, because hosts behind one port reach each other without the
    /// fabric, and a frame that came back would mislead a bridge there.
    pub(super) fn reroute(&mut self, net: &Network, index: RouteIndex, out: &mut Vec<Effect>) {
        let Some(route) = self.flows.get(index) else {
            return;
        };
        let (from, destination, layer) = (route.origin(), route.destination, route.layer);
        self.unplace(index);
        if self.decisions.paths.router().draining().is_some()
            && !self.decisions.paths.allows_current(net.graph(), layer)
        {
            self.decisions.drain.again();
        }
        let found = self.find_path(net, from, destination);
        let found = found.filter(|exit| !net.fabric().is_one_place(*exit, from.at));
        // When the route is removed later, the registered path is subtracted from the router's
        // counts.
        let Some(exit) = found else {
            self.decisions.paths.place_current();
            self.remove(net, index, out);
            return;
        };
        self.decisions.paths.place();
        self.decisions.round_wanted = true;
        self.switch_over(net, index, exit, out);
    }

    /// Changes a route's path to one that ends at a given port, if there is one.
    pub(super) fn reroute_to(
        &mut self,
        net: &Network,
        index: RouteIndex,
        exit: Place,
        out: &mut Vec<Effect>,
    ) -> bool {
        let Some(route) = self.flows.get(index) else { return false };
        let (from, destination) = (route.origin(), route.destination);
        self.unplace(index);
        let found = self.decisions.paths.find_to(net, from, destination, exit);
        match found {
            Some(exit) => {
                self.decisions.paths.place();
                self.switch_over(net, index, exit, out);
            }
            None => self.decisions.paths.place_current(),
        }
        found.is_some()
    }

    /// Changes a route's path to the one in [`Paths`], which the router counts already, and sends
    /// the route to the switch.
    pub(super) fn switch_over(
        &mut self,
        net: &Network,
        index: RouteIndex,
        exit: Place,
        out: &mut Vec<Effect>,
    ) {
        if self.flows.get(index).is_none() {
            return;
        }
        let number = self.next_number();
        self.flows.change(index, self.decisions.paths.found(), exit, number);
        self.decisions.counters.routes_moved += 1;
        self.send(net, index, out);
    }

    /// Sends an unchanged route to its switch again, as a new decision.
    pub(super) fn send_again(&mut self, net: &Network, index: RouteIndex, out: &mut Vec<Effect>) {
        let Some(route) = self.flows.get(index) else {
            return;
        };
        let (exit, layer) = (route.exit, route.layer);
        self.decisions.paths.set_current(route);
        let number = self.next_number();
        self.flows.change(index, (self.decisions.paths.current(), layer), exit, number);
        self.send(net, index, out);
    }

    /// Sends a route to its switch.
    pub(super) fn send(&self, net: &Network, index: RouteIndex, out: &mut Vec<Effect>) {
        let Some(route) = self.flows.get(index) else {
            return;
        };
        let (at, number) = (route.at, route.number);
        let Some(host) = net.hosts().get(route.destination) else {
            return;
        };
        let item = Item::SetRoute {
            port: at.port,
            destination: host.mac,
            source: net.mac_of(route.source),
            stamp: self.stamp(number),
            route: route.to_install(),
        };
        out.push(Effect::Command { to: net.fabric().node(at.switch), item });
    }

    /// Handles a switch's report that it has removed an unused route. The report is ignored if the
    /// route has a newer stamp, because the route is then being sent to the switch.
    pub(super) fn route_aged(&mut self, net: &Network, at: Place, key: RouteKey, stamp: Stamp) {
        let Some(index) = self.found_by_key(net, at, key) else {
            return;
        };
        let number = self.flows.get(index).map(|route| route.number);
        if number.is_some_and(|number| self.stamp(number) == stamp) {
            self.unplace(index);
            self.flows.remove(index);
            self.decisions.counters.routes_aged += 1;
        }
    }

    /// Removes a route here and from its switch.
    pub(super) fn remove(&mut self, net: &Network, index: RouteIndex, out: &mut Vec<Effect>) {
        self.unplace(index);
        let Some(route) = self.flows.remove(index) else {
            return;
        };
        let Some(host) = net.hosts().get(route.destination) else {
            return;
        };
        let number = self.next_number();
        self.decisions.counters.routes_removed += 1;
        let item = Item::RemoveRoute {
            port: route.at.port,
            destination: host.mac,
            source: net.mac_of(route.source),
            stamp: self.stamp(number),
        };
        out.push(Effect::Command { to: net.fabric().node(route.at.switch), item });
    }

    /// Removes the routes that only this host uses, because it no longer sends from its port.
    pub(super) fn leave(&mut self, net: &Network, host: HostIndex, out: &mut Vec<Effect>) {
        for route in self.flows.used_by(host) {
            if self.flows.drop_user(route, host) {
                self.remove(net, route, out);
            }
        }
    }

    /// Removes the routes at a port that only this host uses, because it no longer sends from
    /// there.
    pub(super) fn leave_port(
        &mut self,
        net: &Network,
        host: HostIndex,
        at: Place,
        out: &mut Vec<Effect>,
    ) {
        for route in self.flows.used_by(host) {
            let is_there = self.flows.get(route).is_some_and(|route| route.at == at);
            if is_there && self.flows.drop_user(route, host) {
                self.remove(net, route, out);
            }
        }
    }

    /// Updates routes after a host has moved. Routes to the host get new paths at once. Routes that
    /// it used at the old location are removed, and they are set up at the new location when it
    /// sends.
    pub(super) fn migrate(&mut self, net: &Network, host: HostIndex, out: &mut Vec<Effect>) {
        self.leave(net, host, out);
        for route in self.flows.towards(host) {
            self.reroute(net, route, out);
        }
    }

    pub(super) const fn stamp(&self, number: u64) -> Stamp {
        Stamp { epoch: self.decisions.epoch, number }
    }

    pub(super) const fn next_number(&mut self) -> u64 {
        self.decisions.number += 1;
        self.decisions.number
    }

    /// Returns the routes that a change in the graph affects: those that cross lost links, and, if
    /// the router has changed its rule, those that violate it.
    pub(super) fn hit_by(
        &mut self,
        net: &Network,
        change: &Change,
        has_new_rule: bool,
    ) -> Vec<RouteIndex> {
        let mut hit: Vec<RouteIndex> = Vec::new();
        for &(switch, port) in &change.lost {
            hit.extend(self.flows.over(switch, port));
        }
        if has_new_rule {
            for (index, route) in self.flows.iter() {
                self.decisions.paths.set_current(route);
                if !self.decisions.paths.allows_current(net.graph(), route.layer) {
                    hit.push(index);
                }
            }
        }
        hit.sort_unstable();
        hit.dedup();
        hit
    }

    /// Removes the routes at a switch, without a message to it.
    pub(super) fn forget_switch(&mut self, switch: SwitchIndex) {
        let here = self.flows.iter().filter(|(_, route)| route.at.switch == switch);
        let here: Vec<RouteIndex> = here.map(|(index, _)| index).collect();
        for route in here {
            self.unplace(route);
            self.flows.remove(route);
        }
    }

    /// Returns all flows, as input for a round of the router.
    pub(super) fn all(&self, net: &Network) -> impl Iterator<Item = Flow> {
        let flow = |route: &Route| self.flow(net, route.origin(), route.destination);
        self.flows.iter().filter_map(move |(_, route)| flow(route)).map(|(flow, _)| flow)
    }

    /// Moves one route if the router has a better path. Returns whether it was moved.
    pub(super) fn improve(
        &mut self,
        net: &Network,
        index: RouteIndex,
        out: &mut Vec<Effect>,
    ) -> bool {
        let Some(route) = self.flows.get(index) else {
            return false;
        };
        let before = route.exit;
        let Some((flow, exit)) = self.flow(net, route.origin(), route.destination) else {
            return false;
        };
        if exit != before {
            self.reroute(net, index, out);
            return true;
        }
        self.unplace(index);
        if !self.decisions.paths.find_better(net.graph(), &flow) {
            self.decisions.paths.place_current();
            return false;
        }
        self.decisions.paths.place();
        self.switch_over(net, index, exit, out);
        true
    }
}
