//! Operational state of a port, and the end of the link that each value comes from.

use alloc::vec::Vec;
pub use axon_node::telemetry::Source;
use axon_wire::PrioritySet;
use axon_wire::dcbx::ieee::{Application, Ets};

/// The operational state of a port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Operational {
    /// ETS table.
    pub ets: Ets,
    /// The end that `ets` comes from.
    pub ets_from: Source,
    /// The priorities with PFC, in both directions.
    pub pfc: PrioritySet,
    /// The end that `pfc` comes from.
    pub pfc_from: Source,
    /// The port's own application priorities, which are advertised to the peer.
    pub applications: Vec<Application>,
    /// The peer's application priorities. With CEE, they are present only while the port is
    /// willing.
    pub peer_applications: Vec<Application>,
}
