//! Bonds: several ports of one or two switches that act as one location (thesis 000 §3.3.2, IEEE
//! 802.1AX).
//!
//! A host at any of the ports is at the bond. All edges advertise one system and the key of the
//! bond, so that the host finds one partner on all of its links. The edges report the partner that
//! each port receives. The first partner counts; a port with a different one is not selected, and a
//! note reports it. Selected ports are *joined*.
//!
//! **Distribution.** A route to a host at a bond ends at one of the distributing ports: the one
//! with the fewest routes to the host, and of these the first in the fabric file. So traffic from
//! one port to one host stays on one link and in order, and the links carry equal numbers of
//! routes. A route keeps its port as long as that distributes and is reachable. When a port is
//! lost, its routes move to the others at once. When a port is added, routes move to it until the
//! numbers are equal, but only after ten heartbeats: edges remember a lost link for that long
//! (`edge/backup.rs`), and a flapping cable must not move routes to and fro.
//!
//! **Frames from the host** may arrive on any of the ports. Each port has its own routes, set up on
//! demand. A host at a bond is not queried when a route to it is set up: its answer might arrive on
//! another port, and LACP proves its presence.

use super::bond_list::{Bond, Exits, Member};
use super::conductor::Controller;
use super::flows::{Origin, RouteIndex};
use super::hosts::{Host, HostIndex, Learned, Place};
use super::topology::SwitchIndex;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use axon_link::effect::Effect;
use axon_node::telemetry::BondTelemetry;
use axon_wire::lacp::Partner;
use axon_wire::message::{Item, MemberState};
use axon_wire::{MacAddr, NodeId, PortNo, Time};

impl Controller {
    /// Returns the telemetry of all bonds.
    pub fn bonds_telemetry(&self) -> Vec<BondTelemetry> {
        self.bonds.telemetry()
    }

    /// Returns the bond that a port is joined to.
    pub(super) fn bond_at(&self, place: Place) -> Option<&Bond> {
        if self.bonds.list.is_empty() {
            return None;
        }
        self.bonds.joined((self.graph.switch(place.switch).incarnation.node, place.port))
    }

    fn member_place(&self, member: &Member) -> Option<Place> {
        let (node, port) = member.at;
        Some(Place { switch: self.graph.index_of(node)?, port })
    }

    /// Returns the ports of the same bond, in its order; the port alone if it is not joined to one.
    pub(super) fn ports_of(&self, place: Place) -> Vec<Place> {
        let Some(bond) = self.bond_at(place) else { return [place].into() };
        let joined = bond.members.iter().filter(|member| bond.is_joined(member));
        joined.filter_map(|member| self.member_place(member)).collect()
    }

    /// Returns whether two ports are one location.
    pub(super) fn is_one_place(&self, a: Place, b: Place) -> bool {
        a == b || self.bond_at(a).is_some() && self.ports_of(a).contains(&b)
    }

    /// Returns the port that represents the bond of this port.
    pub(super) fn home(&self, place: Place) -> Place {
        match self.bond_at(place) {
            Some(_) => self.ports_of(place).first().copied().unwrap_or(place),
            None => place,
        }
    }

    /// Returns the ports where routes to a host at this port may end.
    pub(super) fn exits(&self, place: Place) -> Exits {
        let Some(bond) = self.bond_at(place) else { return Exits::One(place) };
        let distributes = |member: &&Member| {
            let state = member.state == MemberState::Distributing;
            state && member.reached && bond.is_joined(member)
        };
        let members = bond.members.iter().filter(distributes);
        let places: Vec<Place> = members.filter_map(|member| self.member_place(member)).collect();
        match places[..] {
            [] => Exits::One(place),
            [one] => Exits::One(one),
            _ => Exits::Of(places),
        }
    }

    /// Returns the ports where a route to a host may end, in order of preference: the current port
    /// of the route first, then those with the fewest routes to the host.
    pub(super) fn exits_in_order(&self, from: Origin, destination: HostIndex) -> Option<Exits> {
        let exits = self.exits(self.hosts.get(destination)?.place());
        let Exits::Of(mut places) = exits else { return Some(exits) };
        let own = self.flows.find(from, destination);
        let current = own.and_then(|own| self.flows.get(own)).map(|route| route.exit);
        let counts = self.counts(destination, &places);
        let mut order: Vec<(bool, usize, usize)> = (counts.iter().enumerate())
            .map(|(number, &count)| (Some(places[number]) != current, count, number))
            .collect();
        order.sort_unstable();
        places = order.into_iter().map(|(.., number)| places[number]).collect();
        Some(Exits::Of(places))
    }

    /// Returns the number of routes to a host that end at each of these ports.
    fn counts(&self, destination: HostIndex, places: &[Place]) -> Vec<usize> {
        let mut counts = alloc::vec![0; places.len()];
        for route in self.flows.towards(destination) {
            let exit = self.flows.get(route).map(|route| route.exit);
            let place = places.iter().position(|place| Some(*place) == exit);
            if let Some(place) = place {
                counts[place] += 1;
            }
        }
        counts
    }

