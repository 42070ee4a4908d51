//! PortLand (Niranjan Mysore et al., SIGCOMM 2009): the network that paper 001 §5.4 compares
//! itself with.
//!
//! Edge switches name hosts by where they are ([`crate::portland::plane`]); a fabric manager
//! keeps the names and answers ARP; switches find their place in a fat tree by themselves and
//! forward by prefix. Paper 001 runs it on other topologies too, which PortLand's own
//! forwarding does not know how to do: there the manager tells switches shortest paths when
//! they ask (`manager`). What switches and manager say to one another goes through the same
//! network, as real frames, along a tree of shortest ways to the manager.
//!
//! What differs from the paper is said where it does (`ldp`, `message`), and in one place in
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
