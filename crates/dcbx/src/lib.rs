//! DCBX on one port: what it does about scheduling, pausing and priorities, given what its own
//! configuration says and what its peer says over LLDP. Without a clock.
//!
//! In plain English, the standard's three ways (IEEE 802.1Q clause 38.4). *Asymmetric* (ETS): a
//! willing port does what its peer recommends; what the peer does itself is its own affair.
//! *Symmetric* (PFC): both ends should do the same; the willing one follows the other, and of two
//! willing ones the one with the lower MAC address stays. *Informational* (application priority):
//! each tells its own and hears the other's. All of it follows from the last LLDPDU of the only
//! peer: with no peer, or with several, a port does what its own configuration says.
//!
//! [`ieee`] is that, without any state of its own. [`cee`] is what vendors had before, with
//! sequence numbers. [`port`] puts either on top of the LLDP agent, and [`ports`] are those of a
//! node. [`tables`] stands between what planes do and what DCBX says; [`meeting`] says what two
//! ends would not agree on. [`congestion`] reads what is said of congestion notification, from
//! which a port's defence of the domain follows.
//!
//! Beside it here: [`lldp`] (IEEE 802.1AB), which carries it, and the [`agent`] at a host's edge.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod agent;
pub mod cee;
pub mod congestion;
pub mod ieee;
pub mod lldp;
pub mod meeting;
pub mod port;
pub mod ports;
pub mod tables;
mod telemetry;
#[cfg(test)]
mod tests;

pub use axon_node::telemetry::Source;
pub use cee::{Cee, CeeConfig, CeeFeature, FeatureState};
pub use ieee::{Duplicates, IeeeConfig, Remote, TieRule, ZeroClasses};
pub use meeting::{Meeting, Mismatch, meet};
pub use port::{DcbEvent, DcbPort, DcbxConfig, Mode};
pub use ports::{DcbPorts, DcbxNodeConfig, PortWish};
pub use tables::{Asked, Recommendation, cee_tells};

use alloc::vec::Vec;
use axon_wire::PrioritySet;
use axon_wire::dcbx::cee::{PART_APPLICATION, PART_GROUPS, PART_PFC};
use axon_wire::dcbx::ieee::{Application, Ets, EtsProblem};
use axon_wire::dcbx::{DcbxError, Dialect};
use core::fmt;

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

/// What is wrong between the two ends; each is told once, when it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DcbxNote {
    /// So many neighbours speak DCBX: the port does as if none did.
    SeveralPeers(usize),
    /// A TLV of the peer's last LLDPDU cannot be read: as if it were not there.
    Unreadable {
        /// Its subtype.
        subtype: u8,
        /// Why.
        error: DcbxError,
    },
    /// A TLV came more than once in one LLDPDU.
    Repeated {
        /// Its subtype.
        subtype: u8,
    },
    /// The port would follow a recommendation, but cannot do what it says.
    Recommendation(EtsProblem),
    /// The port would follow the peer's PFC, but has it for so many traffic classes only.
    PfcClasses(u8),
    /// PFC differs at the two ends, and will: this is what the peer says.
    PfcDiffers(PrioritySet),
    /// The peer speaks an older form only, which the port is not set to speak.
    Dialect(Dialect),
    /// CEE: a feature does not work, because the two ends do not fit or the peer says so. By the
    /// type of its part.
    FeatureError(u8),
}

impl fmt::Display for DcbxNote {
    /// For operators.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DcbxNote::SeveralPeers(peers) => {
                write!(f, "{peers} neighbours speak DCBX, so none is heeded")
            }
            DcbxNote::Unreadable { subtype, error } => {
                write!(f, "TLV {subtype} cannot be read: {error}")
            }
            DcbxNote::Repeated { subtype } => write!(f, "TLV {subtype} comes more than once"),
            DcbxNote::Recommendation(problem) => {
                write!(f, "cannot do what is recommended: {problem}")
            }
            DcbxNote::PfcClasses(most) => {
                write!(f, "has PFC for {most} classes only, fewer than the peer's")
            }
            DcbxNote::PfcDiffers(theirs) => {
                write!(f, "neither end is willing, and the peer has PFC for {theirs}")
            }
            DcbxNote::Dialect(dialect) => write!(f, "the peer speaks {dialect} only"),
            DcbxNote::FeatureError(part) => match *part {
                PART_GROUPS => f.write_str("priority groups do not fit the peer's"),
                PART_PFC => f.write_str("PFC does not fit the peer's"),
                PART_APPLICATION => f.write_str("application priorities do not fit the peer's"),
                part => write!(f, "feature {part} does not fit the peer's"),
            },
        }
    }
}
