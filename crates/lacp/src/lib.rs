//! Link aggregation: how the two ends of several links agree that these are one (IEEE 802.1AX-2014
//! clause 6). Without a clock.
//!
//! [`port`] is one port: what it knows of its partner, when it sends, and whether frames may pass.
//! [`selection`] chooses, of several ports, those that lead to one partner. A switch's edge and a
//! simulated host run the same code: the one is the actor where the other is the partner.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod port;
pub mod selection;

pub use port::{LacpConfig, LacpPort, Mux, Receive};
pub use selection::Selection;
