//! Enforcement of the policy: no route that it forbids is made or kept.
//!
//! Each port's routes are looked up by destination, so any host at the port can use them, with any
//! source address. So a route is allowed only if *all* hosts at its port may reach *all* hosts at
//! the port where it ends. Hosts behind one port are not isolated from each other, because their
//! frames need not pass the switch. But no such port connects two tenants. Where source addresses
//! are trusted ([`BySource`](crate::config::BySource)) a host may have its own routes, so each host
//! is checked separately (`by_source.rs`).
//!
//! The policy is checked in five cases. A request for a forbidden route is denied (`requests.rs`).
//! A path is computed only if the policy allows it (`routes.rs`): for new routes, after a failure,
//! after a move and in rounds. A forbidden inherited route is removed (`takeover.rs`). When a new
//! host appears at a port, the routes from that port that it may not use are removed at once. So
//! are routes that a change of the policy forbids. A report of a host that is pinned to another
//! port is refused.

use super::bound_checks::Scope;
use super::flows::RouteIndex;
use super::forwarding::Forwarding;
use super::hosts::{Host, HostIndex, Learned, Place};
use crate::effect::Effect;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use axon_node::{Note, PolicyChange, Subject};
use axon_wire::{MacAddr, NodeId, Time};

/// Admission of hosts, and removal of forbidden routes.
impl Forwarding<'_> {
    /// Records a report from a switch, if the policy admits the host at the reported port.
    pub(super) fn reported(
        &mut self,
        now: Time,
        at: Place,
        mac: MacAddr,
        out: &mut Vec<Effect>,
    ) -> Learned {
        let before = self.net.place_of(mac);
        let learned = self.learned(now, (at, mac), out, |hosts| hosts.report(at, mac));
        match (learned, before) {
            (Learned::Moved(host), Some(before)) if self.net.fabric().is_one_place(before, at) => {
                Learned::Here(host)
            }
            // The answer to a query at a bond may arrive through any of its ports.
            (Learned::Moved(host), _) => {
                let asked = self.net.hosts().get(host).and_then(Host::queried);
                if asked
                    .is_some_and(|asked| asked != at && self.net.fabric().is_one_place(asked, at))
                {
                    self.net.hosts_mut().queried(now, mac, at);
                }
                learned
            }
            _ => learned,
        }
    }

    /// Records the sender of a request, if the policy admits the host at the port.
    pub(super) fn requested(
        &mut self,
        now: Time,
        at: Place,
        mac: MacAddr,
        out: &mut Vec<Effect>,
    ) -> Learned {
        let there = self.net.place_of(mac);
        if there.is_some_and(|there| there != at && self.net.fabric().is_one_place(there, at)) {
            return self.net.hosts().by_mac(mac).map_or(Learned::Refused, Learned::Here);
        }
        if there.is_some_and(|there| self.net.fabric().has_left_port(there, at))
            && let Learned::Here(host) | Learned::Moved(host) = self.net.hosts_mut().report(at, mac)
        {
            return Learned::Here(host);
        }
        if there.is_some() || self.net.is_free() {
            return self.net.hosts_mut().request(now, at, mac);
        }
        self.learned(now, (at, mac), out, |hosts| hosts.request(now, at, mac))
    }

    fn learned(
        &mut self,
        now: Time,
        (at, mac): (Place, MacAddr),
        out: &mut Vec<Effect>,
        learn: impl FnOnce(&mut super::hosts::HostTable) -> Learned,
    ) -> Learned {
        if self.net.is_free() {
            return learn(self.net.hosts_mut());
        }
        let node = self.net.fabric().node(at.switch);
        // A host that is pinned to one port of a bond is pinned to all of them, even to those that
        // are down.
        let ports = match self.net.fabric().bond_at(at) {
            Some(_) => self.net.fabric().bonds().ports_with((node, at.port)),
            None => [(node, at.port)].into(),
        };
        if !self.net.policy().admits(mac, &ports) {
            self.bounds.count_misplaced();
            if self.bounds.is_news(now, at.switch, Scope::Admission) {
                out.push(Effect::Note(Note::HostMisplaced { node, port: at.port, mac }));
            }
            return Learned::Refused;
        }
        let learned = learn(self.net.hosts_mut());
        if matches!(learned, Learned::Here(_) | Learned::Moved(_)) {
            self.came(at, out);
        }
        learned
    }

    /// Handles a new host at a port. Its presence may make routes of the port forbidden.
    pub(super) fn came(&mut self, at: Place, out: &mut Vec<Effect>) {
        self.split_at(at, out);
        if !self.net.policy().is_open() && self.net.is_mixed(at) {
            self.enforce_at(at, out);
        }
    }

    /// Removes the forbidden routes from and to the hosts at a port. Returns the number of removed
    /// routes, and the switches that have to remove them.
    fn enforce_at(&mut self, at: Place, out: &mut Vec<Effect>) -> (u64, BTreeSet<NodeId>) {
        let hosts =
            self.net.fabric().ports_of(at).into_iter().flat_map(|at| self.net.hosts().hosts_at(at));
        let hosts: Vec<(HostIndex, MacAddr)> =
            hosts.filter_map(|host| Some((self.net.hosts().by_mac(host.mac)?, host.mac))).collect();
        let of = |&(host, _): &(HostIndex, _)| {
            [self.routes.flows().used_by(host), self.routes.flows().towards(host)].concat()
        };
        let routes: BTreeSet<RouteIndex> = hosts.iter().flat_map(of).collect();
        let (mut removed, mut switches) = (0, BTreeSet::new());
        for index in routes {
            let Some(route) = self.routes.flows().get(index) else { continue };
            let (from, to) = (route.origin(), route.destination);
            if !self.net.may_reach(from, to) {
                switches.insert(self.net.fabric().node(from.at.switch));
                self.split(index, out);
                removed += 1;
            }
        }
        // Undecided routes from an earlier incarnation.
        let mut waiting = self.take_over.waiting_at(at);
        let to = |&(_, mac): &(_, MacAddr)| self.take_over.waiting_for(mac);
        waiting.extend(hosts.iter().flat_map(to).collect::<Vec<_>>());
        for (from, key) in waiting {
            if !self.net.may_reach_by_key(from, key) && self.take_over.has(from, key) {
                switches.insert(self.net.fabric().node(from.switch));
                self.take_over.forget(from, key);
                self.take_over.refuse_route((&self.net, &mut self.routes), from, key, out);
                removed += 1;
            }
        }
        (removed, switches)
    }

    /// Removes the routes that a change of the policy forbids, which start or end at one port.
    /// Returns their number, and the switches that have to remove them.
    pub(super) fn enforce(
        &mut self,
        change: PolicyChange,
        out: &mut Vec<Effect>,
    ) -> (u64, BTreeSet<NodeId>) {
        let at = match change {
            PolicyChange::Pair(pair, _) => self.net.place_of(pair.hosts()[0]),
            PolicyChange::Quarantine(Subject::Mac(mac), _) => self.net.place_of(mac),
            PolicyChange::Quarantine(Subject::Port(node, port), _) => {
                self.net.fabric().place((node, port))
            }
        };
        at.map(|at| self.enforce_at(at, out)).unwrap_or_default()
    }
}
