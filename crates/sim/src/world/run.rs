//! A whole scenario, start to report. Hosts boot and get addresses, and the network gets ready to
//! carry their traffic (`ready.rs`). Then the fabric's traffic runs or, without any, every pair
//! pings, the fabric's faults happen, and every connected pair pings again.
//!
//! Each step runs for at most a millisecond of simulated time, reports the progress to the
//! observer, which may end the run, and takes a sample if one is due, until the stage is over. If
//! links are lossless, each step checks for a deadlock: the first one is kept for the report, and
//! the run continues. These checks change nothing in the world, so they leave its trace unchanged.

use crate::world::warm::Warm;
use axon_fabric::model::Fabric;

pub use crate::world::results::{Report, Round};
pub use crate::world::warm::Unlike;
pub use crate::world::watch::{Options, Progress, Stage, Watch};

/// Runs a scenario.
pub fn run(fabric: &Fabric, mut options: Options) -> Report {
    Warm::up(fabric, &mut options, &mut ()).go_on(fabric, &options, &mut ())
}
