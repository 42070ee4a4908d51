//! PortLand (Niranjan Mysore et al., SIGCOMM 2009): the comparison network of paper 001 §5.4.
//!
//! Edge switches name hosts by location ([`crate::portland::plane`]). A fabric manager stores the
//! names and answers ARP. Switches find their position in a fat tree by themselves and forward by
//! prefix. Paper 001 runs it on other topologies too, which PortLand's own forwarding does not
//! support: there the manager installs shortest paths in switches on request (`manager`). The
//! messages between switches and manager are real frames in the same network, along a tree of
//! shortest paths to the manager.
//!
//! Differences from the paper are documented in their modules (`ldp`, `message`), and together in
//! `docs/baselines.md`.

mod graph;
mod hosts;
mod ldp;
mod manager;
mod manager_node;
pub mod message;
pub mod plane;
mod rules;
mod switch;
mod waiting;

pub use hosts::Host;
pub use manager::ManagerCounters;
pub use manager_node::{ManagerConfig, ManagerNode};
pub use message::Level;
pub use switch::{PortLandNode, SwitchConfig};
