//! What becomes of reports and requests of a switch that exceed its bounds.

use super::Controller;
use super::bounds::ROUTES_PER_SWITCH_MAX;
use super::topology::SwitchIndex;
use crate::effect::Effect;
use alloc::vec::Vec;
use axon_node::Note;
use axon_wire::{NodeId, Time};

impl Controller {
    /// Counts what was refused because a switch has as much here as one may, and notes it.
    pub(super) fn over_bound(&mut self, now: Time, switch: SwitchIndex, out: &mut Vec<Effect>) {
        self.counters.over_bound += 1;
        if self.bounds.is_news(now, switch) {
            let node = self.graph.switch(switch).incarnation.node;
            out.push(Effect::Note(Note::SwitchOverBound { node }));
        }
    }

    /// A command was refused: its switch leaves too many unacknowledged.
    pub fn command_refused(&mut self, now: Time, to: NodeId, out: &mut Vec<Effect>) {
        if let Some(switch) = self.graph.index_of(to) {
            self.over_bound(now, switch, out);
        }
    }

    /// Whether a switch may have `more` routes.
    pub(super) fn has_room_for_routes(&self, switch: SwitchIndex, more: usize) -> bool {
        let kept = self.flows.requested_by(switch) + self.take_over.len_of(switch);
        kept + more <= ROUTES_PER_SWITCH_MAX
    }
}
