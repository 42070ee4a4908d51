//! Rerouting: routes are updated when the graph or the hosts change.
//!
//! The routes over a lost link are found from the link. Each gets the router's new path and a new
//! stamp at once. A route without a path is removed. The next frames of its hosts miss, and their
//! switch repeats its request until there is a path.
//!
//! A router with its own rule, such as [`super::router::UpDown`], may have to change the rule with
//! the graph. Then all routes that violate the new rule get new paths too.
//!
//! A restored link invalidates no route, so nothing moves at once. When the graph has not changed
//! for ten heartbeats, a round begins: the router checks every route, a batch per heartbeat, and
//! those with a better path are moved. The router defines what is better. For shortest paths it is
//! a shorter path; equally long routes stay, because a move may reorder frames and gains nothing. A
//! router that balances load gets rounds also after new flows, ten heartbeats apart, until it has
//! settled.
//!
//! **Order.** A switch replaces a route between two frames. It does not wait for frames on the old
//! path, so a frame may overtake earlier ones by at most the difference of the two paths' delays. A
//! flow is out of order for no longer than that, once per move, and never if the new path is the
//! slower one.

use super::bonds::Exits;
use super::conductor::Controller;
use super::flows::{Account, Origin, Route, RouteIndex};
use super::hosts::{HostIndex, Place};
use super::round::Round;
use super::router::{Flow, flow_hash};
use super::topology::{Change, SwitchIndex};
use alloc::vec::Vec;
use axon_link::effect::Effect;
use axon_node::RouteKey;
use axon_wire::message::{Item, Stamp};
use axon_wire::{Hops, NodeId, PortNo, Span, Time};

/// Number of routes checked in one batch of a round.
const BATCH: u32 = 2_048;

impl Controller {
    /// Returns the path from here to a switch's control plane, ending in [`PortNo::CONTROL`]: the
    /// shortest over all own links, lowest port first. If the graph has none yet, the reverse path
    /// of the switch's last Controller Hello.
    pub fn path_to(&mut self, switch: NodeId) -> Option<Hops> {
        if let Some(home) = self.net.fabric().home() {
            return self.path_from_home(home, switch);
        }
        let to = self.net.graph().index_of(switch)?;
        let mut best: Option<(usize, PortNo, SwitchIndex)> = None;
        for (port, via) in self.net.fabric().attachments() {
            let Some(distance) = self.router.shortest().distance(self.net.graph(), via, to) else {
                continue;
            };
            if best.is_none_or(|(least, ..)| distance < least) {
                best = Some((distance, port, via));
            }
        }
        let Some((_, port, via)) = best else {
            return self.net.graph().switch(to).reverse.clone();
        };
        if !self.router.shortest().pick(self.net.graph(), via, to, switch.0, &mut self.path) {
            return None;
        }
        let mut hops = Vec::with_capacity(self.path.len() + 2);
        hops.push(port);
        hops.extend(self.path.iter().map(|step| step.egress));
        hops.push(PortNo::CONTROL);
        Some(Hops(hops))
    }

    /// Returns the route from a port to a host, with one more user. Makes it if it does not exist,
    /// and charges it to this account.
    pub(super) fn route(
        &mut self,
        from: Origin,
        destination: HostIndex,
        by: (HostIndex, Account),
    ) -> Option<RouteIndex> {
        self.found_or_made(self.flows.find(from, destination), from, destination, by)
    }

    /// Returns the route from a port to a host, with one more user; makes it if `found` is `None`.
    pub(super) fn found_or_made(
        &mut self,
        found: Option<RouteIndex>,
        from: Origin,
        destination: HostIndex,
        (user, account): (HostIndex, Account),
    ) -> Option<RouteIndex> {
        let route = match found {
            Some(route) => route,
            None => {
                let exit = self.find_path(from, destination)?;
                let number = self.next_number();
                self.router.placed(&self.path);
                self.round_wanted = true;
                let path = (&self.path[..], self.layer);
                self.flows.insert(from, destination, path, exit, (number, account))
            }
        };
        self.flows.add_user(route, user);
        Some(route)
    }

