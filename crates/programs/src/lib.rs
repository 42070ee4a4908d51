//! Fabrics as control programs of the programmable data plane (paper 004 §5 and appendix A).
//!
//! A program is configured with the plan of the whole network ([`Site`]), fills the tables of its
//! switch, and handles trapped frames. It reads no clock and opens no socket, so the same code runs
//! in the simulator and on real ports.
#![no_std]
#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic)]

extern crate alloc;

pub mod agents;
pub mod arp;
pub mod axon;
pub mod bcube;
pub mod book;
pub mod bridge;
pub mod dcell;
pub mod entries;
mod exceptions;
pub mod fat_tree;
pub mod kind;
pub mod link_state;
pub mod live;
#[cfg(test)]
mod net;
pub mod planned;
#[cfg(test)]
mod plans;
pub mod portland;
pub mod server;
pub mod site;
mod spread;
pub mod stack;
pub mod tags;
#[cfg(test)]
mod tests;
mod tree;
pub mod vl2;

pub use agents::WithAgents;
pub use kind::{ProgramKind, Unsuitable};
pub use site::{Neighbour, Plan, PlanHost, PlanNode, Shape, Site};
