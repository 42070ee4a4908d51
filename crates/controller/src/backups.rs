//! Backup routes. Every route gets a backup, which its edge uses as soon as a link of the route is
//! down (`edge/failover.rs`).
//!
//! A route that was made, moved or taken over is queued. Shortly after the answer to its request,
//! the controller computes a path that shares no links with it, or as few links as the graph allows
//! ([`Detour`](super::router::Detour)), satisfies the router's rule, and fits in a header. The
//! backup is sent to the switch on the reliable stream, together with its route. After a change in
//! the graph, all routes are checked again in batches, and backups that have changed are sent.
//!
//! A switch reports that it uses a backup. Unless a later decision about that flow is in flight,
//! the backup becomes the route. It then counts as load on its links and gets a backup of its own.
//! So later failures, rounds and removals act on the route that is in use.

use super::flows::{Flows, Origin, RouteIndex};
use super::hosts::{Host, HostIndex, Place};
use super::network::Network;
use super::router::Step;
use super::routes::Routes;
use crate::effect::Effect;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use axon_link::stream;
use axon_node::RouteKey;
use axon_node::telemetry::ControllerCounters;
use axon_wire::message::{Item, RoutePath, Stamp};
use axon_wire::{Hops, Layer, PortNo, Route, Span, Time};

/// Number of routes in one batch.
const BATCH: usize = 64;

/// Backups installed at switches, and pending checks of routes.
#[derive(Clone, Debug)]
pub(super) struct Backups {
    /// True if routes get backups.
    on: bool,
    /// Interval between batches.
    pause: Span,
    /// Earliest time of the next batch.
    not_before: Time,
    /// Next route to check after a change in the graph, or `None` if all have been checked.
    sweep: Option<u32>,
    sent: BTreeMap<RouteIndex, Sent>,
    /// Scratch memory for the path being computed.
    path: Vec<Step>,
    /// Scratch memory for the path of the route.
    primary: Vec<Step>,
    /// Counts of backups sent and used.
    counters: ControllerCounters,
}

/// A backup sent to a switch.
#[derive(Clone, Debug)]
struct Sent {
    /// Stamp number of the decision to which the backup belongs.
    number: u64,
    path: Vec<Step>,
    /// Port where the backup ends.
    exit: Place,
    layer: Layer,
}

impl Backups {
    /// Creates the state without backups. `heartbeat` sets the pace: 20 batches per heartbeat.
    pub(super) fn new(on: bool, heartbeat: Span) -> Backups {
        Backups {
            on,
            pause: Span::from_ticks((heartbeat.ticks() / 20).max(1)),
            not_before: Time::ZERO,
            sweep: None,
            sent: BTreeMap::new(),
            path: Vec::new(),
            primary: Vec::new(),
            counters: ControllerCounters::default(),
        }
    }

    /// Returns the counts of backups sent and used.
    pub(super) const fn counters(&self) -> &ControllerCounters {
        &self.counters
    }

    /// Returns the backup that the route's switch has: its links, nearest first, and its layer.
    pub(super) fn get(&self, flows: &Flows, index: RouteIndex) -> Option<(&[Step], Layer)> {
        let number = flows.get(index)?.number;
        let sent = self.sent.get(&index).filter(|sent| sent.number == number)?;
        Some((&sent.path, sent.layer))
    }

    /// Returns when the next batch is due.
    pub(super) fn deadline(&self, flows: &Flows) -> Option<Time> {
        let waits = self.on && (flows.has_fresh() || self.sweep.is_some());
        waits.then_some(self.not_before)
    }

    /// Schedules a check of all backups after a change in the graph.
    pub(super) fn recheck(&mut self) {
        self.sweep = Some(0);
    }

    /// Returns whether every edge will have current backups once it has received everything sent
    /// since the last change in the graph.
    pub(super) const fn are_planned(&self) -> bool {
        !self.on || self.sweep.is_none()
    }

    /// Plans the next batch of backups if it is due, starting with new routes.
    pub(super) fn plan(
        &mut self,
        now: Time,
        (net, routes): (&Network, &mut Routes),
        out: &mut Vec<Effect>,
    ) {
        if !self.on {
            return routes.flows_mut().clear_fresh();
        }
        if self.not_before > now {
            return;
        }
        let mut left = BATCH;
        while left > 0
            && let Some(index) = routes.flows_mut().take_fresh()
        {
            self.plan_one((net, routes), index, out);
            left -= 1;
        }
        if let Some(mut at) = self.sweep {
            while left > 0 && at < routes.flows().end() {
                self.plan_one((net, routes), RouteIndex(at), out);
                (at, left) = (at + 1, left - 1);
            }
            self.sweep = (at < routes.flows().end()).then_some(at);
        }
        if left < BATCH {
            self.not_before = now + self.pause;
        }
    }

