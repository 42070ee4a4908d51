//! The operational state of a port: what is in force, and which end it comes from.

use alloc::vec::Vec;
use axon_wire::PrioritySet;
use axon_wire::dcbx::ieee::{Application, Ets};
use core::fmt;

/// The end of the link that a part of the operational state comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Source {
    /// The port's own configuration.
    #[default]
    Local,
    /// The peer.
    Peer,
}

/// The operational state of a port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Operational {
    /// The scheduling table.
    pub ets: Ets,
    /// The end that `ets` comes from.
    pub ets_from: Source,
    /// The priorities with PFC, in both directions.
    pub pfc: PrioritySet,
    /// The end that `pfc` comes from.
    pub pfc_from: Source,
    /// The port's own application priorities. They are information for the peer.
    pub applications: Vec<Application>,
    /// The peer's application priorities. In CEE only while the port is willing.
    pub peer_applications: Vec<Application>,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Source::Local => "local",
            Source::Peer => "peer",
        })
    }
}
