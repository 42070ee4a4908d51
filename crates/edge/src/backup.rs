//! Backups of an edge, and the links known to be down; see `failover.rs`.

use super::places::Key;
use alloc::collections::BTreeMap;
use axon_wire::message::{LinkEnd, RoutePath};
use axon_wire::{NodeId, Span, Time};

/// Heartbeats for which a link is remembered as down.
const DOWN_HEARTBEATS: u64 = 10;
/// Maximum number of link ends remembered as down. Further ones are ignored until the oldest
/// expire, except links of this switch. This bounds the messages that a neighbour can have flooded.
pub(super) const DOWN_MAX: usize = 2_048;

/// Backups of an edge, and the links that are down.
#[derive(Clone, Debug)]
pub(super) struct Backups {
    /// Maximum number of backups of one port, that of its routes.
    pub(super) per_port_max: usize,
    pub(super) of: BTreeMap<Key, Backup>,
    /// Expiry of each direction of a lost link, by its near end.
    down: BTreeMap<LinkEnd, Time>,
}

/// Backup of one flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Backup {
    /// Route that the backup is for.
    pub(super) primary: RoutePath,
    /// Backup route.
    pub(super) backup: RoutePath,
}

impl Backups {
    /// Creates an empty set with at most `per_port_max` backups for each port.
    pub(super) const fn new(per_port_max: usize) -> Backups {
        Backups { per_port_max, of: BTreeMap::new(), down: BTreeMap::new() }
    }

    /// Returns all backups: the flow, the primary route, the backup route.
    pub(super) fn all(&self) -> impl Iterator<Item = (Key, &RoutePath, &RoutePath)> {
        self.of.iter().map(|(&key, kept)| (key, &kept.primary, &kept.backup))
    }

    /// Removes all backups.
    pub(super) fn clear(&mut self) {
        self.of.clear();
    }

    /// Removes the backup of a flow that is gone.
    pub(super) fn forget(&mut self, key: Key) {
        self.of.remove(&key);
    }

    /// Returns whether a path crosses a link that is down.
    pub(super) fn is_over_down(&self, now: Time, path: &RoutePath) -> bool {
        path.links().any(|end| self.down.get(&end).is_some_and(|&until| now < until))
    }

    /// Returns whether a link has been known as down for less than one heartbeat.
    pub(super) fn knows(&self, now: Time, heartbeat: Span, ends: [LinkEnd; 2]) -> bool {
        let fresh = |kept: &Time| now + down_max(heartbeat) < *kept + heartbeat;
        ends.iter().all(|end| self.down.get(end).is_some_and(fresh))
    }

    /// Remembers a link as down for ten heartbeats. Returns `false` if it has been known for less
    /// than one heartbeat, or cannot be stored. A link of this switch is always stored: if there is
    /// no room, the link that would expire first is evicted.
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

    /// Returns the number of backups.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.of.len()
    }
}

/// Returns how long a link is remembered as down.
pub(super) fn down_max(heartbeat: Span) -> Span {
    heartbeat * DOWN_HEARTBEATS
}
