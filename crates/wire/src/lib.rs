//! Wire formats, parsed to typed headers and emitted from them, and units of measurement.
//!
//! This crate keeps no state, reads no clock and allocates only its results.
#![no_std]
#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic)]

extern crate alloc;

pub mod addr;
pub mod cn;
pub mod congestion;
pub mod constants;
pub mod dcbx;
pub mod dhcpv6;
pub mod echo;
mod encoding;
pub mod envelope;
pub mod frame;
pub mod header;
mod hello;
pub mod hops;
pub mod host_frame;
pub mod lacp;
pub mod link;
pub mod lldp;
pub mod mac_control;
pub mod masquerade;
pub mod membership;
pub mod message;
pub mod nd;
pub mod priority;
pub mod probe;
pub mod route;
mod route_path;
pub mod router;
pub mod units;
pub mod vlan;

pub use addr::{Incarnation, MacAddr, NodeId, PortNo};
pub use frame::{Contents, Filling, FrameBuf, LIGHT_BYTES, NoHeadroom, NoTailroom};
pub use header::{HeaderError, HeaderView, HopWidth, PacketType};
pub use hops::Hops;
pub use priority::{Priority, PrioritySet, TrafficClass};
pub use route::{Layer, Route};
pub use units::{Bytes, Rate, Span, Time};
