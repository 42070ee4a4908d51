//! Takeover of the routes that edges have from an earlier incarnation of the controller.
//!
//! An edge reports these routes to a new incarnation (`edge/inherited.rs`), and forwards frames on
//! them in the meantime. Each is compared with the state of this incarnation and decided once:
//!
//! 1. The destination host, a host at the route's port, and the ports of all switches on the path
//!    must have been reported. Until then the route waits.
//! 2. A route whose path exists, leads to the host and is accepted by the router is taken over
//!    unchanged.
//! 3. Any other route, such as one over a failed link or to a host's old location, gets a new path
//!    from the router.
//! 4. A forbidden route is removed at once.
//! 5. If there is no path or no such host, the route is removed when its time expires. The next
//!    frames from its hosts then miss, and their switch repeats its request until there is a path.
//!
//! Routes that a switch reports beyond [`INHERITED_PER_SWITCH_MAX`] are not decided. They stay in
//! the tables of the switch until they expire there, and frames request them again.
//!
//! [`INHERITED_PER_SWITCH_MAX`]: super::bounds::INHERITED_PER_SWITCH_MAX
//!
//! No decision is made before the graph has been stable for three heartbeats. A router with its own
//! rule (see `router::UpDown`) would otherwise derive the rule from only part of the graph, and
//! refuse routes that follow the rule for the whole graph. Routes over a link that has just failed
//! are an exception. They carry no frames, so they get another path at once.

use super::bonds::Exits;
use super::bound_checks::Bounds;
use super::flows::{Account, Origin};
use super::hosts::{HostIndex, Place};
use super::network::Network;
use super::router::Step;
use super::routes::Routes;
use super::topology::SwitchIndex;
use crate::effect::Effect;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use axon_link::config::Timers;
use axon_node::RouteKey;
use axon_node::telemetry::Restored;
use axon_wire::message::Item;
use axon_wire::{Hops, MacAddr, PortNo, Route, Span, Time};

/// State of a route's path, compared with the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trace {
    /// The path leads to the host.
    Whole,
    /// A switch on the path has not sent its port state yet.
    Undecided,
    /// A link of the path is gone, or it does not lead to the host.
    Broken,
}

/// Routes that wait for a decision.
#[derive(Clone, Debug)]
pub(super) struct TakeOver {
    /// Waiting routes by switch, then by host port and route key. The key has no VLAN here.
    pending: BTreeMap<SwitchIndex, Waiting>,
    heartbeat: Span,
    /// Maximum time that a route waits.
    patience: Span,
    /// Time when the first of the waiting routes was added.
    began: Time,
    looked: Time,
    /// Time until which the graph may be incomplete.
    quiet: Time,
    next: Option<Time>,
    /// Links lost since the last check.
    lost: BTreeSet<(SwitchIndex, PortNo)>,
    /// Scratch memory for the path being traced.
    path: Vec<Step>,
    /// Counts of the routes decided, by result.
    decided: Restored,
}

/// Waiting routes at one switch.
type Waiting = BTreeMap<(PortNo, RouteKey), Pending>;

/// Waiting route.
#[derive(Clone, Debug)]
struct Pending {
    route: Route,
    until: Time,
}

impl TakeOver {
    /// Creates the state without waiting routes.
    pub(super) fn new(timers: &Timers) -> TakeOver {
        TakeOver {
            pending: BTreeMap::new(),
            heartbeat: timers.heartbeat,
            patience: timers.decision_max(),
            began: Time::ZERO,
            looked: Time::ZERO,
            quiet: Time::ZERO,
            next: None,
            lost: BTreeSet::new(),
            path: Vec::new(),
            decided: Restored::default(),
        }
    }

    /// Returns the number of waiting routes.
    pub(super) fn len(&self) -> usize {
        self.pending.values().map(Waiting::len).sum()
    }

    /// Returns the number of waiting routes at a switch.
    pub(super) fn len_of(&self, switch: SwitchIndex) -> usize {
        self.pending.get(&switch).map_or(0, Waiting::len)
    }

    /// Returns whether a route waits for a decision.
    pub(super) fn has(&self, at: Place, key: RouteKey) -> bool {
        self.get(at, key).is_some()
    }

    /// Returns the counts of the routes decided.
    pub(super) const fn decided(&self) -> &Restored {
        &self.decided
    }

