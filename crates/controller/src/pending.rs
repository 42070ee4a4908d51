//! Routes of an earlier incarnation of the controller that wait for a decision, and the times of
//! the next checks. `takeover.rs` decides.

use super::hosts::Place;
use super::topology::SwitchIndex;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use axon_link::config::Timers;
use axon_node::RouteKey;
use axon_wire::{MacAddr, PortNo, Route, Span, Time};

/// Routes that wait for a decision.
#[derive(Clone, Debug)]
pub(super) struct TakeOver {
    /// Waiting routes by switch, then by host port and key. The key has no VLAN here.
    pub(super) pending: BTreeMap<SwitchIndex, Waiting>,
    pub(super) heartbeat: Span,
    /// Maximum time that a route waits.
    pub(super) patience: Span,
    /// Time when the first of the waiting routes was added.
    pub(super) began: Time,
    pub(super) looked: Time,
    /// Until when the graph may be incomplete.
    pub(super) quiet: Time,
    pub(super) next: Option<Time>,
    /// Links lost since the last check.
    pub(super) lost: BTreeSet<(SwitchIndex, PortNo)>,
}

/// Waiting routes of one switch.
pub(super) type Waiting = BTreeMap<(PortNo, RouteKey), Pending>;

/// A waiting route.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub(super) route: Route,
    pub(super) until: Time,
}

impl TakeOver {
    /// Creates the state without waiting routes.
    pub(super) const fn new(timers: &Timers) -> TakeOver {
        TakeOver {
            pending: BTreeMap::new(),
            heartbeat: timers.heartbeat,
            patience: timers.decision_max(),
            began: Time::ZERO,
            looked: Time::ZERO,
            quiet: Time::ZERO,
            next: None,
            lost: BTreeSet::new(),
        }
    }

    /// Returns the number of waiting routes.
    pub(super) fn len(&self) -> usize {
        self.pending.values().map(Waiting::len).sum()
    }

    /// Returns the number of waiting routes of a switch.
    pub(super) fn len_of(&self, switch: SwitchIndex) -> usize {
        self.pending.get(&switch).map_or(0, Waiting::len)
    }

    /// Returns a waiting route.
    pub(super) fn get(&self, at: Place, key: RouteKey) -> Option<&Pending> {
        self.pending.get(&at.switch)?.get(&(at.port, key))
    }

    /// Returns the waiting routes to a host, with their ports.
    pub(super) fn waiting_for(&self, destination: MacAddr) -> Vec<(Place, RouteKey)> {
        let of = |(&switch, waiting): (&SwitchIndex, &'_ Waiting)| {
            let to = waiting.keys().filter(|(_, key)| key.destination == destination);
            to.map(|&(port, key)| (Place { switch, port }, key)).collect::<Vec<_>>()
        };
        self.pending.iter().flat_map(of).collect()
    }

    /// Returns the waiting routes of a port, by destination.
    pub(super) fn waiting_at(&self, at: Place) -> Vec<(Place, RouteKey)> {
        let last = RouteKey::to(MacAddr::BROADCAST).from_source(Some(MacAddr::BROADCAST));
        let range = (at.port, RouteKey::default())..=(at.port, last);
        let waiting = self.pending.get(&at.switch).into_iter();
        waiting
            .flat_map(|waiting| waiting.range(range.clone()))
            .map(|(key, _)| (at, key.1))
            .collect()
    }

    /// Adds a route that has to wait (again).
    pub(super) fn add(&mut self, now: Time, at: Place, key: RouteKey, waits: Pending) {
        if self.pending.is_empty() {
            self.began = now;
        }
        self.pending.entry(at.switch).or_default().insert((at.port, key), waits);
    }

    /// Returns when the next check is due.
    pub(super) const fn deadline(&self) -> Option<Time> {
        self.next
    }

    /// Schedules a check once the graph and the routes have been stable for a while.
    pub(super) fn graph_changed(&mut self, now: Time) {
        if !self.pending.is_empty() {
            self.quiet = (now + self.heartbeat * 3).min(self.began + self.heartbeat * 30);
            self.next = Some(self.quiet.max(self.looked + self.heartbeat));
        }
    }

    /// Schedules an immediate check of the routes over lost links, and one of all others once the
    /// graph has been stable for a while.
    pub(super) fn lost(&mut self, now: Time, links: &[(SwitchIndex, PortNo)]) {
        if !self.pending.is_empty() {
            self.graph_changed(now);
            self.lost.extend(links);
            self.next = Some(now);
        }
    }

    /// Schedules the next check after one at `now`, which covered all routes if the graph was
    /// `whole`.
    pub(super) fn looked(&mut self, now: Time, whole: bool) {
        self.looked = now;
        let waits = self.pending.values().flat_map(|waiting| waiting.values());
        let last = waits.map(|waits| waits.until).min();
        self.next = last.map(|last| if whole { last } else { last.min(self.quiet) });
    }

    /// Schedules a check soon, after a host was reported or has moved.
    pub(super) fn host_seen(&mut self, now: Time) {
        if !self.pending.is_empty() {
            let soon = self.quiet.max(now + self.heartbeat);
            self.next = Some(self.next.map_or(soon, |next| next.min(soon)));
        }
    }

    /// Removes a route that its switch no longer has.
    pub(super) fn forget(&mut self, at: Place, key: RouteKey) {
        if let Some(waiting) = self.pending.get_mut(&at.switch) {
            waiting.remove(&(at.port, key));
            if waiting.is_empty() {
                self.pending.remove(&at.switch);
            }
        }
    }

    /// Removes the routes of a switch that has restarted without them.
    pub(super) fn forget_switch(&mut self, switch: SwitchIndex) {
        self.pending.remove(&switch);
    }
}
