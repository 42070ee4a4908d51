//! Other networks in the same world: learning bridges with RSTP, PortLand, static multipath.

mod multipath;
mod node;

pub use node::Baseline;
pub(crate) use node::{Plans, controller, fix_addresses};