    fn get(&self, at: Place, key: RouteKey) -> Option<&Pending> {
        self.pending.get(&at.switch)?.get(&(at.port, key))
    }

    /// Returns the waiting routes to a host, with their ports.
    pub(super) fn waiting_for(&self, destination: MacAddr) -> Vec<(Place, RouteKey)> {
        let of = |(&switch, waiting): (&SwitchIndex, &'_ Waiting)| {
            let to = waiting.keys().filter(|(_, key)| key.destination == destination);
            to.map(|&(port, key)| (Place { switch, port }, key)).collect::<Vec<_>>()
        };
        self.pending.iter().flat_map(of).collect()
    }

    /// Returns the waiting routes at a port, ordered by destination.
    pub(super) fn waiting_at(&self, at: Place) -> Vec<(Place, RouteKey)> {
        let last = RouteKey::to(MacAddr::BROADCAST).from_source(Some(MacAddr::BROADCAST));
        let range = (at.port, RouteKey::default())..=(at.port, last);
        let waiting = self.pending.get(&at.switch).into_iter();
        waiting
            .flat_map(|waiting| waiting.range(range.clone()))
            .map(|(key, _)| (at, key.1))
            .collect()
    }

    /// Adds a route that has to wait, for the first time or again.
    fn add(&mut self, now: Time, at: Place, key: RouteKey, waits: Pending) {
        if self.pending.is_empty() {
            self.began = now;
        }
        self.pending.entry(at.switch).or_default().insert((at.port, key), waits);
    }

    /// Returns when the next check is due.
    pub(super) const fn deadline(&self) -> Option<Time> {
        self.next
    }

    /// Returns whether a check is due.
    pub(super) fn is_due(&self, now: Time) -> bool {
        self.next.is_some_and(|next| next <= now)
    }

    /// Schedules a check once the graph and the routes have been stable for a while.
    pub(super) fn graph_changed(&mut self, now: Time) {
        if !self.pending.is_empty() {
            self.quiet = (now + self.heartbeat * 3).min(self.began + self.heartbeat * 30);
            self.next = Some(self.quiet.max(self.looked + self.heartbeat));
        }
    }

    /// Schedules an immediate check of the routes over lost links, and a check of all other routes
    /// once the graph has been stable for a while.
    pub(super) fn lost(&mut self, now: Time, links: &[(SwitchIndex, PortNo)]) {
        if !self.pending.is_empty() {
            self.graph_changed(now);
            self.lost.extend(links);
            self.next = Some(now);
        }
    }

    /// Schedules the next check after one at `now`. That one covered all routes if the graph was
    /// `whole`.
    fn looked(&mut self, now: Time, whole: bool) {
        self.looked = now;
        let waits = self.pending.values().flat_map(|waiting| waiting.values());
        let last = waits.map(|waits| waits.until).min();
        self.next = last.map(|last| if whole { last } else { last.min(self.quiet) });
    }

    /// Schedules a check soon after a host was reported or has moved.
    pub(super) fn host_seen(&mut self, now: Time) {
        if !self.pending.is_empty() {
            let soon = self.quiet.max(now + self.heartbeat);
            self.next = Some(self.next.map_or(soon, |next| next.min(soon)));
        }
    }

    /// Removes a waiting route that its switch no longer has.
    pub(super) fn forget(&mut self, at: Place, key: RouteKey) {
        if let Some(waiting) = self.pending.get_mut(&at.switch) {
            waiting.remove(&(at.port, key));
            if waiting.is_empty() {
                self.pending.remove(&at.switch);
            }
        }
    }

    /// Removes the waiting routes at a switch that has restarted without them.
    pub(super) fn forget_switch(&mut self, switch: SwitchIndex) {
        self.pending.remove(&switch);
    }
}

/// Decisions.
impl TakeOver {
    /// Handles a switch's report of a route from an earlier incarnation of this controller.
    pub(super) fn inherit(
        &mut self,
        now: Time,
        (at, key, route): (Place, RouteKey, Route),
        (net, routes, bounds): (&Network, &mut Routes, &mut Bounds),
        out: &mut Vec<Effect>,
    ) {
        if !net.may_reach_by_key(at, key) {
            return self.refuse_route((net, routes), at, key, out);
        }
        let before = self.get(at, key).map(|waits| waits.until);
        if before.is_none()
            && !bounds.has_room_for_inherited(routes.flows(), self.len_of(at.switch), at.switch)
        {
            return bounds.refuse(now, net.fabric(), (at.switch, None), out);
        }
        // A repeated report does not extend the time that a route may wait.
        let until = before.unwrap_or(now + self.patience);
        self.add(now, at, key, Pending { route, until });
        self.graph_changed(now);
    }

