//! State of the controller's backup routes.

use super::flows::RouteIndex;
use super::hosts::Place;
use super::router::{Detour, Step};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use axon_wire::{Layer, Span, Time};

/// Backups at switches, and pending checks.
#[derive(Clone, Debug)]
pub(super) struct Backups {
    /// True if routes get backups.
    pub(super) on: bool,
    /// Interval between batches.
    pub(super) pause: Span,
    /// Earliest time of the next batch.
    pub(super) not_before: Time,
    /// Next route to check after a change of the graph; `None` if all are checked.
    pub(super) sweep: Option<u32>,
    pub(super) sent: BTreeMap<RouteIndex, Sent>,
    pub(super) detour: Detour,
    pub(super) path: Vec<Step>,
}

/// A backup sent to a switch.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    /// Stamp number of the decision that the backup belongs to.
    pub(super) number: u64,
    pub(super) path: Vec<Step>,
    /// Port where the backup ends.
    pub(super) exit: Place,
    pub(super) layer: Layer,
}

impl Backups {
    /// Creates the state without backups. There are 20 batches per heartbeat.
    pub(super) fn new(on: bool, heartbeat: Span) -> Backups {
        Backups {
            on,
            pause: Span::from_ticks((heartbeat.ticks() / 20).max(1)),
            not_before: Time::ZERO,
            sweep: None,
            sent: BTreeMap::new(),
            detour: Detour::default(),
            path: Vec::new(),
        }
    }
}
