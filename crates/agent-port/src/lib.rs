//! Agent ports: the memory that a switch shares with one agent, and the agent's side of it.
//!
//! [`layout`], [`memory`], [`ring`] and [`handshake`] are both sides' own. [`client`] is the
//! agent's side of the rings, and [`runner`] runs an [`axon_agents::Agent`] on that. The switch's
//! side is in `axon-linux`, which an agent does not need.
//!
//! Everything unsafe here is in [`memory`] and in the receiving of descriptors.

pub mod client;
pub mod descriptors;
pub mod handshake;
pub mod layout;
pub mod memory;
pub mod ring;
pub mod runner;
