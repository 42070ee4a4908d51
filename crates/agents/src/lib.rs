//! Agents: programs attached to a switch that process packets (paper 003; paper 004, sections 5 and
//! 6).
//!
//! An agent is attached to a port of a switch, its *agent port*. Frames whose egress is that port
//! go to the agent, and frames that the agent forwards or sends enter the switch through that port.
//! The switch's ordinary forwarding thus selects the packets for the agent, and its queues and
//! counters are those of a port.
//!
//! An [`Agent`] has no clock, no thread and no socket, so the same agent runs in the simulator and
//! on Linux.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

/// Compiles and runs the code on the page.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/your-own-agent.md")]
struct YourOwnAgent;

pub mod agent;
pub mod congestion;
pub mod cpu_port;
pub mod forwarder;
pub mod in_network_cache;
pub mod memory_outbox;
pub mod node;
pub mod packet;

pub use agent::{Agent, Counters, Event, Full, Outbox, Packet};
pub use axon_cache::Handle;
pub use congestion::{CongestionResponder, ResponderConfig};
pub use cpu_port::CpuPort;
pub use forwarder::{Forwarder, ForwarderConfig};
pub use in_network_cache::{InNetworkCache, InNetworkCacheConfig};
pub use memory_outbox::MemoryOutbox;
pub use node::{AgentNode, AgentPortConfig};
