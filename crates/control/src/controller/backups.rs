//! The memory of the controller's backups.

use super::flows::RouteIndex;
use super::hosts::Place;
use super::router::{Detour, Step};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use axon_wire::{Layer, Span, Time};

/// The backups that switches have, and what is to be looked at.
#[derive(Clone, Debug)]
pub(super) struct Backups {
    /// Whether routes get backups at all.
    pub(super) on: bool,
    /// From one batch to the next.
    pub(super) pause: Span,
    /// No batch before this.
    pub(super) not_before: Time,
    /// The next route to look at after a change of the graph; `None` if all were.
    pub(super) sweep: Option<u32>,
    pub(super) sent: BTreeMap<RouteIndex, Sent>,
    pub(super) detour: Detour,
    pub(super) path: Vec<Step>,
}

/// A backup that a switch has.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    /// The number of the decision that it belongs to.
    pub(super) number: u64,
    pub(super) path: Vec<Step>,
    /// The port where it ends.
    pub(super) exit: Place,
    pub(super) layer: Layer,
}

impl Backups {
    /// None yet; a batch takes its turn 20 times in a heartbeat.
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
