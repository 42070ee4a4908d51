//! Proof before traffic: that lossless links cannot pause each other for ever, and that their
//! headroom holds what is on its way when they pause.
//!
//! [`Dependencies`] takes the routes of a fabric and says whether the buffers behind them can
//! wait for each other in a circle; [`deadlock`] says whether buffers that stand still do.
//! [`headroom`] reckons the bytes that one buffer needs, [`congestion_pauses`] how long one may stop its
//! sender although nothing is broken.
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
