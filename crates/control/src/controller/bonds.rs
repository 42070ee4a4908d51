//! Bonds: several ports of one or two switches that are one place (thesis 000 §3.3.2, IEEE
//! 802.1AX).
//!
//! In plain English: a host at any of the ports is at the bond. All edges advertise one system and
//! the key of the bond, so that the host's end finds one partner at all of its links. What a port
//! receives of its partner is reported. The first partner counts; a port that leads to another one
//! is not selected, and a note says so. Ports that are selected are *joined*.
//!
//! **Distribution.** A route to a host at a bond ends at one of the ports that distribute: at that
//! with the fewest routes to the host, the first of these in the order of the fabric file. So
//! conversations of one port with one host stay on one link and in order, and the links carry
//! equally many routes. A route keeps its port as long as that distributes and can be reached. When
//! a port is lost, its routes move to the others at once. When one comes, as many move to it as
//! make the numbers equal, but only when it has been there for ten heartbeats: edges remember a
//! lost link for that long (`edge/backup.rs`), and a cable that comes and goes moves nothing to and
//! fro.
//!
//! **What the host sends** may come in by any of the ports: each has routes of its own, set up when
//! a frame needs them. The host is not asked whether it is there when a route to it is set up: its
//! answer might come in elsewhere, and LACP says that it is.

use super::Controller;
use super::bond_list::{Bond, Exits, Member};
use super::flows::{Origin, RouteIndex};
use super::hosts::{Host, HostIndex, Learned, Place};
use super::topology::SwitchIndex;
use crate::effect::Effect;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use axon_node::telemetry::BondTelemetry;
use axon_wire::lacp::Partner;
use axon_wire::message::{Item, MemberState};
use axon_wire::{MacAddr, NodeId, PortNo, Time};

impl Controller {
    /// The bonds, as their switches have reported them.
    pub fn bonds_telemetry(&self) -> Vec<BondTelemetry> {
        self.bonds.telemetry()
    }

    /// The bond that a port is joined to.
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

    /// The ports that are one with this one, in the order of their bond; itself alone, if it is not
    /// joined to any.
    pub(super) fn ports_of(&self, place: Place) -> Vec<Place> {
        let Some(bond) = self.bond_at(place) else { return [place].into() };
        let joined = bond.members.iter().filter(|member| bond.is_joined(member));
        joined.filter_map(|member| self.member_place(member)).collect()
    }

    /// Whether two ports are one place.
    pub(super) fn is_one_place(&self, a: Place, b: Place) -> bool {
        a == b || self.bond_at(a).is_some() && self.ports_of(a).contains(&b)
    }

    /// The port that stands for all that are one with this one.
    pub(super) fn home(&self, place: Place) -> Place {
        match self.bond_at(place) {
            Some(_) => self.ports_of(place).first().copied().unwrap_or(place),
            None => place,
        }
    }

    /// Where routes to a host at this port may end.
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

    /// The same in the order in which a route from a port to a host should try them: its own first,
    /// then that with the fewest routes to the host.
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

    /// The routes to a host that end at each of these ports.
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

    /// Another port than `exit` where routes to a host may end; one of another switch, if there is
    /// one.
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

    /// Whether a host's routes can end at more than one port.
    pub(super) fn is_bonded(&self, destination: HostIndex) -> bool {
        let place = self.hosts.get(destination).map(Host::place);
        place.is_some_and(|place| self.bond_at(place).is_some())
    }

    /// Looks which ports of bonds are at switches that the graph leads to, once it has changed.
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

    /// The port of a host; if nothing can leave the fabric there, another one of its bond.
    pub(super) fn reachable_port(&self, host: HostIndex) -> Option<Place> {
        let place = self.hosts.get(host)?.place();
        Some(match self.exits(place) {
            Exits::One(one) => one,
            Exits::Of(places) if places.contains(&place) => place,
            Exits::Of(places) => *places.first()?,
        })
    }

    /// Whether a host whose claim at a port of a bond ends is at the bond still, by another port:
    /// it sends by any, and may have sent by this one alone. Then it is claimed there.
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

    /// Whether one port is none of the bond any more that the other is joined to: its switch has
    /// gone, and a host that was known there has sent by the other one all along.
    pub(super) fn has_left_port(&self, before: Place, at: Place) -> bool {
        let number = |place: Place| {
            let node = self.graph.switch(place.switch).incarnation.node;
            self.bonds.by_port.get(&(node, place.port)).map(|&(bond, _)| bond)
        };
        self.bond_at(at).is_some() && self.bond_at(before).is_none() && number(before) == number(at)
    }

    /// A switch reports one of its ports that belongs to a bond.
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
            // They may have sent by it and be claimed elsewhere.
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

    /// A port is none of its bond any more: its hosts are at another one, or nowhere.
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

    /// The ports of a switch are not what they were: it has a new incarnation.
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

    /// The ports of a bond are others, or other ones distribute.
    fn bond_changed(&mut self, now: Time, bond: usize, out: &mut Vec<Effect>) {
        let before = self.bonds.list[bond].selection;
        let notes = self.bonds.list[bond].choose();
        self.counters.bond_mismatches += notes.len() as u64;
        out.extend(notes.into_iter().map(Effect::Note));
        if self.bonds.list[bond].selection != before {
            // Whoever had the partner before is none any more, and others may be one now.
            let chosen = &self.bonds.list[bond];
            for member in &chosen.members {
                if let Some(partner) = member.partner {
                    self.select(member.at, partner, chosen.is_joined(member), out);
                }
            }
        }
        self.groups.all_changed(now);
        // They end at a port of the bond, and another one may be there now.
        self.backups_changed();
        for host in self.hosts_of(bond) {
            self.move_away(host, out);
        }
    }

    /// The hosts at a bond.
    fn hosts_of(&self, bond: usize) -> Vec<HostIndex> {
        let members = self.bonds.list[bond].members.iter();
        let places = members.filter_map(|member| self.member_place(member));
        let hosts = places.flat_map(|place| self.hosts.hosts_at(place));
        hosts.filter_map(|host| self.hosts.by_mac(host.mac)).collect()
    }

    /// When the next bond is due to have equally many routes at its ports.
    pub(super) fn bonds_deadline(&self) -> Option<Time> {
        self.bonds.list.iter().filter_map(|bond| bond.balance_at).min()
    }

    /// Makes the numbers of routes equal at the ports of bonds that are due.
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

    /// Moves as many routes to a host as make the numbers of routes at the ports equal.
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
