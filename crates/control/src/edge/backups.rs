//! The backups that an edge has, and the links that are known to be down.

use super::places::Key;
use alloc::collections::BTreeMap;
use axon_wire::message::{LinkEnd, RoutePath};
use axon_wire::{NodeId, Span, Time};

/// For how many heartbeats a link is remembered as down.
const DOWN_HEARTBEATS: u64 = 10;
/// Ends of links that are remembered; news of further ones is ignored until the oldest are
/// forgotten, but for links of this switch. This bounds what a neighbour can have flooded.
pub(super) const DOWN_MAX: usize = 2_048;

/// The backups of an edge, and the links that are down.
#[derive(Clone, Debug)]
pub(super) struct Backups {
    /// Backups of one port. There is no use for more than there are routes.
    pub(super) per_port_max: usize,
    pub(super) of: BTreeMap<Key, Backup>,
    /// By the end that a direction starts from: until when it is remembered as down.
    down: BTreeMap<LinkEnd, Time>,
}

/// The backup of one flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Backup {
    /// The route that it is for.
    pub(super) primary: RoutePath,
    /// The backup itself.
    pub(super) backup: RoutePath,
}

impl Backups {
    /// None, and at most so many for each port.
    pub(super) const fn new(per_port_max: usize) -> Backups {
        Backups { per_port_max, of: BTreeMap::new(), down: BTreeMap::new() }
    }

    /// None any more.
    pub(super) fn clear(&mut self) {
        self.of.clear();
    }

    /// The flow is gone, and its backup with it.
    pub(super) fn forget(&mut self, key: Key) {
        self.of.remove(&key);
    }

    /// Whether a path is over a link that is down.
    pub(super) fn is_over_down(&self, now: Time, path: &RoutePath) -> bool {
        path.links().any(|end| self.down.get(&end).is_some_and(|&until| now < until))
    }

    /// Whether a link is known as down for less than one heartbeat.
    pub(super) fn knows(&self, now: Time, heartbeat: Span, ends: [LinkEnd; 2]) -> bool {
        let fresh = |kept: &Time| now + down_max(heartbeat) < *kept + heartbeat;
        ends.iter().all(|end| self.down.get(end).is_some_and(fresh))
    }

    /// Remembers a link as down for ten heartbeats; `false` if that is known for less than one
    /// heartbeat, or cannot be remembered. A link of this switch always can: if there is no room,
    /// the link that would be forgotten first makes it.
    pub(super) fn mark(
        &mut self,
        now: Time,
        heartbeat: Span,
        ends: [LinkEnd; 2],
        here: NodeId,
    ) -> bool {
        let until = now + down_max(heartbeat);
        self.down.retain(|_, until| now < *until);
        if self.knows(now, heartbeat, ends) {
            return false;
        }
        let more = ends.iter().filter(|end| !self.down.contains_key(end)).count();
        while self.down.len() + more > DOWN_MAX {
            let is_of_others = |end: &LinkEnd| end.node != here;
            let others = self.down.iter().filter(|(end, _)| is_of_others(end));
            let oldest = others.min_by_key(|(_, until)| **until).map(|(end, _)| *end);
            match oldest {
                Some(oldest) if !ends.iter().all(is_of_others) => self.down.remove(&oldest),
                _ => return false,
            };
        }
        self.down.extend(ends.map(|end| (end, until)));
        true
    }

    /// How many there are.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.of.len()
    }
}

/// For how long a link is remembered as down.
pub(super) fn down_max(heartbeat: Span) -> Span {
    heartbeat * DOWN_HEARTBEATS
}