    /// Returns a port other than `exit` where routes to a host may end, preferably at another
    /// switch.
    pub(super) fn other_exit(&self, exit: Place, destination: HostIndex) -> Option<Place> {
        match self.exits(self.hosts.get(destination)?.place()) {
            Exits::One(_) => None,
            Exits::Of(places) => {
                let at = places.iter().position(|&place| place == exit)?;
                let others = (1..places.len()).map(|n| places[(at + n) % places.len()]);
                let elsewhere = others.clone().find(|other| other.switch != exit.switch);
                elsewhere.or_else(|| others.clone().next())
            }
        }
    }

    /// Returns whether a host's routes can end at more than one port.
    pub(super) fn is_bonded(&self, destination: HostIndex) -> bool {
        let place = self.hosts.get(destination).map(Host::place);
        place.is_some_and(|place| self.bond_at(place).is_some())
    }

    /// Updates which bond ports are at switches that the graph reaches, after a change of the
    /// graph.
    pub(super) fn see_bonds(&mut self, now: Time, out: &mut Vec<Effect>) {
        if self.bonds.list.is_empty() || self.attachments.is_empty() {
            return;
        }
        let near = self.attachments.values();
        let mut next: Vec<SwitchIndex> =
            near.filter_map(|&(node, _)| self.graph.index_of(node)).collect();
        let mut reached = BTreeSet::new();
        while let Some(at) = next.pop() {
            if reached.insert(at) {
                next.extend(self.graph.edges(at).iter().map(|edge| edge.to));
            }
        }
        for number in 0..self.bonds.list.len() {
            let bond = &mut self.bonds.list[number];
            let mut changed = false;
            for member in &mut bond.members {
                let at = self.graph.index_of(member.at.0);
                let is = at.is_some_and(|at| reached.contains(&at));
                changed |= is != member.reached;
                member.reached = is;
            }
            if changed {
                bond.balance_at = Some(now + self.settle);
                self.bond_changed(now, number, out);
            }
        }
    }

    /// Returns the port of a host, or another port of its bond if frames cannot leave the fabric
    /// there.
    pub(super) fn reachable_port(&self, host: HostIndex) -> Option<Place> {
        let place = self.hosts.get(host)?.place();
        Some(match self.exits(place) {
            Exits::One(one) => one,
            Exits::Of(places) if places.contains(&place) => place,
            Exits::Of(places) => *places.first()?,
        })
    }

    /// Returns whether a host stays at a bond when its claim at one port ends, and claims it at
    /// another port of the bond then. The host may have sent by the one port only.
    pub(super) fn stays_at_bond(&mut self, place: Place, mac: MacAddr) -> bool {
        if self.bonds.list.is_empty() {
            return false;
        }
        let node = self.graph.switch(place.switch).incarnation.node;
        let Some(&(bond, member)) = self.bonds.by_port.get(&(node, place.port)) else {
            return false;
        };
        let bond = &self.bonds.list[bond];
        let was_here = self.hosts.by_mac(mac).and_then(|host| self.hosts.get(host));
        if !bond.members[member].was_joined || was_here.is_none_or(|host| host.place() != place) {
            return false;
        }
        let others = bond.members.iter().filter(|other| {
            other.at != (node, place.port)
                && other.state == MemberState::Distributing
                && bond.is_joined(other)
        });
        let other = others.filter_map(|other| self.member_place(other)).next();
        other.is_some_and(|other| {
            matches!(self.hosts.report(other, mac), Learned::Here(_) | Learned::Moved(_))
        })
    }

    /// Returns whether `before` has left the bond that `at` is joined to, because its switch has
    /// gone. A host known there has moved to another port of its bond.
    pub(super) fn has_left_port(&self, before: Place, at: Place) -> bool {
        let number = |place: Place| {
            let node = self.graph.switch(place.switch).incarnation.node;
            self.bonds.by_port.get(&(node, place.port)).map(|&(bond, _)| bond)
        };
        self.bond_at(at).is_some() && self.bond_at(before).is_none() && number(before) == number(at)
    }

    /// Handles a switch's report about a bond port.
    pub(super) fn bond_member(
        &mut self,
        now: Time,
        at: Place,
        (state, partner, selected): (MemberState, Option<Partner>, bool),
        out: &mut Vec<Effect>,
    ) {
        let node = self.graph.switch(at.switch).incarnation.node;
        let Some(&(bond, member)) = self.bonds.by_port.get(&(node, at.port)) else {
            self.counters.item_misplaced += 1;
            return;
        };
        let joined = self.bond_at(at).is_some();
        let changed = &mut self.bonds.list[bond];
        let before = changed.members[member].state;
        (changed.members[member].state, changed.members[member].partner) = (state, partner);
        if state == MemberState::Distributing && before != state {
            changed.balance_at = Some(now + self.settle);
        }
        if joined && self.bond_at(at).is_none() {
            self.part(now, at, out);
            // The hosts may have sent by this port and be claimed at another.
            for host in self.hosts_of(bond) {
                self.leave_port(host, at, out);
            }
        }
        self.bond_changed(now, bond, out);
        let chosen = &self.bonds.list[bond];
        let wanted = chosen.is_joined(&chosen.members[member]);
        if let Some(partner) = partner.filter(|_| wanted != selected) {
            self.select(chosen.members[member].at, partner, wanted, out);
        }
    }