    /// Computes the links from a port to a host into `self.path` and their layer into `self.layer`;
    /// returns the place where they end. If the router's choice does not fit in a header, a
    /// shortest path is used.
    fn find_path(&mut self, from: Origin, destination: HostIndex) -> Option<Place> {
        match self.exits_in_order(from, destination)? {
            Exits::One(exit) => self.find_path_to(from, destination, exit),
            Exits::Of(exits) => {
                exits.into_iter().find_map(|exit| self.find_path_to(from, destination, exit))
            }
        }
    }

    /// Computes the links from a port to `exit`, one of the ports where a route to the host may
    /// end.
    fn find_path_to(&mut self, from: Origin, destination: HostIndex, exit: Place) -> Option<Place> {
        let (flow, to) = self.flow_to(from, destination, exit)?;
        let mut found = self.router.path(self.net.graph(), &flow, &mut self.path);
        if found && self.path.len() >= self.hops_max {
            let shortest = self.router.shortest();
            found = shortest.pick(self.net.graph(), flow.from, flow.to, flow.hash, &mut self.path);
        }
        if !found || self.path.len() >= self.hops_max {
            return None;
        }
        self.layer = self.router.layer(self.net.graph(), &self.path)?;
        Some(to)
    }

    /// Returns the flow of a route, as input of the router, and the place where it ends; `None` if
    /// the policy forbids it.
    pub(super) fn flow(&self, from: Origin, destination: HostIndex) -> Option<(Flow, Place)> {
        let exit = match self.exits_in_order(from, destination)? {
            Exits::One(exit) => exit,
            Exits::Of(exits) => *exits.first()?,
        };
        self.flow_to(from, destination, exit)
    }

    /// Returns the flow of a route that ends at `exit`, one of the ports where a route to the host
    /// may end.
    pub(super) fn flow_to(
        &self,
        from: Origin,
        destination: HostIndex,
        to: Place,
    ) -> Option<(Flow, Place)> {
        if !self.net.may_reach(from, destination) {
            return None;
        }
        let host = self.net.hosts().get(destination)?;
        let at = from.at;
        let hash = flow_hash(self.net.fabric().node(at.switch), at.port, host.mac);
        let hash = self.net.hash_of(from, hash);
        let from = at.switch;
        Some((Flow { from, to: to.switch, hash, towards: destination.0 }, to))
    }

    /// Removes a route's path from the router's accounts.
    pub(super) fn unplace(&mut self, index: RouteIndex) {
        if let Some(route) = self.flows.get(index) {
            self.current.clear();
            self.current.extend(route.steps());
            self.router.removed(&self.current);
        }
    }

    /// Updates the path of a route, or removes the route. One that would end where it begins is
    /// removed: hosts behind one port reach each other without the fabric, and a returned frame
    /// would mislead a bridge there.
    pub(super) fn reroute(&mut self, index: RouteIndex, out: &mut Vec<Effect>) {
        let Some(route) = self.flows.get(index) else {
            return;
        };
        let (from, destination, layer) = (route.origin(), route.destination, route.layer);
        self.unplace(index);
        if self.is_draining() && !self.router.allows(self.net.graph(), &self.current, layer) {
            self.drain.again();
        }
        let found = self.find_path(from, destination);
        let found = found.filter(|exit| !self.net.fabric().is_one_place(*exit, from.at));
        // The later removal of the route subtracts the registered path from the router's accounts.
        let Some(exit) = found else {
            self.router.placed(&self.current);
            self.remove(index, out);
            return;
        };
        self.router.placed(&self.path);
        self.round_wanted = true;
        self.switch_over(index, exit, out);
    }

    /// Changes a route's path to one that ends at this port, if there is one.
    pub(super) fn reroute_to(
        &mut self,
        index: RouteIndex,
        exit: Place,
        out: &mut Vec<Effect>,
    ) -> bool {
        let Some(route) = self.flows.get(index) else { return false };
        let (from, destination) = (route.origin(), route.destination);
        self.unplace(index);
        let found = self.find_path_to(from, destination, exit);
        match found {
            Some(exit) => {
                self.router.placed(&self.path);
                self.switch_over(index, exit, out);
            }
            None => self.router.placed(&self.current),
        }
        found.is_some()
    }

    /// Changes a route's path to `self.path`, which the router has placed already, and sends it to
    /// the switch.
    fn switch_over(&mut self, index: RouteIndex, exit: Place, out: &mut Vec<Effect>) {
        if self.flows.get(index).is_none() {
            return;
        }
        let number = self.next_number();
        self.flows.change(index, (&self.path, self.layer), exit, number);
        self.counters.routes_moved += 1;
        self.send(index, out);
    }

