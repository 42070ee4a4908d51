//! Fabrics as control programs of the programmable data plane (paper 004 §5 and appendix A).
//!
//! A program is configured with the plan of the whole network ([`Site`]), fills the tables of its
//! switch, and answers what its entries trap. It reads no clock and opens no socket, so it runs in
//! the simulator and with real ports alike.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod arp;
pub mod bcube;
pub mod dcell;
pub mod kind;
pub mod server;
pub mod site;

pub use kind::{ProgramKind, Unsuitable};
pub use site::{Neighbour, Plan, PlanHost, PlanNode, Shape, Site};
