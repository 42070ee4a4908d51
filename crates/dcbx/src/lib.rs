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
mod applications;
pub mod cee;
pub mod congestion;
pub mod ieee;
pub mod lldp;
pub mod meeting;
mod note;
mod operational;
pub mod port;
pub mod ports;
pub mod tables;
#[cfg(test)]
mod tests;

pub use applications::cee_can_carry;
pub use cee::{Cee, CeeConfig, CeeFeature, FeatureState};
pub use ieee::{Duplicates, IeeeConfig, Remote, TieRule, ZeroClasses};
pub use meeting::{Meeting, Mismatch, meet};
pub use note::DcbxNote;
pub use operational::{Operational, Source};
pub use port::{DcbEvent, DcbPort, DcbxConfig, Mode};
pub use ports::{DcbPorts, DcbxNodeConfig, PortRequest};
pub use tables::{DcbxSettings, Recommendation};
