//! PortLand (Niranjan Mysore et al., SIGCOMM 2009), the network with which paper 001 §5.4 compares.
//!
//! Edge switches give hosts addresses by location ([`crate::portland::plane`]). A fabric manager
//! stores these addresses and answers ARP. Switches determine their position in a fat tree by
//! themselves and forward by prefix. Paper 001 also runs PortLand on other topologies, which
//! PortLand's own forwarding does not support. There, the manager installs shortest paths in
//! switches on request (`manager`). The messages between switches and manager are real frames in
//! the same network, along a tree of shortest paths to the manager.
//!
//! Differences from the paper are documented in the modules that they concern (`ldp`, `message`),
//! and collected in `docs/baselines.md`.

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
