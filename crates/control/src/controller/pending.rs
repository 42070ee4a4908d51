//! The routes of an earlier incarnation of the controller that wait for a decision, and when to
//! look at them again; `takeover.rs` decides.

use super::hosts::Place;
use super::topology::SwitchIndex;
use crate::config::Timers;
use alloc::collections::BTreeMap;
use axon_wire::{MacAddr, Route, Span, Time};

/// The routes that wait for a decision.
#[derive(Debug)]
pub(super) struct TakeOver {
    pub(super) pending: BTreeMap<(Place, MacAddr), Pending>,
    pub(super) heartbeat: Span,
    /// How long a route waits at most.
    pub(super) patience: Span,
    /// When the first of those that wait came.
    pub(super) began: Time,
    pub(super) looked: Time,
    /// The graph may be in part before.
    pub(super) quiet: Time,
    pub(super) next: Option<Time>,
}

/// One of them.
#[derive(Debug)]
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
        }
    }

    /// How many routes wait.
    pub(super) fn len(&self) -> usize {
        self.pending.len()
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

    /// A link or a host is gone: a look at once.
    pub(super) fn lost(&mut self, now: Time) {
        if !self.pending.is_empty() {
            self.next = Some(now);
        }
    }

    /// A host was reported, or is elsewhere: a look soon.
    pub(super) fn host_seen(&mut self, now: Time) {
        if !self.pending.is_empty() {
            let soon = self.quiet.max(now + self.heartbeat);
            self.next = Some(self.next.map_or(soon, |next| next.min(soon)));
        }
    }

    /// A switch no longer has this route.
    pub(super) fn forget(&mut self, at: Place, destination: MacAddr) {
        self.pending.remove(&(at, destination));
    }

    /// A switch has started anew, without routes.
    pub(super) fn forget_switch(&mut self, switch: SwitchIndex) {
        self.pending.retain(|(at, _), _| at.switch != switch);
    }
}
