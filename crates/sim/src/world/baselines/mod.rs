//! Baselines in the same world: learning bridges with RSTP, PortLand, static multipath.

mod multipath;
mod node;
mod plans;

pub use node::Baseline;
pub(crate) use plans::{Plans, controller};
