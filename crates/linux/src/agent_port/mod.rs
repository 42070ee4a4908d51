//! Agent port: memory shared between a switch and a program that processes packets.
//!
//! An [`AgentPort`] is a port with an agent at its far end. Frames that the plane sends through it
//! go to the agent, and frames that the agent forwards or originates come in through it. The agent
//! gets the head of a packet and a handle. The payload stays in the switch ([`axon_cache`]) until
//! the agent has decided. While the agent has no room, the port is busy, so that packets queue in
//! the plane. The port has carrier while an agent is attached.
//!
//! [`session`](self) is the switch's side of the rings. The agent's side, and everything that both
//! sides share, are in a separate crate, [`axon_agent_port`], so that an agent depends on no part
//! of a switch.

mod backoff;
mod broken;
mod carry;
mod chunks;
mod closer;
mod counters;
mod expiry;
mod listener;
mod looks;
pub mod measure;
mod payloads;
mod port;
mod session;
mod setup;

pub use axon_agent_port::{client, handshake, layout, memory, ring, runner};
pub use broken::Broken;
pub use counters::{AgentCounters, AgentStatus};
pub use port::AgentPort;
pub use setup::{AgentPortSetup, SetupError};

pub use axon_agents::node::{PayloadMode, WhenFull};
