//! Takeover of routes that edges have from an earlier incarnation of the controller.
//!
//! An edge reports these routes to a new incarnation (`edge/inherited.rs`) and forwards frames on
//! them meanwhile. Each is compared with the state of this incarnation and decided once:
//!
//! 1. The destination host, a host at the route's port, and the ports of all switches on the path
//!    must have been reported. Until then the route waits.
//! 2. A route whose path exists, leads to the host and is accepted by the router is taken over
//!    unchanged.
//! 3. Any other route, such as one over a failed link or to a host's old location, gets the
//!    router's new path.
//! 4. A forbidden route is removed at once.
//! 5. If there is no path or no such host, the route is removed when its time expires. The next
//!    frames of its hosts miss, and their switch repeats its request until there is a path.
//!
//! Routes that a switch reports beyond [`INHERITED_PER_SWITCH_MAX`] are not decided. They stay in
//! the tables of the switch until they expire there, and frames request them again.
//!
//! [`INHERITED_PER_SWITCH_MAX`]: super::bounds::INHERITED_PER_SWITCH_MAX
//!
//! No decision is made before the graph has been stable for three heartbeats. A router with its own
//! rule (see `router::UpDown`) would otherwise derive it from a part of the graph, and refuse
//! routes that follow the rule of the whole. Routes over a link that has just failed are an
//! exception: they carry no frames, so they get another path at once.

use super::bonds::Exits;
use super::conductor::Controller;
use super::flows::{Account, Origin};
use super::hosts::{HostIndex, Place};
use super::pending::Pending;
use super::router::Step;
use super::topology::SwitchIndex;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use axon_link::effect::Effect;
use axon_node::RouteKey;
use axon_wire::message::{Item, Stamp};
use axon_wire::{Hops, MacAddr, PortNo, Route, Time};

/// State of a route's path in the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trace {
    /// The path leads to the host.
    Whole,
    /// A switch on the path has not sent its port state yet.
    Undecided,
    /// A link of the path is gone, or it does not lead to the host.
    Broken,
}

impl Controller {
    /// Handles a switch's report of a route of an earlier incarnation of this controller.
    pub(super) fn inherited(
        &mut self,
        now: Time,
        at: Place,
        key: RouteKey,
        (route, stamp): (Route, Stamp),
        out: &mut Vec<Effect>,
    ) {
        if stamp.epoch == self.epoch {
            self.counters.item_misplaced += 1;
            return;
        }
        if !self.net.may_reach_by_key(at, key) {
            return self.refuse_route(at, key, out);
        }
        let before = self.take_over.get(at, key).map(|waits| waits.until);
        if before.is_none() && !self.has_room_for_inherited(at.switch) {
            return self.over_bound(now, (at.switch, None), out);
        }
        // A repeated report does not extend the time of a route.
        let until = before.unwrap_or(now + self.take_over.patience);
        self.take_over.add(now, at, key, Pending { route, until });
        self.take_over.graph_changed(now);
    }

    /// Checks the waiting routes if a check is due.
    pub(super) fn take_over(&mut self, now: Time, out: &mut Vec<Effect>) {
        if self.take_over.next.is_none_or(|next| next > now) {
            return;
        }
        let mut users: BTreeMap<Place, Vec<HostIndex>> = BTreeMap::new();
        for (index, host) in self.net.hosts().iter().filter(|(_, host)| !host.is_provisional()) {
            users.entry(self.net.fabric().first_port(host.place())).or_default().push(index);
        }
        let whole = self.take_over.quiet <= now;
        self.find_in_flight();
        let lost = core::mem::take(&mut self.take_over.lost);
        let pending = core::mem::take(&mut self.take_over.pending);
        let each = pending.into_iter().flat_map(|(switch, waiting)| {
            let at = move |port| Place { switch, port };
            waiting.into_iter().map(move |((port, key), waits)| (at(port), key, waits))
        });
        for (at, key, waits) in each {
            let users = users.get(&self.net.fabric().first_port(at)).map_or(&[][..], Vec::as_slice);
            let source = key.source.map(|source| self.net.hosts().by_mac(source));
            let own = source.flatten().filter(|source| users.contains(source));
            // A route for one source host has no other user.
            let users = if key.source.is_some() { own.as_slice() } else { users };
            let last = waits.until <= now;
            let due = whole || last || self.is_over(at, &waits.route.hops, &lost);
            if due && self.decide((at, key), &waits.route, (users, last), out) {
                continue;
            }
            if last {
                self.refuse_route(at, key, out);
            } else {
                let waiting = self.take_over.pending.entry(at.switch).or_default();
                waiting.insert((at.port, key), waits);
            }
        }
        self.take_over.looked(now, whole);
        self.plan_round(now);
    }

