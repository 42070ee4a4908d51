//! Backup routes: every route gets a second one, which its edge uses as soon as a link of the first
//! is down (`edge/backup.rs`).
//!
//! A route that was made, moved or taken over is queued. Shortly after the answer to its request,
//! the controller computes a path that shares no link with it, or as few as the graph allows
//! ([`Detour`](super::router::Detour)), satisfies the router's rule, and fits in a header. The
//! backup is sent to the switch on the reliable stream, together with its route. After a change of
//! the graph all routes are checked again in batches, and changed backups are sent.
//!
//! A switch reports the use of a backup. Unless a later decision about that flow is in flight, the
//! backup becomes the route: it counts on its links and gets a backup of its own. So a later
//! failure, a round or a removal acts on the route in use.

use super::backups::{Backups, Sent};
use super::conductor::Controller;
use super::flows::{Origin, RouteIndex};
use super::hosts::{Host, HostIndex, Place};
use super::router::Step;
use alloc::vec::Vec;
use axon_link::effect::Effect;
use axon_link::stream;
use axon_node::RouteKey;
use axon_wire::message::{Item, RoutePath, Stamp};
use axon_wire::{Hops, Layer, PortNo, Route, Time};

/// Number of routes in one batch.
const BATCH: usize = 64;

impl Controller {
    /// Returns the backup at the route's switch: its links, nearest first, and its layer.
    pub fn backup(&self, index: RouteIndex) -> Option<(&[Step], Layer)> {
        let number = self.flows.get(index)?.number;
        let sent = self.backups.sent.get(&index).filter(|sent| sent.number == number)?;
        Some((&sent.path, sent.layer))
    }

    /// Returns when the next batch is due.
    pub(super) fn backups_deadline(&self) -> Option<Time> {
        let waits = self.backups.on && (self.flows.has_fresh() || self.backups.sweep.is_some());
        waits.then_some(self.backups.not_before)
    }

    /// Schedules a check of all backups after a change of the graph.
    pub(super) fn backups_changed(&mut self) {
        self.backups.sweep = Some(0);
    }

    /// Returns whether every edge will have current backups once it has received all that was sent
    /// since the last change of the graph.
    pub(super) const fn backups_are_planned(&self) -> bool {
        !self.backups.on || self.backups.sweep.is_none()
    }

    /// Plans the next batch of backups if it is due, new routes first.
    pub(super) fn plan_backups(&mut self, now: Time, out: &mut Vec<Effect>) {
        if !self.backups.on {
            return self.flows.clear_fresh();
        }
        if self.backups.not_before > now {
            return;
        }
        let mut left = BATCH;
        while left > 0
            && let Some(index) = self.flows.take_fresh()
        {
            self.plan_backup(index, out);
            left -= 1;
        }
        if let Some(mut at) = self.backups.sweep {
            while left > 0 && at < self.flows.end() {
                self.plan_backup(RouteIndex(at), out);
                (at, left) = (at + 1, left - 1);
            }
            self.backups.sweep = (at < self.flows.end()).then_some(at);
        }
        if left < BATCH {
            self.backups.not_before = now + self.backups.pause;
        }
    }

    /// Computes the backup of a route; sends it if the switch does not have it.
    fn plan_backup(&mut self, index: RouteIndex, out: &mut Vec<Effect>) {
        let before = self.backups.sent.remove(&index);
        let Some(route) = self.flows.get(index) else { return };
        let (from, number, exit) = (route.origin(), route.number, route.exit);
        let (layer, destination) = (route.layer, route.destination);
        self.current.clear();
        self.current.extend(route.steps());
        let Some((found, backup_exit)) = self.find_backup(from, destination, exit) else { return };
        let path = &self.backups.path;
        let lawful = if found { self.router.layer(self.net.graph(), path) } else { None };
        let path = core::mem::take(&mut self.backups.path);
        let same = before.as_ref().is_some_and(|before| {
            (before.number, Some(before.layer), before.exit) == (number, lawful, backup_exit)
                && before.path == path
        });
        let Some(host) = self.net.hosts().get(destination) else { return };
        let source = self.net.mac_of(from.source);
        let set = |primary, backup| {
            let (port, destination, source) = (from.at.port, host.mac, source);
            Item::SetBackup { port, destination, source, primary, backup }
        };
        let bonded = backup_exit != exit;
        let item = lawful.map(|backup_layer| {
            let primary = self.route_path(&self.current, (exit, bonded), layer);
            set(primary, Some(self.route_path(&path, (backup_exit, bonded), backup_layer)))
        });
        // A longer path does not fit in a segment.
        let item = item.filter(|item| stream::hop_count(item) <= stream::SEGMENT_HOPS_MAX);
        let to = self.net.fabric().node(from.at.switch);
        match (item, lawful) {
            (Some(item), Some(layer)) => {
                if !same {
                    out.push(Effect::Command { to, item });
                    self.counters.backups_sent += 1;
                }
                self.backups.sent.insert(index, Sent { number, path, exit: backup_exit, layer });
            }
            _ if before.is_some() => {
                out.push(Effect::Command { to, item: set(RoutePath::default(), None) });
            }
            _ => {}
        }
    }

