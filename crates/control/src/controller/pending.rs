//! The routes of an earlier incarnation of the controller that wait for a decision, and when to
//! look at them again; `takeover.rs` decides.

use super::hosts::Place;
use super::topology::SwitchIndex;
use crate::config::Timers;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use axon_node::RouteKey;
use axon_wire::{MacAddr, PortNo, Route, Span, Time};

/// The routes that wait for a decision.
#[derive(Clone, Debug)]
pub(super) struct TakeOver {
    /// By switch, then by host port and key, which is in no VLAN here.
    pub(super) pending: BTreeMap<SwitchIndex, Waiting>,
    pub(super) heartbeat: Span,
    /// How long a route waits at most.
    pub(super) patience: Span,
    /// When the first of those that wait came.
    pub(super) began: Time,
    pub(super) looked: Time,
    /// The graph may be in part before.
    pub(super) quiet: Time,
    pub(super) next: Option<Time>,
    /// Links that are gone since the last look.
    pub(super) lost: BTreeSet<(SwitchIndex, PortNo)>,
}

/// The routes of one switch that wait.
pub(super) type Waiting = BTreeMap<(PortNo, RouteKey), Pending>;

/// One of them.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub(super) route: Route,
    pub(super) until: Time,
}

impl TakeOver {
    /// Nothing waits.
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

    /// How many routes wait.
    pub(super) fn len(&self) -> usize {
        self.pending.values().map(Waiting::len).sum()
    }

    /// How many routes of a switch wait.
    pub(super) fn len_of(&self, switch: SwitchIndex) -> usize {
        self.pending.get(&switch).map_or(0, Waiting::len)
    }

    /// A route that waits.
    pub(super) fn get(&self, at: Place, key: RouteKey) -> Option<&Pending> {
        self.pending.get(&at.switch)?.get(&(at.port, key))
    }

    /// The routes to a host that wait, with their places.
    pub(super) fn waiting_for(&self, destination: MacAddr) -> Vec<(Place, RouteKey)> {
        let of = |(&switch, waiting): (&SwitchIndex, &'_ Waiting)| {
            let to = waiting.keys().filter(|(_, key)| key.destination == destination);
            to.map(|&(port, key)| (Place { switch, port }, key)).collect::<Vec<_>>()
        };
        self.pending.iter().flat_map(of).collect()
    }

    /// The routes of a port that wait, by destination.
    pub(super) fn waiting_at(&self, at: Place) -> Vec<(Place, RouteKey)> {
        let last = RouteKey::to(MacAddr::BROADCAST).from_source(Some(MacAddr::BROADCAST));
        let range = (at.port, RouteKey::default())..=(at.port, last);
        let waiting = self.pending.get(&at.switch).into_iter();
        waiting
            .flat_map(|waiting| waiting.range(range.clone()))
            .map(|(key, _)| (at, key.1))
            .collect()
    }

    /// Enters a route that is to wait, or to go on waiting.
    pub(super) fn add(&mut self, now: Time, at: Place, key: RouteKey, waits: Pending) {
        if self.pending.is_empty() {
            self.began = now;
        }
        self.pending.entry(at.switch).or_default().insert((at.port, key), waits);
    }

    /// When to look at them.
    pub(super) const fn deadline(&self) -> Option<Time> {
        self.next
    }

    /// The graph or the routes have changed: a look when that has been so for a while.
    pub(super) fn graph_changed(&mut self, now: Time) {
        if !self.pending.is_empty() {
            self.quiet = (now + self.heartbeat * 3).min(self.began + self.heartbeat * 30);
            self.next = Some(self.quiet.max(self.looked + self.heartbeat));
        }
    }

    /// Links are gone: a look at once at the routes over them, and one at all others when the graph
    /// has not changed for a while.
    pub(super) fn lost(&mut self, now: Time, links: &[(SwitchIndex, PortNo)]) {
        if !self.pending.is_empty() {
            self.graph_changed(now);
            self.lost.extend(links);
            self.next = Some(now);
        }
    }

    /// All routes that were due have been looked at; all of them, if the graph was `whole`.
    pub(super) fn looked(&mut self, now: Time, whole: bool) {
        self.looked = now;
        let waits = self.pending.values().flat_map(|waiting| waiting.values());
        let last = waits.map(|waits| waits.until).min();
        self.next = last.map(|last| if whole { last } else { last.min(self.quiet) });
    }

    /// A host was reported, or is elsewhere: a look soon.
    pub(super) fn host_seen(&mut self, now: Time) {
        if !self.pending.is_empty() {
            let soon = self.quiet.max(now + self.heartbeat);
            self.next = Some(self.next.map_or(soon, |next| next.min(soon)));
        }
    }

    /// A switch no longer has this route.
    pub(super) fn forget(&mut self, at: Place, key: RouteKey) {
        if let Some(waiting) = self.pending.get_mut(&at.switch) {
            waiting.remove(&(at.port, key));
            if waiting.is_empty() {
                self.pending.remove(&at.switch);
            }
        }
    }

    /// A switch has started anew, without routes.
    pub(super) fn forget_switch(&mut self, switch: SwitchIndex) {
        self.pending.remove(&switch);
    }
}
