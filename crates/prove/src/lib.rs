//! Proofs that hold before any traffic: lossless buffers cannot deadlock, and headroom suffices.
//!
//! [`Dependencies`] takes the routes of a fabric and determines whether the buffers along them can
//! wait for each other in a cycle. [`deadlock`] checks this for buffers that are blocked now.
//! [`headroom`] computes the bytes that one buffer needs after it has sent XOFF.
//! [`congestion_pauses`] bounds the time for which congestion alone may pause a sender, so that a
//! watchdog can distinguish it from a storm.
#![no_std]
#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic)]

extern crate alloc;

mod congestion_pause;
mod cycle;
mod dependencies;
pub mod headroom;
mod stuck;
mod verdict;

pub use congestion_pause::{CongestionPause, Draining, ToHosts, congestion_pauses};
pub use cycle::{Cycle, Wait};
pub use dependencies::{Buffer, Dependencies, FLOWS_KEPT};
pub use stuck::{BlockedBuffer, deadlock};
pub use verdict::Verdict;
