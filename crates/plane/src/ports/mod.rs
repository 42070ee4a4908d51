//! The ports of a switch, whatever program runs on it: carrier, wire, buffers, shared memory,
//! counters.

mod blocked;
pub mod buffers;
mod classes;
mod core;
mod frame_meta;
mod hold;
mod lossless;
pub mod memory;
mod read;
mod telemetry;
mod watch;
mod watchdog;

pub use self::core::Ports;
pub(crate) use blocked::QueueChange;
pub use blocked::{Blocked, HeldQueue};
pub use frame_meta::FrameMeta;
