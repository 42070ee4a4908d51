//! Agent ports: shared memory between a switch and a program that looks at packets.
//!
//! An [`AgentPort`] is a port like every other, whose far end is an agent: what the plane sends by
//! it goes to the agent, and what the agent forwards or sends comes in by it. The agent gets the
//! head of a packet and a handle; the payload stays with the switch ([`axon_cache`]) until the
//! agent has decided. While the agent has no room, the wire of the port is busy, so that packets
//! wait in the queues of the plane. The port has carrier while an agent is attached.
//!
//! [`session`](self) is the switch's side of the rings. The agent's side and what both share are a
//! crate of their own, [`axon_agent_port`], so that an agent needs nothing of a switch.

mod backoff;
mod broken;
mod carry;
mod closer;
mod counters;
mod listener;
mod looks;
pub mod measure;
mod port;
mod session;
mod setup;

pub use axon_agent_port::{client, handshake, layout, memory, ring, runner};
pub use broken::Broken;
pub use counters::{AgentCounters, AgentStatus};
pub use port::AgentPort;
pub use setup::{AgentPortSetup, SetupError};

pub use axon_agents::node::{PayloadMode, WhenFull};
