//! What one switch may make the controller keep.
//!
//! A switch speaks for itself, and its owner can report hosts, routes and ports that do not exist,
//! as fast as its links carry them. So everything that grows with reports is counted for the switch
//! whose reports or requests made it. What exceeds the bound is refused and counted
//! (`over_bound`), and a note names the switch. No other switch has less room for it.
//!
//! The bounds are several times what the largest switch of a fabric needs. All of them together
//! are some 150 MB for one switch.

use super::topology::SwitchIndex;
use alloc::collections::BTreeMap;
use axon_wire::{Span, Time};

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

impl Bounds {
    /// Whether an excess of this switch is to be noted: it was not within the last 10 s.
    pub(super) fn is_news(&mut self, now: Time, switch: SwitchIndex) -> bool {
        let noted = self.noted.get(&switch);
        let is_news = noted.is_none_or(|&at| now.since(at) >= NOTE_PAUSE);
        if is_news {
            self.noted.insert(switch, now);
        }
        is_news
    }
}
