//! Networks that Axon is compared with: learning bridges with RSTP, PortLand, and static tables
//! with all shortest paths.
//!
//! Each has a data plane and a control plane, uses the ports of [`axon_plane`], and implements the
//! contract of [`axon_node`], so that a simulator can run it in place of an Axon switch.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod bridge;
pub mod multipath;
pub mod portland;
pub mod rstp;