    /// Checks the waiting routes if a check is due. Returns whether it was. The paths in use must
    /// have been registered ([`TakeOver::find_in_flight`]), those in other VLANs too.
    pub(super) fn check(
        &mut self,
        now: Time,
        (net, routes): (&Network, &mut Routes),
        out: &mut Vec<Effect>,
    ) -> bool {
        if !self.is_due(now) {
            return false;
        }
        let mut users: BTreeMap<Place, Vec<HostIndex>> = BTreeMap::new();
        for (index, host) in net.hosts().iter().filter(|(_, host)| !host.is_provisional()) {
            users.entry(net.fabric().first_port(host.place())).or_default().push(index);
        }
        let whole = self.quiet <= now;
        let lost = core::mem::take(&mut self.lost);
        let pending = core::mem::take(&mut self.pending);
        let each = pending.into_iter().flat_map(|(switch, waiting)| {
            let at = move |port| Place { switch, port };
            waiting.into_iter().map(move |((port, key), waits)| (at(port), key, waits))
        });
        for (at, key, waits) in each {
            let users = users.get(&net.fabric().first_port(at)).map_or(&[][..], Vec::as_slice);
            let source = key.source.map(|source| net.hosts().by_mac(source));
            let own = source.flatten().filter(|source| users.contains(source));
            // A route for one source host has no other users.
            let users = if key.source.is_some() { own.as_slice() } else { users };
            let last = waits.until <= now;
            let due = whole
                || last
                || is_over((net, routes.paths().hops_max()), at, &waits.route.hops, &lost);
            if due && self.decide((net, routes), (at, key), &waits.route, (users, last), out) {
                continue;
            }
            if last {
                self.refuse_route((net, routes), at, key, out);
            } else {
                let waiting = self.pending.entry(at.switch).or_default();
                waiting.insert((at.port, key), waits);
            }
        }
        self.looked(now, whole);
        true
    }

    /// Registers the paths on which frames are in flight, before any decision that may close a
    /// cycle with them.
    pub(super) fn find_in_flight(&self, (net, routes): (&Network, &mut Routes)) {
        let mut path = Vec::new();
        for (&switch, waiting) in &self.pending {
            for waits in waiting.values() {
                path.clear();
                let mut here = switch;
                for &egress in waits.route.hops.iter() {
                    let Some(edge) = net.graph().edge(here, egress) else { break };
                    path.push(Step { switch: here, egress });
                    here = edge.to;
                    if path.len() >= routes.paths().hops_max() {
                        break;
                    }
                }
                routes.paths_mut().router_mut().found(net.graph(), &path, waits.route.layer);
            }
        }
    }

    /// Takes over a route or replaces it. Returns `false` if the route has to wait. At the last
    /// check, an undecided path counts as broken.
    fn decide(
        &mut self,
        (net, routes): (&Network, &mut Routes),
        (at, key): (Place, RouteKey),
        route: &Route,
        (users, last): (&[HostIndex], bool),
        out: &mut Vec<Effect>,
    ) -> bool {
        let destination = net.hosts().by_mac(key.destination).and_then(|index| {
            let host = net.hosts().get(index).filter(|host| !host.is_provisional())?;
            Some((index, host.place()))
        });
        let (Some((destination, to)), Some(&user)) = (destination, users.first()) else {
            return false;
        };
        let from = Origin { at, source: key.source.map(|_| user) };
        if !net.may_reach(from, destination) {
            self.refuse_route((net, routes), at, key, out);
            return true;
        }
        if routes.flows().find(from, destination).is_none() {
            let (traced, exit) = self.trace(
                (net, routes.paths().hops_max()),
                at,
                &net.fabric().exits(to),
                &route.hops,
            );
            match traced {
                Trace::Undecided if !last => return false,
                Trace::Whole
                    if routes.paths_mut().router_mut().take_over(
                        net.graph(),
                        &self.path,
                        route.layer,
                    ) =>
                {
                    let number = routes.next_number();
                    routes.paths_mut().router_mut().placed(&self.path);
                    routes.want_round(true);
                    let path = (&self.path[..], route.layer);
                    let account = Account::Inherited(at);
                    routes.flows_mut().insert(from, destination, path, exit, (number, account));
                }
                _ => {}
            }
        }
        let Some(index) = routes.found_or_made(
            net,
            routes.flows().find(from, destination),
            from,
            destination,
            (user, Account::Inherited(at)),
        ) else {
            return false;
        };
        users.iter().for_each(|&user| routes.flows_mut().add_user(index, user));
        let Some(decided) = routes.flows().get(index) else {
            return false;
        };
        let (number, now_installed) = (decided.number, decided.to_install());
        match now_installed == *route {
            true => self.decided.routes_kept += 1,
            false => self.decided.routes_moved += 1,
        }
        let (port, stamp) = (at.port, routes.stamp(number));
        let RouteKey { destination, source, .. } = key;
        let item = Item::SetRoute { port, destination, source, stamp, route: now_installed };
        out.push(Effect::Command { to: net.fabric().node(at.switch), item });
        true
    }