    /// Registers the paths on which frames are in flight, before any decision that may close a
    /// cycle with them.
    fn find_in_flight(&mut self) {
        let mut path = Vec::new();
        for (&switch, waiting) in &self.take_over.pending {
            for waits in waiting.values() {
                path.clear();
                let mut here = switch;
                for &egress in waits.route.hops.iter() {
                    let Some(edge) = self.net.graph().edge(here, egress) else { break };
                    path.push(Step { switch: here, egress });
                    here = edge.to;
                    if path.len() >= self.hops_max {
                        break;
                    }
                }
                self.router.found(self.net.graph(), &path, waits.route.layer);
            }
        }
    }

    /// Returns whether hops cross one of these lost links.
    fn is_over(&self, at: Place, hops: &Hops, lost: &BTreeSet<(SwitchIndex, PortNo)>) -> bool {
        let mut here = at.switch;
        // A path that visits a switch twice is treated like one that ends.
        for &egress in hops.iter().take(if lost.is_empty() { 0 } else { self.hops_max }) {
            if lost.contains(&(here, egress)) {
                return true;
            }
            let Some(edge) = self.net.graph().edge(here, egress) else { return false };
            here = edge.to;
        }
        false
    }

    /// Takes a route over or replaces it; `false` if it has to wait. At the last check an undecided
    /// path counts as broken.
    fn decide(
        &mut self,
        (at, key): (Place, RouteKey),
        route: &Route,
        (users, last): (&[HostIndex], bool),
        out: &mut Vec<Effect>,
    ) -> bool {
        let destination = self.net.hosts().by_mac(key.destination).and_then(|index| {
            let host = self.net.hosts().get(index).filter(|host| !host.is_provisional())?;
            Some((index, host.place()))
        });
        let (Some((destination, to)), Some(&user)) = (destination, users.first()) else {
            return false;
        };
        let from = Origin { at, source: key.source.map(|_| user) };
        if !self.net.may_reach(from, destination) {
            self.refuse_route(at, key, out);
            return true;
        }
        if self.flows.find(from, destination).is_none() {
            let (traced, exit) = self.trace(at, &self.net.fabric().exits(to), &route.hops);
            match traced {
                Trace::Undecided if !last => return false,
                Trace::Whole
                    if self.router.take_over(self.net.graph(), &self.path, route.layer) =>
                {
                    let number = self.next_number();
                    self.router.placed(&self.path);
                    self.round_wanted = true;
                    let path = (&self.path[..], route.layer);
                    let account = Account::Inherited(at);
                    self.flows.insert(from, destination, path, exit, (number, account));
                }
                _ => {}
            }
        }
        let Some(index) = self.route(from, destination, (user, Account::Inherited(at))) else {
            return false;
        };
        users.iter().for_each(|&user| self.flows.add_user(index, user));
        let Some(decided) = self.flows.get(index) else {
            return false;
        };
        let (number, now_installed) = (decided.number, decided.to_install());
        match now_installed == *route {
            true => self.restored.routes_kept += 1,
            false => self.restored.routes_moved += 1,
        }
        let (port, stamp) = (at.port, self.stamp(number));
        let RouteKey { destination, source, .. } = key;
        let item = Item::SetRoute { port, destination, source, stamp, route: now_installed };
        out.push(Effect::Command { to: self.net.fabric().node(at.switch), item });
        true
    }

    /// Traces hops through the graph. Stores the links in `self.path`, and returns the port where
    /// they end.
    fn trace(&mut self, at: Place, to: &Exits, hops: &Hops) -> (Trace, Place) {
        self.path.clear();
        let Some((&exit, links)) = hops.split_last() else {
            return (Trace::Broken, at);
        };
        if links.len() >= self.hops_max {
            return (Trace::Broken, at);
        }
        let mut here = at.switch;
        for &egress in links {
            if self.path.iter().any(|step| step.switch == here) {
                return (Trace::Broken, at);
            }
            let Some(edge) = self.net.graph().edge(here, egress) else {
                let undecided = self.net.graph().is_undecided(here, egress);
                return (if undecided { Trace::Undecided } else { Trace::Broken }, at);
            };
            self.path.push(Step { switch: here, egress });
            here = edge.to;
        }
        let exit = Place { switch: here, port: exit };
        let whole = to.contains(exit) && !self.net.fabric().is_one_place(exit, at);
        (if whole { Trace::Whole } else { Trace::Broken }, exit)
    }

    /// Removes a waiting route at its switch.
    pub(super) fn refuse_route(&mut self, at: Place, key: RouteKey, out: &mut Vec<Effect>) {
        self.restored.routes_removed += 1;
        let number = self.next_number();
        let (port, stamp, RouteKey { destination, source, .. }) =
            (at.port, self.stamp(number), key);
        let item = Item::RemoveRoute { port, destination, source, stamp };
        out.push(Effect::Command { to: self.net.fabric().node(at.switch), item });
    }

    /// Removes the waiting routes to a host, which may lead to another one that used its address.
    pub(super) fn refuse_routes_to(&mut self, destination: MacAddr, out: &mut Vec<Effect>) {
        for (at, key) in self.take_over.waiting_for(destination) {
            self.take_over.forget(at, key);
            self.refuse_route(at, key, out);
        }
    }
}
