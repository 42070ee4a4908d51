//! LLDP and DCBX: negotiation of scheduling, PFC and priorities between the two ends of a link.
//! This crate reads no clock.
//!
//! The standard has three kinds of attributes (IEEE 802.1Q clause 38.4). *Asymmetric* (ETS): a
//! willing port applies its peer's recommendation, regardless of the table that the peer itself
//! uses. *Symmetric* (PFC): both ends should use the same values. A willing port follows the other,
//! and if both are willing, the one with the lower MAC address keeps its own. *Informational*
//! (application priority): each end advertises its own. All of this is derived from the last LLDPDU
//! of the only peer. With no peer, or with several, a port applies its own configuration.
//!
//! [`ieee`] is the standard's form and has no state. [`cee`] is the earlier form of vendors, with
//! sequence numbers. [`port`] runs either on top of the LLDP agent, and [`ports`] are all ports of
//! a node. [`tables`] translates between the configuration of a plane and DCBX. [`meeting`] finds
//! mismatches between two ends in advance. [`congestion`] reads the congestion notification TLV,
//! which determines a port's defence of the congestion notification domain.
//!
//! [`lldp`] (IEEE 802.1AB) carries all of these.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod applications;
pub mod cee;
pub mod congestion;
pub mod ieee;
pub mod lldp;
pub mod meeting;
mod note;
mod operational_state;
pub mod port;
pub mod ports;
pub mod tables;
mod telemetry;
#[cfg(test)]
mod tests;

pub use applications::cee_can_carry;
pub use cee::{Cee, CeeConfig, CeeFeature, FeatureState};
pub use ieee::{Duplicates, IeeeConfig, Remote, TieRule, ZeroClasses};
pub use meeting::{Meeting, Mismatch, meet};
pub use note::DcbxNote;
pub use operational_state::{Operational, Source};
pub use port::{DcbEvent, DcbPort, DcbxConfig, Mode};
pub use ports::{DcbPorts, DcbxNodeConfig, PortRequest};
pub use tables::{DcbxSettings, Recommendation};
