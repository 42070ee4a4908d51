//! Static tables with all shortest paths, one of which is chosen for each flow by its hash.

mod node;
mod plane;

pub use node::MultipathNode;
pub use plane::*;
