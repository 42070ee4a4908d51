//! What a control plane has set at the ports of the software plane.

use alloc::boxed::Box;
use axon_node::{PortVlans, Treatment};
use axon_wire::dcbx::ieee::Ets;
use axon_wire::priority::{PRIORITIES, Priority, PrioritySet};

/// What a control plane has set at one port; what it has not is as configured at the start.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings {
    pub(super) classes: Option<Box<Ets>>,
    pub(super) pfc: Option<PrioritySet>,
    pub(super) defence: Option<Box<[Treatment; PRIORITIES]>>,
    pub(super) regeneration: Option<Box<[Priority; PRIORITIES]>>,
    pub(super) vlans: Option<Box<PortVlans>>,
}
