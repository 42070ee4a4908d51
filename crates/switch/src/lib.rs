//! Complete nodes, assembled once for every runtime: plane, seals, discovery and either the edge
//! agent ([`SwitchNode`]) or the controller ([`ControllerNode`]).
//!
//! A node handles one input in rounds. The plane answers with actions. Punts among them go to the
//! control plane, whose effects (`effect.rs`) return as frames for the plane. The round
//! ends when no part has output. A transit frame passes through the plane only.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod agent;
mod chassis;
pub mod config;
mod controller;
mod dcbx;
mod effect;
mod host_limits;
mod lacp;
mod lacp_ports;
mod load;
mod pause_meter;
mod prober;
mod refused;
mod revoked;
mod settings;
pub mod static_mode;
mod switch;
mod telemetry;
mod upstream;

pub use chassis::Refusals;
pub use controller::ControllerNode;
pub use switch::SwitchNode;
