//! A switch's data plane as a pure state machine: forwarding, route tables, buffers.
//!
//! Nothing here reads a clock, opens a socket, spawns a thread or allocates per frame.
#![no_std]
#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic)]

extern crate alloc;

pub mod bank;
pub mod bridge;
pub mod buffers;
mod cnm;
pub mod config;
mod congestion;
pub mod contract;
pub mod counters;
pub mod dcb;
pub mod ecn;
pub mod ethernet;
pub mod fdb;
pub mod flow_control;
pub mod flow_hash;
pub mod forward;
mod hold;
pub mod layers;
pub mod memory;
pub mod meter;
pub mod multipath;
pub mod notice;
pub mod pause;
pub mod plane;
pub mod portland;
pub mod probe;
pub mod qcn;
pub mod random;
pub mod routes;
pub mod schedule;
pub mod targeted;
pub mod watchdog;

pub use bank::{HeldQueue, Moving, PortBank, Standstill};
pub use config::{OnFull, PlaneConfig, PortKind, PuntLimit};
pub use contract::{Action, Awaited, Drop, Input, Node, Note, Punt, Refusal};
pub use counters::{Counters, PortCounters};
pub use forward::{Step, forward};
pub use plane::Plane;
pub use probe::ProbeUnits;
pub use routes::{RouteError, RouteTables};
