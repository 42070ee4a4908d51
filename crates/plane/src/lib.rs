//! Software data plane as a pure state machine: forwarding, route tables, buffers, scheduling and
//! flow control.
//!
//! It reads no clock, opens no socket, spawns no thread and does not allocate per frame.
#![no_std]
#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic)]

extern crate alloc;

pub mod axon;
pub mod config;
pub mod congestion;
pub mod flow_hash;
pub mod ports;
pub mod probe;
pub mod qos;
pub mod reference;

pub use axon::forward::{Step, forward};
pub use axon::routes::RouteTables;
pub use axon::{Lookups, Plane};
pub use axon::{ethernet, layers, meter, pause, routes};
pub use config::{OnFull, PlaneConfig, PuntLimit};
pub use congestion::{ecn, notification, qcn};
pub use ports::{Blocked, EgressQueues, FrameMeta, HeaderKind, Ports, WaitingQueue, Wires};
pub use ports::{buffers, shared_buffer};
pub use probe::ProbeUnits;
pub use qos::dcb_state::Dcb;
pub use qos::port_pauses::PortPauses;
pub use qos::{dcb, flow_control, schedule, targeted, watchdog};
