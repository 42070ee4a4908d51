//! Ports of a switch, independent of the program that it runs: carrier, wire, buffers, shared
//! memory, counters.

mod blocked;
pub mod buffers;
mod control_queues;
mod core;
mod egress_queues;
mod flood;
mod frame_meta;
mod hold;
mod queued;
pub mod shared_buffer;
pub mod telemetry;
mod wires;

pub use self::core::Ports;
pub use blocked::{Blocked, WaitingQueue};
pub use egress_queues::EgressQueues;
pub use flood::{copy, flood};
pub use frame_meta::{FrameMeta, HeaderKind};
pub use wires::Wires;
