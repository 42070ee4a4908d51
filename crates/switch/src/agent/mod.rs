//! Agent at a host's edge: Data Center Bridging for hosts that do not support it.
//!
//! The agent is a bridge of two ports with a queue for each priority, between a host's own
//! interface ([`HOST`]) and the fabric ([`FABRIC`]).
//!
//! Towards the fabric, [rules](Rules) give a frame its priority, and a priority tag carries it
//! unless the host has tagged the frame (IEEE 802.1Q clause 9.6). A frame is queued while the
//! fabric pauses its priority, or while the reaction point of the priority limits its rate. When a
//! priority has used up its share here, the agent pauses it at the host, whether or not that
//! priority has flow control in the fabric: frames held back at their source are not lost here. The
//! runtime makes the host act on it. Frames that the host sends after that go into the headroom.
//!
//! Towards the host: flow control and congestion notifications end here, and priority tags are
//! removed. If the host receives more slowly than frames arrive, the agent pauses priorities with
//! flow control at the fabric, and drops frames of others once their share is used up.
//!
//! The configuration sets the priorities with flow control and the rules. The switch may override
//! both by [LLDP](LldpSettings).

mod config;
mod limiters;
mod neighbour;
mod node;
pub mod rules;
mod telemetry;
#[cfg(test)]
mod tests;

pub use config::{AgentConfig, FABRIC, HOST, LldpSettings, Reaction};
pub use node::AgentNode;
pub use rules::Rules;
