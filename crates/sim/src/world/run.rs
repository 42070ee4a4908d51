//! A whole scenario, start to report: hosts boot and get addresses, and the network gets
//! ready to carry what they send (`ready.rs`); then the fabric's traffic
//! runs or, without any, every pair pings, the fabric's faults happen, and every connected
//! pair pings again.
//!
//! In plain English: run for a millisecond of simulated time at most; report the progress to the
//! observer, which may end the run; take a sample if one is due; go on until the stage is over.
//! Where links are lossless, each time see whether buffers wait for each other for ever: the first
//! such cycle is kept for the report, and the run goes on. These checks change nothing in the
//! world, so they leave its trace as it is.

use crate::world::warm::Warm;
use axon_fabric::model::Fabric;

pub use crate::world::results::{Report, Round};
pub use crate::world::warm::Unlike;
pub use crate::world::watch::{Options, Progress, Stage, Watch};

/// Runs a scenario.
pub fn run(fabric: &Fabric, mut options: Options) -> Report {
    Warm::up(fabric, &mut options, &mut ()).go_on(fabric, &options, &mut ())
}
