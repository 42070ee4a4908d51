//! Bonds: several ports of one or two switches that act as one location (thesis 000 §3.3.2, IEEE
//! 802.1AX).
//!
//! A host at any of these ports is located at the bond. All edges advertise one system and the key
//! of the bond, so that the host sees the same partner on all of its links. The edges report the
//! partner received on each port. The first partner counts. A port with a different partner is not
//! selected, and a note is logged. Selected ports are *joined*.
//!
//! **Distribution.** A route to a host at a bond ends at one of the distributing ports. The port
//! with the fewest routes to the host is chosen, and among equals the first one in the fabric file.
//! So traffic from one port to one host stays on one link and in order, and the links carry equal
//! numbers of routes. A route keeps its port while that port distributes and is reachable. When a
//! port is lost, its routes move to the others at once. When a port is added, routes move to it
//! until the numbers are equal, but only after ten heartbeats. Edges remember a lost link for that
//! long (`edge/failover.rs`), and a flapping cable must not move routes back and forth.
//!
//! **Frames from the host** may arrive on any of the ports. Each port has its own routes, set up on
//! demand. A host at a bond is not queried when a route to it is set up, because its answer might
//! arrive on another port, and LACP already proves that it is present.

use super::hosts::Place;
use crate::effect::Effect;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use axon_link::lacp::Selection;
use axon_node::Note;
use axon_node::telemetry::{BondTelemetry, MemberTelemetry};
use axon_wire::lacp::Partner;
use axon_wire::message::{Item, MemberState};
use axon_wire::{NodeId, PortNo, Span, Time};

/// All bonds.
#[derive(Clone, Debug, Default)]
pub(super) struct Bonds {
    list: Vec<Bond>,
    /// Bond index and member index of each port.
    by_port: BTreeMap<(NodeId, PortNo), (usize, usize)>,
    /// Time without a change before routes are balanced.
    settle: Span,
    /// Number of notes logged about ports with a different partner.
    mismatches: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Bond {
    name: alloc::string::String,
    selection: Selection,
    members: Vec<Member>,
    /// Time at which the routes are to be balanced over the ports, after a port was added.
    balance_at: Option<Time>,
}

/// Bond port, as last reported by its switch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    at: (NodeId, PortNo),
    state: MemberState,
    partner: Option<Partner>,
    /// True if a note about a different partner has been logged.
    refused: bool,
    /// True if the port is joined, or was joined until it lost its carrier.
    was_joined: bool,
    /// True if the graph has a path from the controller to the switch. If not, the recorded state
    /// is outdated.
    reached: bool,
}

impl Bonds {
    /// Creates the configured bonds. Their routes are balanced when `settle` has passed after a
    /// port was added.
    pub(super) fn new(configured: &[crate::config::BondConfig], settle: Span) -> Bonds {
        let mut bonds = Bonds { settle, ..Bonds::default() };
        for (number, bond) in configured.iter().enumerate() {
            let ports = bond.members.iter().enumerate();
            bonds.by_port.extend(ports.map(|(member, &at)| (at, (number, member))));
            let member = |&at| Member {
                at,
                state: MemberState::Down,
                partner: None,
                refused: false,
                was_joined: false,
                reached: true,
            };
            bonds.list.push(Bond {
                name: bond.name.clone(),
                selection: Selection::default(),
                members: bond.members.iter().map(member).collect(),
                balance_at: None,
            });
        }
        bonds
    }

    /// Returns the bond to which a port is joined.
    pub(super) fn joined(&self, at: (NodeId, PortNo)) -> Option<&Bond> {
        let &(bond, member) = self.by_port.get(&at)?;
        let bond = self.list.get(bond)?;
        bond.is_joined(&bond.members[member]).then_some(bond)
    }

    /// Returns the configured ports of this port's bond, or only the port itself if it is in no
    /// bond.
    pub(super) fn ports_with(&self, at: (NodeId, PortNo)) -> Vec<(NodeId, PortNo)> {
        let bond = self.by_port.get(&at).and_then(|&(bond, _)| self.list.get(bond));
        bond.map_or_else(
            || [at].into(),
            |bond| bond.members.iter().map(|member| member.at).collect(),
        )
    }

    /// Returns whether there are no bonds.
    pub(super) const fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns the number of bonds.
    pub(super) const fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns the number of notes logged about ports with a different partner.
    pub(super) const fn mismatches(&self) -> u64 {
        self.mismatches
    }

    /// Returns the index of the bond that is configured for a port, and the index of the port in
    /// that bond.
    pub(super) fn slot(&self, at: (NodeId, PortNo)) -> Option<(usize, usize)> {
        self.by_port.get(&at).copied()
    }

    /// Returns the configured ports of a bond.
    pub(super) fn ports(&self, bond: usize) -> impl Iterator<Item = (NodeId, PortNo)> {
        self.list[bond].members.iter().map(|member| member.at)
    }

    /// Returns the other distributing ports of the bond to which a port is joined, or was joined
    /// until it lost its carrier.
    pub(super) fn others(&self, at: (NodeId, PortNo)) -> impl Iterator<Item = (NodeId, PortNo)> {
        let slot = self.slot(at).map(|(bond, member)| (&self.list[bond], member));
        let of = slot.filter(|(bond, member)| bond.members[*member].was_joined);
        let joined = of.into_iter().flat_map(|(bond, _)| bond.joined());
        let distributing = joined.filter(|member| member.state == MemberState::Distributing);
        distributing.map(|member| member.at).filter(move |other| *other != at)
    }

