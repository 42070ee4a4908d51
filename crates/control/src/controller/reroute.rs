//! Routes follow the graph and the hosts.
//!
//! A lost link names its routes; each gets the path that the router now chooses and a new
//! stamp, at once. One that has no path left is removed and forgotten: its hosts' next
//! frames miss, and their switch asks again when there is an answer.
//!
//! A link that comes back hurts nobody, so nothing moves at once. When the graph has been
//! quiet for ten heartbeats, routes longer than the best path are moved to it, a batch per
//! heartbeat; equally long ones stay, for moving them costs order and gains nothing.

use super::Controller;
use super::flows::RouteIndex;
use super::hosts::{HostIndex, Place};
use super::router::flow_hash;
use super::topology::{Change, SwitchIndex};
use crate::effect::Effect;
use alloc::vec::Vec;
use axon_wire::message::Item;
use axon_wire::{Span, Time};

/// Routes looked at in one batch.
const BATCH: u32 = 2_048;

/// How far the search for routes that could be shorter has come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Improving {
    /// When to look at the next batch.
    pub next: Time,
    at: u32,
}

impl Controller {
    /// The route from a port to a host, made if need be, with one more user.
    pub(super) fn route(
        &mut self,
        at: Place,
        destination: HostIndex,
        user: HostIndex,
    ) -> Option<RouteIndex> {
        let route = match self.flows.find(at, destination) {
            Some(route) => route,
            None => {
                let exit = self.find_path(at, destination)?;
                let number = self.next_number();
                self.flows.insert(at, destination, &self.path, exit.port, number)
            }
        };
        self.flows.add_user(route, user);
        Some(route)
    }

    /// Leaves the links from a port to a host in `self.path`, and says where they end.
    fn find_path(&mut self, at: Place, destination: HostIndex) -> Option<Place> {
        let host = self.hosts.get(destination)?;
        let flow = flow_hash(self.graph.switch(at.switch).life.node, at.port, host.mac);
        let to = host.place();
        let found = self.router.path(&self.graph, at.switch, to.switch, flow, &mut self.path);
        let fits = self.path.len() < self.hops_max;
        (found && fits).then_some(to)
    }

    /// Gives a route the path it should have now, or removes it.
    fn reroute(&mut self, index: RouteIndex, out: &mut Vec<Effect>) {
        let Some(route) = self.flows.get(index) else {
            return;
        };
        let (at, destination) = (route.at, route.destination);
        let Some(exit) = self.find_path(at, destination) else {
            self.remove(index, out);
            return;
        };
        let number = self.next_number();
        self.flows.change(index, &self.path, exit.port, number);
        self.counters.routes_moved += 1;
        let (Some(route), Some(host)) = (self.flows.get(index), self.hosts.get(destination)) else {
            return;
        };
        let item = Item::SetRoute {
            port: at.port,
            destination: host.mac,
            stamp: self.stamp(number),
            hops: route.hops(),
        };
        out.push(Effect::Command { to: self.graph.switch(at.switch).life.node, item });
    }

    /// Removes a route here and at its switch.
    pub(super) fn remove(&mut self, index: RouteIndex, out: &mut Vec<Effect>) {
        let Some(route) = self.flows.remove(index) else {
            return;
        };
        let Some(host) = self.hosts.get(route.destination) else {
            return;
        };
        self.number += 1;
        self.counters.routes_removed += 1;
        let item = Item::RemoveRoute {
            port: route.at.port,
            destination: host.mac,
            stamp: self.stamp(self.number),
        };
        out.push(Effect::Command { to: self.graph.switch(route.at.switch).life.node, item });
    }

    /// A host sends from its port no more: the routes that only it used go.
    pub(super) fn leave(&mut self, host: HostIndex, out: &mut Vec<Effect>) {
        for route in self.flows.used_by(host) {
            if self.flows.drop_user(route, host) {
                self.remove(route, out);
            }
        }
    }

    /// A host is at another place now: what leads to it follows at once; what it used at the
    /// old place goes, and is set up at the new one when it sends.
    pub(super) fn migrate(&mut self, host: HostIndex, out: &mut Vec<Effect>) {
        self.leave(host, out);
        for route in self.flows.towards(host) {
            self.reroute(route, out);
        }
    }

    /// Edges changed.
    pub(super) fn changed(&mut self, now: Time, change: &Change, out: &mut Vec<Effect>) {
        let mut hit: Vec<RouteIndex> = Vec::new();
        for &(switch, port) in &change.lost {
            hit.extend(self.flows.over(switch, port));
        }
        hit.sort_unstable();
        hit.dedup();
        for route in hit {
            self.reroute(route, out);
        }
        if change.gained && !self.flows.is_empty() {
            self.improving = Some(Improving { next: now + self.settle, at: 0 });
        }
    }

    /// A switch starts a new life: its tables are empty, so its routes need no word to it;
    /// its hosts are unknown until it reports them.
    pub(super) fn reborn(
        &mut self,
        now: Time,
        switch: SwitchIndex,
        change: &Change,
        out: &mut Vec<Effect>,
    ) {
        let here = |at: &Place| at.switch == switch;
        let routes = self.flows.iter().filter(|(_, route)| here(&route.at));
        let routes: Vec<RouteIndex> = routes.map(|(index, _)| index).collect();
        for route in routes {
            self.flows.remove(route);
        }
        let to = self.graph.switch(switch).life.node;
        for (place, mac) in self.hosts.claimed_by(switch) {
            // A host that only listens would not be found again: its switch is to ask for it.
            let host = self.hosts.by_mac(mac).and_then(|index| self.hosts.get(index));
            if let Some(&ip) = host.and_then(|host| host.ips.last()) {
                let item = Item::AskHost { port: place.port, mac, ip };
                out.push(Effect::Command { to, item });
            }
            self.withdraw(place, mac, out);
        }
        self.changed(now, change, out);
    }

    /// Moves routes that are longer than they need be, one batch.
    pub(super) fn improve(&mut self, now: Time, out: &mut Vec<Effect>) {
        let Some(improving) = self.improving.filter(|improving| improving.next <= now) else {
            return;
        };
        let end = self.flows.end();
        let until = improving.at.saturating_add(BATCH).min(end);
        for at in improving.at..until {
            let index = RouteIndex(at);
            let Some(route) = self.flows.get(index) else {
                continue;
            };
            let Some(host) = self.hosts.get(route.destination) else {
                continue;
            };
            let (from, to, length) = (route.at.switch, host.place().switch, route.len());
            let best = self.router.distance(&self.graph, from, to);
            if best.is_some_and(|best| best < length) {
                self.reroute(index, out);
            }
        }
        let pause = Span::from_ticks(self.settle.ticks() / 10);
        self.improving = (until < end).then_some(Improving { next: now + pause, at: until });
    }
}
