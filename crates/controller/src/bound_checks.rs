//! Refuses reports and requests that exceed the bounds of their switch or port, see `bounds`.

use super::bounds::{
    INHERITED_PER_SWITCH_MAX, ROUTES_PER_PORT_AND_PEER_MAX, ROUTES_PER_PORT_MAX,
    ROUTES_PER_SWITCH_AND_PEER_MAX, ROUTES_PER_SWITCH_MAX,
};
use super::fabric::Fabric;
use super::flows::{Account, Flows};
use super::hosts::Place;
use super::network::Network;
use super::topology::SwitchIndex;
use crate::effect::Effect;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use axon_node::Note;
use axon_wire::{PortNo, Span, Time};

/// Switch whose bound would be exceeded, or the port in it whose bound would be.
pub(super) type Excess = (SwitchIndex, Option<PortNo>);

/// Minimum time between two notes about one switch, and between two notes about its ports.
const NOTE_PAUSE: Span = Span::from_secs(10);

/// Subject to which a bound applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scope {
    /// A whole switch.
    Switch,
    /// A port of the switch.
    Port,
    /// The hosts that the policy admits at a port.
    Admission,
}

/// Switches that exceed bounds, and counts of refusals.
#[derive(Clone, Debug, Default)]
pub(super) struct Bounds {
    /// Time of the last note, by switch and scope.
    noted: BTreeMap<(SwitchIndex, Scope), Time>,
    /// Switches that leave too many commands unacknowledged.
    backlogged: BTreeSet<SwitchIndex>,
    /// Number of refusals because a switch or port is at its bound.
    refused: u64,
    /// Number of hosts that the policy has refused at their port.
    misplaced: u64,
}

impl Bounds {
    /// Returns whether a note about an excess at this switch, or at any of its ports, is due. It is
    /// due if there was none within the last 10 s.
    pub(super) fn is_news(&mut self, now: Time, switch: SwitchIndex, scope: Scope) -> bool {
        let noted = self.noted.get(&(switch, scope));
        let is_news = noted.is_none_or(|&at| now.since(at) >= NOTE_PAUSE);
        if is_news {
            self.noted.insert((switch, scope), now);
        }
        is_news
    }

    /// Returns the number of refusals because a switch or port is at its bound.
    pub(super) const fn refused(&self) -> u64 {
        self.refused
    }

    /// Counts a host that the policy has refused at its port.
    pub(super) const fn count_misplaced(&mut self) {
        self.misplaced += 1;
    }

    /// Returns the number of hosts that the policy has refused at their port.
    pub(super) const fn misplaced(&self) -> u64 {
        self.misplaced
    }

    /// Counts a refusal because a switch or port is at its bound, and logs a note about it.
    pub(super) fn refuse(
        &mut self,
        now: Time,
        fabric: &Fabric,
        excess: Excess,
        out: &mut Vec<Effect>,
    ) {
        self.refused += 1;
        self.note(now, fabric, excess, out);
    }

    /// Handles the refusal of a host because its port or switch holds the maximum number of claims.
    pub(super) fn too_many_hosts(
        &mut self,
        now: Time,
        net: &Network,
        at: Place,
        out: &mut Vec<Effect>,
    ) {
        let port = net.hosts().is_port_full(at).then_some(at.port);
        self.refuse(now, net.fabric(), (at.switch, port), out);
    }

    /// Logs a note about a switch or port that is at its bound.
    pub(super) fn note(
        &mut self,
        now: Time,
        fabric: &Fabric,
        (switch, port): Excess,
        out: &mut Vec<Effect>,
    ) {
        let scope = if port.is_some() { Scope::Port } else { Scope::Switch };
        if self.is_news(now, switch, scope) {
            let node = fabric.node(switch);
            out.push(Effect::Note(Note::SwitchOverBound { node, port }));
        }
    }

    /// Records whether a switch leaves too many commands unacknowledged.
    pub(super) fn backlog(&mut self, switch: SwitchIndex, is_full: bool) {
        match is_full {
            true => self.backlogged.insert(switch),
            false => self.backlogged.remove(&switch),
        };
    }

    /// Returns the bound that a request from `by`, for a host at switch `other`, would exceed by
    /// making routes at these ports. Both routes are charged to the requesting port. If there are
    /// too many routes between the two ends, either end may be the cause, so the second excess
    /// names the other end.
    pub(super) fn excess_of(
        &self,
        flows: &Flows,
        by: Place,
        other: SwitchIndex,
        made_at: &[Place],
    ) -> Option<(Excess, Option<Excess>)> {
        if made_at.is_empty() {
            return None;
        }
        let (of_port, of_switch) = flows.requested_with(by, other);
        let (port, switch) = ((by.switch, Some(by.port)), (by.switch, None));
        if of_port + made_at.len() > ROUTES_PER_PORT_AND_PEER_MAX && other != by.switch {
            return Some((port, Some((other, None))));
        }
        if of_switch + made_at.len() > ROUTES_PER_SWITCH_AND_PEER_MAX && other != by.switch {
            return Some((switch, Some((other, None))));
        }
        if flows.requested_at(by) + made_at.len() > ROUTES_PER_PORT_MAX {
            return Some((port, None));
        }
        if flows.requested_by(by.switch) + made_at.len() > ROUTES_PER_SWITCH_MAX {
            return Some((switch, None));
        }
        let backlogged = &self.backlogged;
        let mut switches = made_at.iter().map(|at| at.switch);
        let full = switches.find(|at| !backlogged.is_empty() && backlogged.contains(at))?;
        Some(((full, None), None))
    }

    /// Returns whether one more route at a port fits in the bounds of this account. `waiting` is
    /// the number of the switch's inherited routes that wait for a decision.
    pub(super) fn has_room(
        &self,
        flows: &Flows,
        waiting: impl Fn(SwitchIndex) -> usize,
        at: Place,
        account: Account,
    ) -> bool {
        match account {
            Account::Requested(by, other) => self.excess_of(flows, by, other, &[at]).is_none(),
            Account::Inherited(Place { switch, .. }) => {
                self.has_room_for_inherited(flows, waiting(switch), switch)
            }
        }
    }

    /// Returns whether one more inherited route of a switch may wait for a decision. `waiting` is
    /// the number that wait already.
    pub(super) fn has_room_for_inherited(
        &self,
        flows: &Flows,
        waiting: usize,
        switch: SwitchIndex,
    ) -> bool {
        let kept = flows.inherited_by(switch) + waiting;
        kept < INHERITED_PER_SWITCH_MAX && !self.backlogged.contains(&switch)
    }
}
