//! The controller: topology graph, host tables, flow registries, DHCP servers (paper 001 §4.2).
//!
//! The controller sends to switches in three ways. Commands must arrive, so they use the reliable
//! stream to a switch's incarnation. Answers to requests are datagrams, because a requester repeats
//! its request. Routes carry stamps, so that neither a command nor an answer can undo a later
//! decision.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod addresses;
mod ageing;
mod allocation;
mod backups;
mod bonds;
pub mod bounds;
mod by_source;
mod changed;
mod conductor;
pub mod config;
mod conflicts;
mod counts;
pub mod dhcp;
mod distribution;
mod drain;
mod effect;
mod excess;
mod fabric;
pub mod flows;
mod forwarding;
mod groups;
pub mod hosts;
mod isolation;
mod lease;
mod leases6;
mod network;
mod pace;
pub mod packet;
mod paths;
mod peers;
pub mod policy;
mod presence;
mod relay;
mod relay6;
mod relayed;
mod requests;
mod rounds;
pub mod router;
mod routes;
mod scans;
mod seeking;
mod store;
mod takeover;
pub mod topology;
mod transactions;
mod upkeep;
pub mod vlans;

pub use conductor::Controller;
pub use effect::{Effect, Effects};
