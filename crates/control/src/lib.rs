//! Discovery, address interception, routes and the controller, as state machines.
//!
//! Nothing here reads a clock or opens a socket: time comes in as an argument and wishes go
//! out as [`effect::Effect`]s, which [`node`] turns into frames.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod agent;
pub mod config;
pub mod controller;
pub mod dcbx;
pub mod discovery;
pub mod edge;
pub mod effect;
pub mod lldp;
pub mod node;
pub mod portland;
pub mod prove;
pub mod rstp;
pub mod seal;
pub mod stream;
pub mod uplink;