    /// Records which ports of a bond are at switches that are reachable in the graph. Returns
    /// whether that has changed.
    pub(super) fn reach(
        &mut self,
        now: Time,
        bond: usize,
        is_reached: impl Fn(NodeId) -> bool,
    ) -> bool {
        let bond = &mut self.list[bond];
        let mut changed = false;
        for member in &mut bond.members {
            let is = is_reached(member.at.0);
            changed |= is != member.reached;
            member.reached = is;
        }
        if changed {
            bond.balance_at = Some(now + self.settle);
        }
        changed
    }

    /// Records a switch's report about the port at `slot`.
    pub(super) fn report(
        &mut self,
        now: Time,
        (bond, member): (usize, usize),
        (state, partner): (MemberState, Option<Partner>),
    ) {
        let changed = &mut self.list[bond];
        let before = changed.members[member].state;
        (changed.members[member].state, changed.members[member].partner) = (state, partner);
        if state == MemberState::Distributing && before != state {
            changed.balance_at = Some(now + self.settle);
        }
    }

    /// Resets the ports of a bond at a switch that has a new incarnation. Returns whether any of
    /// these ports had a carrier.
    pub(super) fn reset(&mut self, bond: usize, node: NodeId) -> bool {
        let mut lost = false;
        for member in self.list[bond].members.iter_mut().filter(|member| member.at.0 == node) {
            lost |= member.state != MemberState::Down;
            (member.state, member.partner) = (MemberState::Down, None);
        }
        lost
    }

    /// Chooses the partner of a bond again. Logs a note about different partners, and requests a
    /// new selection of the ports if the partner has changed.
    pub(super) fn choose(&mut self, bond: usize, out: &mut Vec<Effect>) {
        let bond = &mut self.list[bond];
        let before = bond.selection;
        let notes = bond.choose();
        self.mismatches += notes.len() as u64;
        out.extend(notes.into_iter().map(Effect::Note));
        if bond.selection != before {
            // A port with the previous partner has left the bond, and others may have joined.
            out.extend(bond.members.iter().filter_map(|member| bond.select(member)));
        }
    }

    /// Requests the selection of the port at `slot` that its bond needs, if the port does not have
    /// it already (`selected`).
    pub(super) fn select(
        &self,
        (bond, member): (usize, usize),
        selected: bool,
        out: &mut Vec<Effect>,
    ) {
        let bond = &self.list[bond];
        let member = &bond.members[member];
        if bond.is_joined(member) != selected {
            out.extend(bond.select(member));
        }
    }

    /// Returns when a bond is next due for balancing.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.list.iter().filter_map(|bond| bond.balance_at).min()
    }

    /// Returns whether the routes over the ports of a bond are due for balancing, and clears the
    /// due time.
    pub(super) fn take_due(&mut self, now: Time, bond: usize) -> bool {
        self.list[bond].balance_at.take_if(|at| *at <= now).is_some()
    }

    /// Returns the state of all bonds.
    pub(super) fn telemetry(&self) -> Vec<BondTelemetry> {
        let member = |bond: &Bond, member: &Member| MemberTelemetry {
            switch: member.at.0,
            port: member.at.1,
            state: member.state,
            partner: member.partner.map(Into::into),
            mismatch: bond.is_refused(member),
        };
        let bond = |bond: &Bond| BondTelemetry {
            name: bond.name.clone(),
            partner: bond.selection.partner().map(Into::into),
            members: bond.members.iter().map(|one| member(bond, one)).collect(),
        };
        self.list.iter().map(bond).collect()
    }
}

impl Bond {
    /// Returns the joined ports, in order of preference.
    pub(super) fn joined(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| self.is_joined(member))
    }

    /// Returns the command that selects a port, or ends its selection.
    fn select(&self, member: &Member) -> Option<Effect> {
        let ((to, port), selected) = (member.at, self.is_joined(member));
        let partner = member.partner?;
        Some(Effect::Command { to, item: Item::SelectMember { port, partner, selected } })
    }

    fn is_joined(&self, member: &Member) -> bool {
        self.selection.takes(member.partner)
    }

    fn is_refused(&self, member: &Member) -> bool {
        member.partner.is_some() && !self.is_joined(member)
    }

    /// Chooses the partner again. Returns a note for the first member of each different partner, if
    /// it has not been noted yet.
    fn choose(&mut self) -> Vec<Note> {
        let Bond { selection, members, .. } = self;
        selection.choose(
            members.iter().map(|member| (member.partner, member.state >= MemberState::Collecting)),
        );
        let first = members.iter().find(|member| selection.takes(member.partner)).copied();
        let mut notes = Vec::new();
        for member in members {
            let refused = member.partner.is_some() && !selection.takes(member.partner);
            if refused
                && !member.refused
                && let (Some(first), Some(partner)) = (first, member.partner)
                && let Some(expected) = first.partner
            {
                let end = |(node, port), partner| (node, port, partner);
                let ends = [end(member.at, partner), end(first.at, expected)];
                notes.push(Note::BondMismatch(ends));
            }
            member.refused = refused;
            let is_other = refused || member.state == MemberState::Individual;
            member.was_joined = selection.takes(member.partner) || member.was_joined && !is_other;
        }
        notes
    }
}

impl Member {
    /// Returns the switch and the port.
    pub(super) const fn at(&self) -> (NodeId, PortNo) {
        self.at
    }

    /// Returns whether frames leave the fabric by this port, if it is joined.
    pub(super) fn distributes(&self) -> bool {
        self.state == MemberState::Distributing && self.reached
    }
}

/// Ports where routes to a host may end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Exits {
    /// Port of the host.
    One(Place),
    /// One of several ports.
    Of(Vec<Place>),
}

impl Exits {
    pub(super) fn contains(&self, place: Place) -> bool {
        match self {
            Exits::One(one) => *one == place,
            Exits::Of(places) => places.contains(&place),
        }
    }
}
