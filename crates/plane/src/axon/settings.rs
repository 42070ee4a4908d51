//! Port settings of the control plane in the software plane.

use alloc::boxed::Box;
use axon_node::{PortVlans, Treatment};
use axon_wire::dcbx::ieee::Ets;
use axon_wire::priority::{PRIORITIES, Priority, PrioritySet};

/// Settings of one port by the control plane; the initial configuration where absent.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings {
    pub(super) classes: Option<Box<Ets>>,
    pub(super) pfc: Option<PrioritySet>,
    pub(super) defence: Option<Box<[Treatment; PRIORITIES]>>,
    pub(super) regeneration: Option<Box<[Priority; PRIORITIES]>>,
    pub(super) vlans: Option<Box<PortVlans>>,
}
