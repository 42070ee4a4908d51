//! Shares of a rated link: a host with one TCP stream competes with a host with eight, at two
//! ingress ports of one switch.

use super::tcp::Streams;
use crate::subject::World;
use anyhow::{Result, ensure};

/// Time excluded at either end of the test, in seconds, while streams find their share.
const EDGE: f64 = 1.0;

/// Goodput of the two hosts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shares {
    /// Goodput of the host with eight streams, in multiples of that of the host with one.
    pub ratio: f64,
    /// Total goodput, in Mb/s.
    pub total_mbps: f64,
}

/// Measures two hosts that send to a third one at the same time.
///
/// # Errors
/// iperf3 fails, or the user stops the run.
pub fn shares(world: &World<'_>, seconds: u32) -> Result<Shares> {
    let seconds = seconds + 2 * EDGE as u32;
    let one = Streams::start(world, [0, 2], 0, 1, seconds)?;
    let eight = Streams::start(world, [1, 2], 1, 8, seconds)?;
    let one = one.finish(world, EDGE, EDGE)?;
    let eight = eight.finish(world, EDGE, EDGE)?;
    ensure!(one > 0.0, "the single stream got nothing");
    Ok(Shares { ratio: eight / one, total_mbps: one + eight })
}
