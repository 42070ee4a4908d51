//! The bonds of a controller: their ports as switches have reported them, and the partner of each.

use super::hosts::Place;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use axon_lacp::Selection;
use axon_node::Note;
use axon_node::telemetry::{BondTelemetry, MemberTelemetry};
use axon_wire::lacp::Partner;
use axon_wire::message::MemberState;
use axon_wire::{NodeId, PortNo, Time};

/// All bonds.
#[derive(Clone, Debug, Default)]
pub(super) struct Bonds {
    pub(super) list: Vec<Bond>,
    /// The bond and the number of the member at a port.
    pub(super) by_port: BTreeMap<(NodeId, PortNo), (usize, usize)>,
}

#[derive(Clone, Debug)]
pub(super) struct Bond {
    name: alloc::string::String,
    pub(super) selection: Selection,
    pub(super) members: Vec<Member>,
    /// When the numbers of routes at its ports are made equal: a port has come.
    pub(super) balance_at: Option<Time>,
}

/// A port of a bond, as its switch has reported it last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    pub(super) at: (NodeId, PortNo),
    pub(super) state: MemberState,
    pub(super) partner: Option<Partner>,
    /// A note says that its partner is another one.
    refused: bool,
    /// It is joined, or was until it lost its carrier.
    pub(super) was_joined: bool,
    /// Whether the graph leads from the controller to its switch. Of one that is cut off the state
    /// is an old one.
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

    /// The bond that a port is joined to.
    pub(super) fn joined(&self, at: (NodeId, PortNo)) -> Option<&Bond> {
        let &(bond, member) = self.by_port.get(&at)?;
        let bond = self.list.get(bond)?;
        bond.is_joined(&bond.members[member]).then_some(bond)
    }

    /// The ports that the file makes one bond with this one; itself, if none.
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

    /// Chooses the partner anew; returns the note of the first member with another one that has
    /// none yet, for each.
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

/// Where routes to a host may end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Exits {
    /// At its port.
    One(Place),
    /// At one of several.
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