    /// Computes the backup for a route, and sends it if the switch does not have it yet.
    fn plan_one(
        &mut self,
        (net, routes): (&Network, &mut Routes),
        index: RouteIndex,
        out: &mut Vec<Effect>,
    ) {
        let before = self.sent.remove(&index);
        let Some(route) = routes.flows().get(index) else { return };
        let (from, number, exit) = (route.origin(), route.number, route.exit);
        let (layer, destination) = (route.layer, route.destination);
        self.primary.clear();
        self.primary.extend(route.steps());
        let Some((found, backup_exit)) = self.find((net, routes), from, destination, exit) else {
            return;
        };
        let path = &self.path;
        let lawful =
            if found { routes.paths_mut().router_mut().layer(net.graph(), path) } else { None };
        let path = core::mem::take(&mut self.path);
        let same = before.as_ref().is_some_and(|before| {
            (before.number, Some(before.layer), before.exit) == (number, lawful, backup_exit)
                && before.path == path
        });
        let Some(host) = net.hosts().get(destination) else { return };
        let source = net.mac_of(from.source);
        let set = |primary, backup| {
            let (port, destination, source) = (from.at.port, host.mac, source);
            Item::SetBackup { port, destination, source, primary, backup }
        };
        let bonded = backup_exit != exit;
        let item = lawful.map(|backup_layer| {
            let primary = route_path(net, &self.primary, (exit, bonded), layer);
            set(primary, Some(route_path(net, &path, (backup_exit, bonded), backup_layer)))
        });
        // A longer path does not fit in a segment.
        let item = item.filter(|item| stream::hop_count(item) <= stream::SEGMENT_HOPS_MAX);
        let to = net.fabric().node(from.at.switch);
        match (item, lawful) {
            (Some(item), Some(layer)) => {
                if !same {
                    out.push(Effect::Command { to, item });
                    self.counters.backups_sent += 1;
                }
                self.sent.insert(index, Sent { number, path, exit: backup_exit, layer });
            }
            _ if before.is_some() => {
                out.push(Effect::Command { to, item: set(RoutePath::default(), None) });
            }
            _ => {}
        }
    }

    /// Computes, into `self.path`, a backup for the route from a port to a host whose links are in
    /// `self.primary`. Returns the port where the backup ends, if there is a path. For a host at a
    /// bond, that is a different port of the bond if possible, so that the two paths do not share
    /// the link to the host.
    fn find(
        &mut self,
        (net, routes): (&Network, &mut Routes),
        from: Origin,
        destination: HostIndex,
        exit: Place,
    ) -> Option<(bool, Place)> {
        if let Some(other) = net.other_exit(exit, destination)
            && let Some((flow, _)) = routes.paths().flow_to(net, from, destination, other)
        {
            let (path, paths) = (&mut self.path, routes.paths_mut());
            let found = match flow.from == flow.to {
                true => {
                    path.clear();
                    true
                }
                false => {
                    paths.detour(net.graph(), &flow, &self.primary, path)
                        || paths.router_mut().path(net.graph(), &flow, path)
                }
            };
            if found && path.len() < paths.hops_max() {
                return Some((true, other));
            }
        }
        let (flow, exit) = routes.paths().flow_to(net, from, destination, exit)?;
        let (path, paths) = (&mut self.path, routes.paths_mut());
        let found = paths.router_mut().backup(net.graph(), &flow, &self.primary, path)
            || paths.detour(net.graph(), &flow, &self.primary, path);
        Some((found && path.len() < paths.hops_max(), exit))
    }

    /// Handles a switch's report that it has used a backup. Unless a later decision is in flight,
    /// the backup becomes the route of the flow. If this controller has not sent the backup, or has
    /// since replaced it, the current route is sent to the switch again.
    pub(super) fn used(
        &mut self,
        (net, routes): (&Network, &mut Routes),
        at: Place,
        key: RouteKey,
        (stamp, used): (Stamp, &Route),
        out: &mut Vec<Effect>,
    ) {
        let Some(index) = routes.found_by_key(net, at, key) else { return };
        let Some(route) = routes.flows().get(index) else { return };
        let (number, destination) = (route.number, route.destination);
        // Edges report routes from an earlier incarnation separately.
        if stamp.epoch != routes.epoch() || stamp.number < number {
            return;
        }
        let sent = self.sent.remove(&index).filter(|sent| sent.number == number);
        let known = sent.filter(|sent| {
            let exit = (sent.exit, false);
            route_path(net, &sent.path, exit, sent.layer).route == *used
        });
        self.counters.backups_used += u64::from(known.is_some());
        match known {
            Some(Sent { path, exit, layer, .. }) => {
                routes.unplace(index);
                routes.flows_mut().change(index, (&path, layer), exit, number);
                routes.paths_mut().router_mut().placed(&path);
                // A link of the backup may have failed while the report was in flight.
                let is_there = |step: &Step| net.graph().edge(step.switch, step.egress).is_some();
                let lawful = routes.paths_mut().router_mut().allows(net.graph(), &path, layer);
                let to = net.hosts().get(destination).map(Host::place);
                let ends_there = to.is_some_and(|to| net.fabric().exits(to).contains(exit));
                if lawful && ends_there && path.iter().all(is_there) {
                    // The new stamp is later than that of any answer before the failure.
                    routes.send_again(net, index, out);
                } else {
                    routes.reroute(net, index, out);
                }
            }
            None => routes.send_again(net, index, out),
        }
        routes.want_round(true);
    }
}

/// Returns a route's links with their switches. The host's port is included if it is a bond port
/// and so counts as a link.
fn route_path(
    net: &Network,
    path: &[Step],
    (exit, bonded): (Place, bool),
    layer: Layer,
) -> RoutePath {
    let mut hops: Vec<PortNo> = path.iter().map(|step| step.egress).collect();
    hops.push(exit.port);
    let last = bonded.then_some(exit.switch);
    let switches = path.iter().map(|step| step.switch).chain(last);
    let switches = switches.map(|switch| net.fabric().node(switch)).collect();
    RoutePath { route: Route { layer, ..Hops(hops).into() }, switches }
}
