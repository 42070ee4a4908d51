//! What one switch may make the controller keep.
//!
//! A switch speaks for itself, and its owner can report hosts, routes and ports that do not exist,
//! as fast as its links carry them. So everything that grows with reports is counted for the switch
//! whose reports or requests made it. What exceeds the bound is refused and counted
//! (`over_bound`), and a note names the switch. No other switch has less room for it.
//!
//! The bounds are several times what the largest switch of a fabric needs. All of them together
//! are some 150 MB for one switch.

use super::Controller;
use super::topology::SwitchIndex;
use crate::effect::Effect;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use axon_node::Note;
use axon_wire::{NodeId, Span, Time};

/// Claims of hosts by one switch: 256 ports with 64 hosts each.
pub const HOSTS_PER_SWITCH_MAX: usize = 1 << 14;
/// Routes that the requests of one switch have made, and those of an earlier incarnation of the
/// controller that it has reported: as many as 64 hosts have at each of 32 ports that each exchange
/// frames with 32 others, in both directions.
pub const ROUTES_PER_SWITCH_MAX: usize = 1 << 17;
/// Commands to one switch that it has not acknowledged: twice its routes, so that all of them can
/// be decided about at once.
pub const COMMANDS_PER_SWITCH_MAX: usize = 2 * ROUTES_PER_SWITCH_MAX;

/// The shortest time between two notes about one switch.
const NOTE_PAUSE: Span = Span::from_secs(10);

/// When each switch that exceeded a bound was last noted.
#[derive(Debug, Default)]
pub(super) struct Bounds {
    noted: BTreeMap<SwitchIndex, Time>,
}

impl Controller {
    /// Counts what was refused because a switch has as much here as one may, and notes it.
    pub(super) fn over_bound(&mut self, now: Time, switch: SwitchIndex, out: &mut Vec<Effect>) {
        self.counters.over_bound += 1;
        let noted = self.bounds.noted.get(&switch);
        if noted.is_none_or(|&at| now.since(at) >= NOTE_PAUSE) {
            self.bounds.noted.insert(switch, now);
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
