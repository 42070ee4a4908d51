//! Handling of reports and requests that exceed the bounds of their switch or port.

use super::bounds::{
    INHERITED_PER_SWITCH_MAX, ROUTES_PER_PORT_AND_PEER_MAX, ROUTES_PER_PORT_MAX,
    ROUTES_PER_SWITCH_AND_PEER_MAX, ROUTES_PER_SWITCH_MAX, Scope,
};
use super::conductor::Controller;
use super::hosts::Place;
use super::topology::SwitchIndex;
use alloc::vec::Vec;
use axon_link::effect::Effect;
use axon_node::Note;
use axon_wire::{NodeId, PortNo, Time};

/// Switch whose bound, or whose port's bound, would be exceeded.
pub(super) type Excess = (SwitchIndex, Option<PortNo>);

impl Controller {
    /// Counts and notes a refusal because a switch or a port is at its bound.
    pub(super) fn over_bound(&mut self, now: Time, excess: Excess, out: &mut Vec<Effect>) {
        self.counters.over_bound += 1;
        self.note_excess(now, excess, out);
    }

    /// Notes a switch or a port that is at its bound.
    pub(super) fn note_excess(&mut self, now: Time, (switch, port): Excess, out: &mut Vec<Effect>) {
        let scope = if port.is_some() { Scope::Port } else { Scope::Switch };
        if self.bounds.is_news(now, switch, scope) {
            let node = self.net.fabric().node(switch);
            out.push(Effect::Note(Note::SwitchOverBound { node, port }));
        }
    }

    /// Handles the refusal of a host because its port, or the switch, is at its bound of claims.
    pub(super) fn too_many_hosts(&mut self, now: Time, at: Place, out: &mut Vec<Effect>) {
        let port = self.net.hosts().is_port_full(at).then_some(at.port);
        self.over_bound(now, (at.switch, port), out);
    }

    /// Handles a refused host query: its switch leaves too many commands unacknowledged.
    pub fn query_refused(&mut self, now: Time, to: NodeId, out: &mut Vec<Effect>) {
        if let Some(switch) = self.net.graph().index_of(to) {
            self.over_bound(now, (switch, None), out);
        }
    }

    /// Records whether a switch leaves [`COMMANDS_PER_SWITCH_MAX`] commands or more unacknowledged.
    /// Meanwhile no route is made at it.
    ///
    /// [`COMMANDS_PER_SWITCH_MAX`]: super::bounds::COMMANDS_PER_SWITCH_MAX
    pub fn backlog(&mut self, of: NodeId, is_full: bool) {
        if let Some(switch) = self.net.graph().index_of(of) {
            match is_full {
                true => self.bounds.backlogged.insert(switch),
                false => self.bounds.backlogged.remove(&switch),
            };
        }
    }

    /// Returns the bound that a request from `by`, for a host at switch `other`, would exceed by
    /// making routes at these ports. Both routes count for the requesting port. If too many routes
    /// are between the two, either end may be the cause: the second excess names the other end.
    pub(super) fn excess_of(
        &self,
        by: Place,
        other: SwitchIndex,
        made_at: &[Place],
    ) -> Option<(Excess, Option<Excess>)> {
        if made_at.is_empty() {
            return None;
        }
        let (of_port, of_switch) = self.flows.requested_with(by, other);
        let (port, switch) = ((by.switch, Some(by.port)), (by.switch, None));
        if of_port + made_at.len() > ROUTES_PER_PORT_AND_PEER_MAX && other != by.switch {
            return Some((port, Some((other, None))));
        }
        if of_switch + made_at.len() > ROUTES_PER_SWITCH_AND_PEER_MAX && other != by.switch {
            return Some((switch, Some((other, None))));
        }
        if self.flows.requested_at(by) + made_at.len() > ROUTES_PER_PORT_MAX {
            return Some((port, None));
        }
        if self.flows.requested_by(by.switch) + made_at.len() > ROUTES_PER_SWITCH_MAX {
            return Some((switch, None));
        }
        let backlogged = &self.bounds.backlogged;
        let mut switches = made_at.iter().map(|at| at.switch);
        let full = switches.find(|at| !backlogged.is_empty() && backlogged.contains(at))?;
        Some(((full, None), None))
    }

    /// Returns whether one more inherited route of a switch may wait for a decision.
    pub(super) fn has_room_for_inherited(&self, switch: SwitchIndex) -> bool {
        let kept = self.flows.inherited_by(switch) + self.take_over.len_of(switch);
        kept < INHERITED_PER_SWITCH_MAX && !self.bounds.backlogged.contains(&switch)
    }
}
