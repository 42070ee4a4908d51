//! Routers, by which the controller chooses the path of a flow.
//!
//! A [`Router`] returns a path for each flow, one at a time. Some use only the graph. Others also
//! use the flows that they have placed so far, or the measured load, and reconsider placed flows in
//! rounds. For the choice of a router, see docs/routers.md.

mod congestion;
mod dependencies;
mod detour;
mod distances;
mod ecmp;
mod explicit;
mod flow;
mod hedera;
mod interface;
mod kind;
mod layered;
mod loads;
mod search;
mod shortest_path;
#[cfg(test)]
mod testing;
mod tree;
mod up_down;
mod weighted;

pub use congestion::CongestionAware;
pub use detour::Detour;
pub use distances::ShortestPaths;
pub use ecmp::Ecmp;
pub use explicit::{Explicit, StatedPath};
pub(crate) use flow::pair_hash;
pub use flow::{Flow, flow_hash};
pub use hedera::{Annealing, FirstFit};
pub use interface::Router;
pub use kind::RouterKind;
pub use layered::Layered;
pub use loads::Loads;
pub use tree::FixedTies;
pub use up_down::UpDown;
pub use weighted::Weighted;

pub use axon_node::Step;
