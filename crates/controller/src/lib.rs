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
mod bound_checks;
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
mod fabric;
pub mod flows;
mod forwarding;
mod group_list_pace;
mod groups;
mod host_presence;
pub mod hosts;
mod isolation;
mod leases4;
mod leases6;
mod network;
pub mod packet;
mod paths;
mod peers;
pub mod policy;
mod relay;
mod relay6;
mod relayed;
mod requests;
mod rounds;
mod route_upkeep;
pub mod router;
mod routes;
mod scans;
mod seeking;
mod store;
mod takeover;
pub mod topology;
mod transactions;
pub mod vlans;

pub use conductor::Controller;
pub use effect::{Effect, Effects};
