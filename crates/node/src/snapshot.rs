//! All that a control plane has configured in a data plane.

use crate::port::PortKind;
use crate::routes::RouteKey;
use crate::settings::Treatment;
use crate::vlans::PortVlans;
use alloc::vec::Vec;
use axon_wire::dcbx::ieee::Ets;
use axon_wire::priority::{PRIORITIES, Priority, PrioritySet};
use axon_wire::{MacAddr, Route};

/// The configuration of a data plane: what is in it, as far as a control plane has put it there.
/// Queued frames, counters and timers are no part of it.
///
/// A control plane that knows what should stand compares it with what does, and a data plane that
/// has lost its state is re-synchronised from one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// By port number, from 0.
    pub ports: Vec<PortSnapshot>,
}

/// A route to which a masqueraded MAC leads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Masqueraded {
    /// Which frames take it: by the destination MAC that hosts were given.
    pub key: RouteKey,
    /// The MAC of the destination itself.
    pub destination: MacAddr,
    /// The route to it.
    pub route: Route,
}

/// The configuration of one port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortSnapshot {
    /// What is plugged into it.
    pub kind: PortKind,
    /// Its routes, each with the frames that take it.
    pub routes: Vec<(RouteKey, Route)>,
    /// The routes of its route memory.
    pub masqueraded: Vec<Masqueraded>,
    /// Mapping and scheduling of its traffic classes, where a control plane has set them.
    pub classes: Option<Ets>,
    /// The priorities with flow control, where a control plane has set them.
    pub pfc: Option<PrioritySet>,
    /// How the congestion notification domain is defended, where a control plane has set it.
    pub defence: Option<[Treatment; PRIORITIES]>,
    /// The priority regeneration table, where a control plane has set it.
    pub regeneration: Option<[Priority; PRIORITIES]>,
    /// Its VLANs, where a control plane has set them.
    pub vlans: Option<PortVlans>,
}