    /// Removes a port from its bond; its hosts are at another port of the bond, or gone.
    fn part(&mut self, now: Time, at: Place, out: &mut Vec<Effect>) {
        let claims = self.hosts.claimed_by(at.switch).into_iter();
        for (place, mac) in claims.filter(|(place, _)| *place == at) {
            self.withdraw(now, place, mac, out);
        }
    }

    fn select(
        &self,
        (to, port): (NodeId, PortNo),
        partner: Partner,
        selected: bool,
        out: &mut Vec<Effect>,
    ) {
        out.push(Effect::Command { to, item: Item::SelectMember { port, partner, selected } });
    }

    /// Resets the bond ports of a switch with a new incarnation.
    pub(super) fn forget_members(&mut self, now: Time, node: NodeId, out: &mut Vec<Effect>) {
        for bond in 0..self.bonds.list.len() {
            let members = self.bonds.list[bond].members.iter_mut();
            let mut lost = false;
            for member in members.filter(|member| member.at.0 == node) {
                lost |= member.state != MemberState::Down;
                (member.state, member.partner) = (MemberState::Down, None);
            }
            if lost {
                self.bond_changed(now, bond, out);
            }
        }
    }

    /// Handles a change of the ports of a bond, or of which of them distribute.
    fn bond_changed(&mut self, now: Time, bond: usize, out: &mut Vec<Effect>) {
        let before = self.bonds.list[bond].selection;
        let notes = self.bonds.list[bond].choose();
        self.counters.bond_mismatches += notes.len() as u64;
        out.extend(notes.into_iter().map(Effect::Note));
        if self.bonds.list[bond].selection != before {
            // A port with the previous partner has left the bond, and others may have joined.
            let chosen = &self.bonds.list[bond];
            for member in &chosen.members {
                if let Some(partner) = member.partner {
                    self.select(member.at, partner, chosen.is_joined(member), out);
                }
            }
        }
        self.groups.all_changed(now);
        // Backups end at a port of the bond, which may be another one now.
        self.backups_changed();
        for host in self.hosts_of(bond) {
            self.move_away(host, out);
        }
    }

    /// Returns the hosts at a bond.
    fn hosts_of(&self, bond: usize) -> Vec<HostIndex> {
        let members = self.bonds.list[bond].members.iter();
        let places = members.filter_map(|member| self.member_place(member));
        let hosts = places.flat_map(|place| self.hosts.hosts_at(place));
        hosts.filter_map(|host| self.hosts.by_mac(host.mac)).collect()
    }

    /// Returns when the next bond is due for balancing.
    pub(super) fn bonds_deadline(&self) -> Option<Time> {
        self.bonds.list.iter().filter_map(|bond| bond.balance_at).min()
    }

    /// Balances the routes over the ports of bonds that are due.
    pub(super) fn balance_bonds(&mut self, now: Time, out: &mut Vec<Effect>) {
        for bond in 0..self.bonds.list.len() {
            if self.bonds.list[bond].balance_at.is_none_or(|at| at > now) {
                continue;
            }
            self.bonds.list[bond].balance_at = None;
            for host in self.hosts_of(bond) {
                self.balance(host, out);
            }
        }
    }

    /// Moves the routes to a host that end at a port which does not distribute.
    fn move_away(&mut self, host: HostIndex, out: &mut Vec<Effect>) {
        let Some(place) = self.hosts.get(host).map(Host::place) else { return };
        let exits = self.exits(place);
        for route in self.flows.towards(host) {
            let exit = self.flows.get(route).map(|route| route.exit);
            if exit.is_some_and(|exit| !exits.contains(exit)) {
                self.reroute(route, out);
                self.counters.bond_moves += 1;
            }
        }
    }

    /// Moves routes to a host until the ports have equal numbers of them.
    fn balance(&mut self, host: HostIndex, out: &mut Vec<Effect>) {
        let Some(place) = self.hosts.get(host).map(Host::place) else { return };
        let Exits::Of(places) = self.exits(place) else { return };
        loop {
            let counts = self.counts(host, &places);
            let most = (0..counts.len()).rev().max_by_key(|&at| counts[at]);
            let least = (0..counts.len()).min_by_key(|&at| counts[at]);
            let (Some(most), Some(least)) = (most, least) else { return };
            if counts[most] <= counts[least] + 1 {
                return;
            }
            let ends_there = |route: &RouteIndex| {
                self.flows.get(*route).is_some_and(|route| route.exit == places[most])
            };
            let Some(route) = self.flows.towards(host).into_iter().find(ends_there) else { return };
            if !self.reroute_to(route, places[least], out) {
                return;
            }
            self.counters.bond_moves += 1;
        }
    }
}