    /// Sends an unchanged route to its switch again, as a new decision.
    pub(super) fn send_again(&mut self, index: RouteIndex, out: &mut Vec<Effect>) {
        let Some(route) = self.flows.get(index) else {
            return;
        };
        let (exit, layer) = (route.exit, route.layer);
        self.current.clear();
        self.current.extend(route.steps());
        let number = self.next_number();
        self.flows.change(index, (&self.current, layer), exit, number);
        self.send(index, out);
    }

    /// Sends a route to its switch.
    pub(super) fn send(&self, index: RouteIndex, out: &mut Vec<Effect>) {
        let Some(route) = self.flows.get(index) else {
            return;
        };
        let (at, number) = (route.at, route.number);
        let Some(host) = self.net.hosts().get(route.destination) else {
            return;
        };
        let item = Item::SetRoute {
            port: at.port,
            destination: host.mac,
            source: self.net.mac_of(route.source),
            stamp: self.stamp(number),
            route: route.to_install(),
        };
        out.push(Effect::Command { to: self.net.fabric().node(at.switch), item });
    }

    /// Handles a switch's removal of an unused route. Ignored if the route has a newer stamp,
    /// because it is being sent to the switch.
    pub(super) fn route_aged(&mut self, at: Place, key: RouteKey, stamp: Stamp) {
        self.take_over.forget(at, key);
        let Some(index) = self.found_by_key(at, key) else {
            return;
        };
        let number = self.flows.get(index).map(|route| route.number);
        if number.is_some_and(|number| self.stamp(number) == stamp) {
            self.unplace(index);
            self.flows.remove(index);
            self.counters.routes_aged += 1;
        }
    }

    /// Removes a route here and at its switch.
    pub(super) fn remove(&mut self, index: RouteIndex, out: &mut Vec<Effect>) {
        self.unplace(index);
        let Some(route) = self.flows.remove(index) else {
            return;
        };
        let Some(host) = self.net.hosts().get(route.destination) else {
            return;
        };
        self.number += 1;
        self.counters.routes_removed += 1;
        let item = Item::RemoveRoute {
            port: route.at.port,
            destination: host.mac,
            source: self.net.mac_of(route.source),
            stamp: self.stamp(self.number),
        };
        out.push(Effect::Command { to: self.net.fabric().node(route.at.switch), item });
    }

    /// Removes the routes that only this host uses, which no longer sends from its port.
    pub(super) fn leave(&mut self, host: HostIndex, out: &mut Vec<Effect>) {
        for route in self.flows.used_by(host) {
            if self.flows.drop_user(route, host) {
                self.remove(route, out);
            }
        }
    }

    /// Removes the routes of a port that only this host uses, which no longer sends from there.
    pub(super) fn leave_port(&mut self, host: HostIndex, at: Place, out: &mut Vec<Effect>) {
        for route in self.flows.used_by(host) {
            let is_there = self.flows.get(route).is_some_and(|route| route.at == at);
            if is_there && self.flows.drop_user(route, host) {
                self.remove(route, out);
            }
        }
    }

    /// Updates routes after a move of a host. Routes to it get new paths at once. Routes that it
    /// used at the old place are removed, and set up at the new one when it sends.
    pub(super) fn migrate(&mut self, host: HostIndex, out: &mut Vec<Effect>) {
        self.leave(host, out);
        for route in self.flows.towards(host) {
            self.reroute(route, out);
        }
    }

    /// Handles a change of the graph's edges.
    pub(super) fn changed(&mut self, now: Time, change: &Change, out: &mut Vec<Effect>) {
        match change.lost.is_empty() {
            true => self.take_over.graph_changed(now),
            false => self.take_over.lost(now, &change.lost),
        }
        let mut hit: Vec<RouteIndex> = Vec::new();
        for &(switch, port) in &change.lost {
            hit.extend(self.flows.over(switch, port));
        }
        if self.router.changed(self.net.graph()) {
            for (index, route) in self.flows.iter() {
                self.current.clear();
                self.current.extend(route.steps());
                if !self.router.allows(self.net.graph(), &self.current, route.layer) {
                    hit.push(index);
                }
            }
        }
        hit.sort_unstable();
        hit.dedup();
        for route in hit {
            self.reroute(route, out);
        }
        self.see_bonds(now, out);
        if change.gained && !self.flows.is_empty() {
            self.improving = Some(Round::begin(now + self.settle));
        }
        self.backups_changed();
        self.plan_round(now);
        self.drain(now, out);
    }

