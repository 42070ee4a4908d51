//! PortLand (Niranjan Mysore et al., SIGCOMM 2009): the network that paper 001 §5.4 compares
//! itself with.
//!
//! Edge switches name hosts by where they are ([`crate::portland::plane`]); a fabric manager
//! keeps the names and answers ARP; switches find their place in a fat tree by themselves and
//! forward by prefix. Paper 001 runs it on other topologies too, which PortLand's own
//! forwarding does not support: there the manager installs shortest paths in switches on request
//! (`manager`). The messages between switches and manager go through the same network, as real
//! frames, along a tree of shortest paths to the manager.
//!
//! Differences from the paper are documented where they are (`ldp`, `message`), and in one place in
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
