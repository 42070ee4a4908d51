//! Protocols between neighbours, as state machines: discovery, sealed messages, the reliable
//! stream between a switch and its controller, the path to the controller, and LACP.
//!
//! No module here reads a clock or opens a socket. Time comes in as an argument; requests go out as
//! [`effect::Effect`]s, which a node turns into frames and calls of the data plane.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod bucket;
pub mod config;
pub mod discovery;
pub mod effect;
pub mod keys;
pub mod lacp;
pub mod member;
mod replay;
pub mod seal;
pub mod stream;
pub mod uplink;