    /// Traces the hops of a route through the graph. Stores the links in `self.path`, and returns
    /// the port where they end.
    fn trace(
        &mut self,
        (net, hops_max): (&Network, usize),
        at: Place,
        to: &Exits,
        hops: &Hops,
    ) -> (Trace, Place) {
        self.path.clear();
        let Some((&exit, links)) = hops.split_last() else {
            return (Trace::Broken, at);
        };
        if links.len() >= hops_max {
            return (Trace::Broken, at);
        }
        let mut here = at.switch;
        for &egress in links {
            if self.path.iter().any(|step| step.switch == here) {
                return (Trace::Broken, at);
            }
            let Some(edge) = net.graph().edge(here, egress) else {
                let undecided = net.graph().is_undecided(here, egress);
                return (if undecided { Trace::Undecided } else { Trace::Broken }, at);
            };
            self.path.push(Step { switch: here, egress });
            here = edge.to;
        }
        let exit = Place { switch: here, port: exit };
        let whole = to.contains(exit) && !net.fabric().is_one_place(exit, at);
        (if whole { Trace::Whole } else { Trace::Broken }, exit)
    }

    /// Removes a waiting route from its switch.
    pub(super) fn refuse_route(
        &mut self,
        (net, routes): (&Network, &mut Routes),
        at: Place,
        key: RouteKey,
        out: &mut Vec<Effect>,
    ) {
        self.decided.routes_removed += 1;
        let number = routes.next_number();
        let (port, stamp, RouteKey { destination, source, .. }) =
            (at.port, routes.stamp(number), key);
        let item = Item::RemoveRoute { port, destination, source, stamp };
        out.push(Effect::Command { to: net.fabric().node(at.switch), item });
    }

    /// Removes the waiting routes to a host, because they may lead to another host that used its
    /// address.
    pub(super) fn refuse_routes_to(
        &mut self,
        (net, routes): (&Network, &mut Routes),
        destination: MacAddr,
        out: &mut Vec<Effect>,
    ) {
        for (at, key) in self.waiting_for(destination) {
            self.forget(at, key);
            self.refuse_route((net, routes), at, key, out);
        }
    }

    /// Removes all routes to a host, at every switch.
    pub(super) fn cut_off(
        &mut self,
        (net, routes): (&Network, &mut Routes),
        host: HostIndex,
        out: &mut Vec<Effect>,
    ) {
        for route in routes.flows().towards(host) {
            routes.remove(net, route, out);
        }
        if let Some(mac) = net.hosts().get(host).map(|host| host.mac) {
            self.refuse_routes_to((net, routes), mac, out);
        }
    }
}

/// Returns whether hops cross one of these lost links.
fn is_over(
    (net, hops_max): (&Network, usize),
    at: Place,
    hops: &Hops,
    lost: &BTreeSet<(SwitchIndex, PortNo)>,
) -> bool {
    let mut here = at.switch;
    // A path that visits a switch twice is treated like one that ends.
    for &egress in hops.iter().take(if lost.is_empty() { 0 } else { hops_max }) {
        if lost.contains(&(here, egress)) {
            return true;
        }
        let Some(edge) = net.graph().edge(here, egress) else { return false };
        here = edge.to;
    }
    false
}
