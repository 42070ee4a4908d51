//! Configuration of a data plane by its control plane.

use crate::port::PortKind;
use crate::routes::RouteKey;
use crate::settings::Treatment;
use crate::vlans::PortVlans;
use alloc::vec::Vec;
use axon_wire::dcbx::ieee::Ets;
use axon_wire::priority::{PRIORITIES, Priority, PrioritySet};
use axon_wire::{MacAddr, Route};

/// Configuration of a data plane, as set by a control plane. Queued frames, counters and timers are
/// not included.
///
/// A control plane compares it with the expected configuration, and re-synchronises a data plane
/// that has lost its state from one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Configuration of the ports, by port number from 0.
    pub ports: Vec<PortSnapshot>,
}

/// Route of a masqueraded MAC.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Masqueraded {
    /// The frames that take the route, by the destination MAC that hosts were given.
    pub key: RouteKey,
    /// The true MAC of the destination.
    pub destination: MacAddr,
    /// The route to the destination.
    pub route: Route,
}

/// Configuration of one port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortSnapshot {
    /// The kind of the port.
    pub kind: PortKind,
    /// The routes of the port, each with the frames that take it.
    pub routes: Vec<(RouteKey, Route)>,
    /// The routes in the port's route memory.
    pub masqueraded: Vec<Masqueraded>,
    /// Mapping and scheduling of its traffic classes, where a control plane has set them.
    pub classes: Option<Ets>,
    /// The priorities with flow control, where a control plane has set them.
    pub pfc: Option<PrioritySet>,
    /// Defence of the congestion notification domain, where a control plane has set it.
    pub defence: Option<[Treatment; PRIORITIES]>,
    /// The priority regeneration table, where a control plane has set it.
    pub regeneration: Option<[Priority; PRIORITIES]>,
    /// VLANs of the port, where a control plane has set them.
    pub vlans: Option<PortVlans>,
}
