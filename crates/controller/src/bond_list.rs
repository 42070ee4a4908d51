//! Bonds of a controller: reported state of their ports, and the partner of each.

use super::hosts::Place;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use axon_link::lacp::Selection;
use axon_node::Note;
use axon_node::telemetry::{BondTelemetry, MemberTelemetry};
use axon_wire::lacp::Partner;
use axon_wire::message::MemberState;
use axon_wire::{NodeId, PortNo, Time};

/// All bonds.
#[derive(Clone, Debug, Default)]
pub(super) struct Bonds {
    pub(super) list: Vec<Bond>,
    /// Bond index and member index of each port.
    pub(super) by_port: BTreeMap<(NodeId, PortNo), (usize, usize)>,
}

#[derive(Clone, Debug)]
pub(super) struct Bond {
    name: alloc::string::String,
    pub(super) selection: Selection,
    pub(super) members: Vec<Member>,
    /// Time to balance the routes over the ports, after a port was added.
    pub(super) balance_at: Option<Time>,
}

/// A bond port, as last reported by its switch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    pub(super) at: (NodeId, PortNo),
    pub(super) state: MemberState,
    pub(super) partner: Option<Partner>,
    /// True if a note about a different partner was sent.
    refused: bool,
    /// True if the port is joined, or was until it lost its carrier.
    pub(super) was_joined: bool,
    /// True if the graph has a path from the controller to the switch. If not, the state is
    /// outdated.
    pub(super) reached: bool,
}

impl Bonds {
    pub(super) fn new(configured: &[crate::config::BondConfig]) -> Bonds {
        let mut bonds = Bonds::default();
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

    /// Returns the bond that a port is joined to.
    pub(super) fn joined(&self, at: (NodeId, PortNo)) -> Option<&Bond> {
        let &(bond, member) = self.by_port.get(&at)?;
        let bond = self.list.get(bond)?;
        bond.is_joined(&bond.members[member]).then_some(bond)
    }

    /// Returns the configured ports of this port's bond; the port alone if it has none.
    pub(super) fn ports_with(&self, at: (NodeId, PortNo)) -> Vec<(NodeId, PortNo)> {
        let bond = self.by_port.get(&at).and_then(|&(bond, _)| self.list.get(bond));
        bond.map_or_else(
            || [at].into(),
            |bond| bond.members.iter().map(|member| member.at).collect(),
        )
    }

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
    pub(super) fn is_joined(&self, member: &Member) -> bool {
        self.selection.takes(member.partner)
    }

    fn is_refused(&self, member: &Member) -> bool {
        member.partner.is_some() && !self.is_joined(member)
    }

    /// Chooses the partner again. Returns a note for the first member of each other partner that
    /// has none yet.
    pub(super) fn choose(&mut self) -> Vec<Note> {
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

/// Ports where routes to a host may end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Exits {
    /// The host's port.
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
