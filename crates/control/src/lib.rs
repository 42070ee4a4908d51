//! Discovery, address interception, routing and the controller, as state machines.
//!
//! No module here reads a clock or opens a socket. Time comes in as an argument; requests go out as
//! [`effect::Effect`]s, which [`node`] turns into frames and calls of the data plane.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod bucket;
pub mod config;
pub mod controller;
pub mod discovery;
pub mod edge;
pub mod effect;
pub mod keys;
pub mod member;
pub mod node;
mod replay;
pub mod seal;
pub mod static_mode;
pub mod stream;
pub mod uplink;
