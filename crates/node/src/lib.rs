//! The contract between nodes, data planes and runtimes: what goes in and out of a node, and the
//! facts on both sides of a seam.
//!
//! Nothing here reads a clock, opens a socket, spawns a thread or knows an algorithm of forwarding.
#![no_std]
#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic)]

extern crate alloc;

pub mod agenda;
pub mod contract;
pub mod counters;
pub mod path;
pub mod port;
pub mod random;

pub use contract::{Action, Awaited, Drop, Input, Node, Note, Punt, Refusal};
pub use counters::{Counters, PortCounters};
pub use path::{Step, SwitchIndex};
pub use port::PortKind;
