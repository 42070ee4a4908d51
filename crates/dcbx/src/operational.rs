//! The state that is in force at a port, and where it comes from.

use alloc::vec::Vec;
use axon_wire::PrioritySet;
use axon_wire::dcbx::ieee::{Application, Ets};
use core::fmt;

/// Where a part of what is in force comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Source {
    /// The port's own configuration.
    #[default]
    Local,
    /// The peer.
    Peer,
}

/// What the port is to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Operational {
    /// How it schedules.
    pub ets: Ets,
    /// Who says so.
    pub ets_from: Source,
    /// Which priorities it pauses and lets be paused.
    pub pfc: PrioritySet,
    /// Who says so.
    pub pfc_from: Source,
    /// Its own application priorities: for information, nothing follows from them here.
    pub applications: Vec<Application>,
    /// Those of the peer; in the older form while the port is willing to follow them.
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
