//! Ports of a switch, independent of the program that it runs: carrier, wire, buffers, shared
//! memory, counters.

mod admission;
mod blocked;
pub mod buffers;
mod classes;
mod control_queues;
mod core;
mod flow_control;
mod frame_meta;
mod hold;
pub mod memory;
mod pass;
mod queue_change;
mod queued;
mod read;
mod telemetry;
mod watch;
mod watchdog;

pub use self::core::Ports;
pub use blocked::{Blocked, WaitingQueue};
pub use frame_meta::{FrameMeta, HeaderKind};
pub(crate) use queue_change::QueueChange;
