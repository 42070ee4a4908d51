//! The agent at a host's edge: Data Center Bridging for hosts that know nothing of it.
//!
//! It stands between a host's own interface ([`HOST`]) and the fabric ([`FABRIC`]), a bridge of
//! two ports with a queue for each priority.
//!
//! In plain English, towards the fabric: a frame gets a priority by [rules](Rules), and a tag that
//! says it and no VLAN unless the host has tagged it (IEEE 802.1Q clause 9.6). It waits while
//! the fabric has stopped its priority, or while its reaction point lets nothing more leave.
//! When a priority has as much here as it may, the host is told to stop it, whether or not
//! that priority has flow control in the fabric: what can be held back at its source need
//! not be lost here. How the host is made to obey is the body's business; what it sends all
//! the same is kept in the headroom.
//!
//! Towards the host: flow control and congestion notifications end here; a priority tag comes
//! off. If the host takes frames more slowly than they come, the fabric is told to stop the
//! priorities with flow control, and frames of others end once their share is used up.
//!
//! Which priorities have flow control, and which frames have which priority, it is told at its
//! start; or by its switch, if it [speaks](neighbour) to it.

mod config;
mod lldp;
mod neighbour;
mod node;
pub mod rules;
#[cfg(test)]
mod tests;

pub use config::{AgentConfig, FABRIC, HOST, LldpSettings, Reaction};
pub use node::AgentNode;
pub use rules::Rules;
