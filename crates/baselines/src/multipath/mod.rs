//! Static tables with all shortest paths. The hash of a flow selects one of them.

mod node;
mod plane;

pub use node::MultipathNode;
pub use plane::*;