    /// Computes, into `self.backups.path`, the backup of the route from a port to a host whose
    /// links are in `self.current`. Returns the port where it ends, if there is one. For a host at
    /// a bond that is another port of the bond if possible, so that no link to the host is in both.
    fn find_backup(
        &mut self,
        from: Origin,
        destination: HostIndex,
        exit: Place,
    ) -> Option<(bool, Place)> {
        if let Some(other) = self.net.other_exit(exit, destination)
            && let Some((flow, _)) = self.flow_to(from, destination, other)
        {
            let Backups { detour, path, .. } = &mut self.backups;
            let router = &mut *self.router;
            let found = match flow.from == flow.to {
                true => {
                    path.clear();
                    true
                }
                false => {
                    detour.find(self.net.graph(), &flow, &self.current, router, path)
                        || router.path(self.net.graph(), &flow, path)
                }
            };
            if found && path.len() < self.hops_max {
                return Some((true, other));
            }
        }
        let (flow, exit) = self.flow_to(from, destination, exit)?;
        let Backups { detour, path, .. } = &mut self.backups;
        let router = &mut *self.router;
        let found = router.backup(self.net.graph(), &flow, &self.current, path)
            || detour.find(self.net.graph(), &flow, &self.current, router, path);
        Some((found && path.len() < self.hops_max, exit))
    }

    /// Returns a path with its switches, including the host's port if it is a bond port and counts
    /// as a link.
    fn route_path(&self, path: &[Step], (exit, bonded): (Place, bool), layer: Layer) -> RoutePath {
        let mut hops: Vec<PortNo> = path.iter().map(|step| step.egress).collect();
        hops.push(exit.port);
        let last = bonded.then_some(exit.switch);
        let switches = path.iter().map(|step| step.switch).chain(last);
        let node = |switch| self.net.fabric().node(switch);
        let switches = switches.map(node).collect();
        RoutePath { route: Route { layer, ..Hops(hops).into() }, switches }
    }

    /// Handles a switch's report that it has used a backup. Unless a later decision is in flight,
    /// the backup becomes the route of the flow. For a backup that this controller has not sent, or
    /// has replaced, the switch is sent the current route again.
    pub(super) fn backup_used(
        &mut self,
        at: Place,
        key: RouteKey,
        (stamp, used): (Stamp, &Route),
        out: &mut Vec<Effect>,
    ) {
        let Some(index) = self.found_by_key(at, key) else { return };
        let Some(route) = self.flows.get(index) else { return };
        let (number, destination) = (route.number, route.destination);
        // Edges report routes of an earlier incarnation separately.
        if stamp.epoch != self.epoch || stamp.number < number {
            return;
        }
        let sent = self.backups.sent.remove(&index).filter(|sent| sent.number == number);
        let known = sent.filter(|sent| {
            let exit = (sent.exit, false);
            self.route_path(&sent.path, exit, sent.layer).route == *used
        });
        self.counters.backups_used += u64::from(known.is_some());
        match known {
            Some(Sent { path, exit, layer, .. }) => {
                self.unplace(index);
                self.flows.change(index, (&path, layer), exit, number);
                self.router.placed(&path);
                // A link of the backup may have failed while the report was in flight.
                let is_there =
                    |step: &Step| self.net.graph().edge(step.switch, step.egress).is_some();
                let lawful = self.router.allows(self.net.graph(), &path, layer);
                let to = self.net.hosts().get(destination).map(Host::place);
                let ends_there = to.is_some_and(|to| self.net.fabric().exits(to).contains(exit));
                if lawful && ends_there && path.iter().all(is_there) {
                    // The new stamp is later than that of any answer before the failure.
                    self.send_again(index, out);
                } else {
                    self.reroute(index, out);
                }
            }
            None => self.send_again(index, out),
        }
        self.round_wanted = true;
    }
}
