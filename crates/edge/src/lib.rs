//! The edge: interface between hosts and the fabric at a switch (paper 001 §4.2.2 and §4.2.3).
//!
//! The data plane punts every host frame without a valid route. The edge learns hosts from it, and
//! handles it as follows:
//!
//! - ARP, broadcast or unicast, is never forwarded. An existing flow answers it at once. Otherwise
//!   Axon-ARP (`routes`) sends a request to the controller (`setup`), which forwards it to the
//!   target switch. That switch queries its host (`queries`) and replies. There are four phases,
//!   and each switch reserves memory before it sends.
//! - IPv6 neighbour discovery (`nd`) is handled as ARP is.
//! - DHCP goes to the controller; server messages of other hosts are refused (`services`).
//! - DHCPv6 is terminated at the edge, if the fabric file enables it (`dhcpv6`).
//! - IPv6 router advertisements are sent by the edge (`ra`), if the fabric file enables them.
//! - The fabric's own address answers ping (`ping`).
//! - Where a port's table is full, its hosts get masqueraded addresses (`install`, `given`).
//! - A unicast frame is queued while a route for its MAC is looked up, or takes a software route.
//! - The ports of a bond (`bonds`) are one location, and LACP decides whether frames pass.
//! - A frame to a group (`members`, `senders`) becomes one unicast copy for each port with members.
//!   Broadcast is copied in the same way, if enabled.
//!
//! For an unknown address, the controller may have all hosts queried (`seek`), including those on
//! ports that come up meanwhile. Local hosts with an address are probed. A host that
//! is silent too long is removed together with its flows. All state that a host can cause is
//! bounded. The result does not depend on the order of messages: see `decisions`.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod addresses;
mod answers;
mod bonds;
pub mod config;
mod context;
mod controller;
mod decisions;
mod dhcpv6;
mod edge;
mod effect;
mod entry_reservations;
mod failover;
mod flows;
mod groups;
mod hosts;
mod inherited;
mod intercept;
mod learning;
mod masqueraded;
mod members;
mod nd;
mod outcome;
mod parts;
mod ping;
mod queries;
mod ra;
mod rediscovery;
mod route_installs;
mod route_requests;
mod routes;
mod seek;
mod senders;
mod services;
mod settings;
mod tables;
mod tombstones;
mod view;
mod vlans;
pub mod waiting;

#[cfg(test)]
mod source_route_tests;
#[cfg(test)]
mod test_device;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use addresses::Addresses;
pub use edge::Edge;
pub use effect::Effect;
pub use flows::{Flow, Placement, ROUTE_LOOK};
pub use hosts::Host;
pub use outcome::Outcome;
pub use parts::Call;
pub use vlans::Edges;
