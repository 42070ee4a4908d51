//! Data plane of an Axon switch: it prepends a route at the edge, pops a hop and pushes another in
//! transit, and removes the header at the other edge (thesis 000 §3.2).

mod cnm_meter;
mod congestion;
pub mod ethernet;
pub mod forward;
mod guards;
pub mod layers;
mod lookups;
pub mod meter;
mod node;
mod pass;
pub mod pause;
mod plane;
mod route_memory;
pub mod routes;
mod settings;

pub use lookups::Lookups;
pub use plane::{Plane, capabilities};