    /// Ends the links of earlier incarnations that no new one has reported in time.
    pub(super) fn links_run_out(&mut self, now: Time, out: &mut Vec<Effect>) {
        let change = self.net.graph_mut().run_out(now);
        if change.gained || !change.lost.is_empty() {
            self.changed(now, &change, out);
        }
    }

    /// Handles a new incarnation of a switch.
    ///
    /// Its routes are removed without a message: it reports those that its data plane still has
    /// (`takeover.rs`). Its hosts keep their location until it reports them, for a few seconds at
    /// most. Routes to them stay, because its data plane may still forward.
    pub(super) fn reborn(
        &mut self,
        now: Time,
        switch: SwitchIndex,
        change: &Change,
        out: &mut Vec<Effect>,
    ) {
        self.take_over.forget_switch(switch);
        // Its data plane may still have unacknowledged routes.
        self.drain.again();
        self.forget_members(now, self.net.fabric().node(switch), out);
        self.groups.forget_switch(now, switch);
        let here = |at: &Place| at.switch == switch;
        let routes = self.flows.iter().filter(|(_, route)| here(&route.at));
        let routes: Vec<RouteIndex> = routes.map(|(index, _)| index).collect();
        for route in routes {
            self.unplace(route);
            self.flows.remove(route);
        }
        let to = self.net.fabric().node(switch);
        for (place, mac) in self.net.hosts_mut().reborn(now, switch) {
            // A host that only receives would not be found again, so its switch must query it.
            let host = self.net.host(mac);
            if let Some(&ip) = host.and_then(|host| host.ips.last()) {
                let item = Item::AskHost { port: place.port, mac, ip };
                out.push(Effect::Command { to, item });
            }
        }
        self.changed(now, change, out);
    }

    /// Schedules a round if the router needs one and none is in progress.
    pub(super) fn plan_round(&mut self, now: Time) {
        if self.round_wanted && self.improving.is_none() && self.router.improves() {
            self.improving = Some(Round::begin(now + self.settle));
        }
    }

    /// Runs one batch of a round.
    pub(super) fn improve(&mut self, now: Time, out: &mut Vec<Effect>) {
        let Some(mut improving) = self.improving.filter(|improving| improving.next <= now) else {
            return;
        };
        if improving.at == 0 {
            self.round_wanted = false;
            self.begin_round();
        }
        let end = self.flows.end();
        let until = improving.at.saturating_add(BATCH).min(end);
        for at in improving.at..until {
            improving.moved += u32::from(self.improve_one(RouteIndex(at), out));
        }
        let pause = Span::from_ticks(self.settle.ticks() / 10);
        self.improving = if until < end {
            Some(Round { next: now + pause, at: until, ..improving })
        } else {
            let moved = improving.moved as usize;
            self.round_wanted |= !self.router.settled(moved, self.flows.len());
            None
        };
        self.plan_round(now);
    }

    fn begin_round(&mut self) {
        if self.router.improves() {
            let flow = |(_, route): (_, &Route)| self.flow(route.origin(), route.destination);
            let flows: Vec<Flow> = self.flows.iter().filter_map(flow).map(|(f, _)| f).collect();
            self.router.round(self.net.graph(), &flows);
        }
    }

    /// Moves one route if the router has a better path; returns whether it did.
    fn improve_one(&mut self, index: RouteIndex, out: &mut Vec<Effect>) -> bool {
        let Some(route) = self.flows.get(index) else {
            return false;
        };
        let before = route.exit;
        let Some((flow, exit)) = self.flow(route.origin(), route.destination) else {
            return false;
        };
        if exit != before {
            self.reroute(index, out);
            return true;
        }
        self.unplace(index);
        let better = self.router.better(self.net.graph(), &flow, &self.current, &mut self.path);
        let moves = better && self.path.len() < self.hops_max && self.path != self.current;
        let layer = moves.then(|| self.router.layer(self.net.graph(), &self.path)).flatten();
        let Some(layer) = layer else {
            self.router.placed(&self.current);
            return false;
        };
        self.layer = layer;
        self.router.placed(&self.path);
        self.switch_over(index, exit, out);
        true
    }
}
