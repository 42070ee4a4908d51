//! Routes to hosts at bonds: which port each route ends at, and what follows from a change of the
//! ports. See `bonds.rs`.

use super::bonds::Exits;
use super::conductor::Controller;
use super::flows::{Flows, Origin, RouteIndex};
use super::hosts::{Host, HostIndex, Place};
use super::network::Network;
use super::routes::Routes;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use axon_link::effect::Effect;
use axon_node::telemetry::BondTelemetry;
use axon_wire::lacp::Partner;
use axon_wire::message::MemberState;
use axon_wire::{NodeId, Time};

impl Controller {
    /// Returns the telemetry of all bonds.
    pub fn bonds_telemetry(&self) -> Vec<BondTelemetry> {
        self.fwd.net.fabric().bonds().telemetry()
    }

    /// Removes a port from its bond; its hosts are at another port of the bond, or gone.
    fn part(&mut self, now: Time, at: Place, out: &mut Vec<Effect>) {
        let claims = self.fwd.net.hosts().claimed_by(at.switch).into_iter();
        for (place, mac) in claims.filter(|(place, _)| *place == at) {
            self.withdraw(now, place, mac, out);
        }
    }

    /// Updates which bond ports are at switches that the graph reaches, after a change of the
    /// graph.
    pub(super) fn see_bonds(&mut self, now: Time, out: &mut Vec<Effect>) {
        if self.fwd.net.fabric().bonds().is_empty() {
            return;
        }
        let Some(reached) = self.fwd.net.fabric().reached() else { return };
        let nodes: BTreeSet<NodeId> =
            reached.into_iter().map(|switch| self.fwd.net.fabric().node(switch)).collect();
        for bond in 0..self.fwd.net.fabric().bonds().len() {
            let bonds = self.fwd.net.fabric_mut().bonds_mut();
            if bonds.reach(now, bond, |node| nodes.contains(&node)) {
                self.bond_changed(now, bond, out);
            }
        }
    }

    /// Handles a switch's report about a bond port.
    pub(super) fn bond_member(
        &mut self,
        now: Time,
        at: Place,
        (state, partner, selected): (MemberState, Option<Partner>, bool),
        out: &mut Vec<Effect>,
    ) {
        let Some(slot) = self.fwd.net.fabric().bonds().slot(self.fwd.net.fabric().port(at)) else {
            self.counters.item_misplaced += 1;
            return;
        };
        let joined = self.fwd.net.fabric().bond_at(at).is_some();
        self.fwd.net.fabric_mut().bonds_mut().report(now, slot, (state, partner));
        if joined && self.fwd.net.fabric().bond_at(at).is_none() {
            self.part(now, at, out);
            // The hosts may have sent by this port and be claimed at another.
            for host in self.fwd.net.hosts_of_bond(slot.0) {
                self.fwd.routes.leave_port(&self.fwd.net, host, at, out);
            }
        }
        self.bond_changed(now, slot.0, out);
        self.fwd.net.fabric().bonds().select(slot, selected, out);
    }

    /// Resets the bond ports of a switch with a new incarnation.
    pub(super) fn forget_members(&mut self, now: Time, node: NodeId, out: &mut Vec<Effect>) {
        for bond in 0..self.fwd.net.fabric().bonds().len() {
            if self.fwd.net.fabric_mut().bonds_mut().reset(bond, node) {
                self.bond_changed(now, bond, out);
            }
        }
    }

    /// Handles a change of the ports of a bond, or of which of them distribute.
    fn bond_changed(&mut self, now: Time, bond: usize, out: &mut Vec<Effect>) {
        self.fwd.net.fabric_mut().bonds_mut().choose(bond, out);
        self.groups.all_changed(now);
        // Backups end at a port of the bond, which may be another one now.
        self.backups.recheck();
        for host in self.fwd.net.hosts_of_bond(bond) {
            self.fwd.routes.move_away(&self.fwd.net, host, out);
        }
    }
}

/// The port of each route.
impl Routes {
    /// Returns the ports where a route to a host may end, in order of preference: the current port
    /// of the route first, then those with the fewest routes to the host.
    pub(super) fn exits_in_order(
        &self,
        net: &Network,
        from: Origin,
        destination: HostIndex,
    ) -> Option<Exits> {
        let exits = net.fabric().exits(net.hosts().get(destination)?.place());
        let Exits::Of(mut places) = exits else { return Some(exits) };
        let own = self.flows().find(from, destination);
        let current = own.and_then(|own| self.flows().get(own)).map(|route| route.exit);
        let counts = counts(self.flows(), destination, &places);
        let mut order: Vec<(bool, usize, usize)> = (counts.iter().enumerate())
            .map(|(number, &count)| (Some(places[number]) != current, count, number))
            .collect();
        order.sort_unstable();
        places = order.into_iter().map(|(.., number)| places[number]).collect();
        Some(Exits::Of(places))
    }

    /// Moves the routes to a host that end at a port which does not distribute.
    pub(super) fn move_away(&mut self, net: &Network, host: HostIndex, out: &mut Vec<Effect>) {
        let Some(place) = net.hosts().get(host).map(Host::place) else { return };
        let exits = net.fabric().exits(place);
        for route in self.flows().towards(host) {
            let exit = self.flows().get(route).map(|route| route.exit);
            if exit.is_some_and(|exit| !exits.contains(exit)) {
                self.reroute(net, route, out);
                self.count_bond_move();
            }
        }
    }

    /// Moves routes to a host until the ports have equal numbers of them.
    pub(super) fn balance(&mut self, net: &Network, host: HostIndex, out: &mut Vec<Effect>) {
        let Some(place) = net.hosts().get(host).map(Host::place) else { return };
        let Exits::Of(places) = net.fabric().exits(place) else { return };
        loop {
            let counts = counts(self.flows(), host, &places);
            let most = (0..counts.len()).rev().max_by_key(|&at| counts[at]);
            let least = (0..counts.len()).min_by_key(|&at| counts[at]);
            let (Some(most), Some(least)) = (most, least) else { return };
            if counts[most] <= counts[least] + 1 {
                return;
            }
            let ends_there = |route: &RouteIndex| {
                self.flows().get(*route).is_some_and(|route| route.exit == places[most])
            };
            let Some(route) = self.flows().towards(host).into_iter().find(ends_there) else {
                return;
            };
            if !self.reroute_to(net, route, places[least], out) {
                return;
            }
            self.count_bond_move();
        }
    }
}

/// Returns the number of routes to a host that end at each of these ports.
fn counts(flows: &Flows, destination: HostIndex, places: &[Place]) -> Vec<usize> {
    let mut counts = alloc::vec![0; places.len()];
    for route in flows.towards(destination) {
        let exit = flows.get(route).map(|route| route.exit);
        let place = places.iter().position(|place| Some(*place) == exit);
        if let Some(place) = place {
            counts[place] += 1;
        }
    }
    counts
}
