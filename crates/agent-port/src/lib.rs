//! Agent ports: the memory that a switch shares with one agent, and the agent's side of it.
//!
//! Both sides use [`layout`], [`memory`], [`ring`] and [`handshake`]. [`client`] is the agent's
//! side of the rings, and [`runner`] runs an [`axon_agents::Agent`] on it. The switch's side is in
//! `axon-linux`, which an agent does not need.
//!
//! All unsafe code is in [`memory`] and in the code that receives descriptors.

pub mod client;
pub mod descriptors;
pub mod handshake;
pub mod layout;
pub mod memory;
pub mod ring;
pub mod runner;
