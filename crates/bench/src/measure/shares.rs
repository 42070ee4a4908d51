//! Shares of a rated link: a host with one TCP stream against one with eight, at two ingress ports
//! of one switch.

use super::tcp::Streams;
use crate::subject::World;
use anyhow::{Result, ensure};

/// What does not count at either end of the test, in seconds: streams need a while to find their
/// share.
const EDGE: f64 = 1.0;

/// What the two hosts got.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shares {
    /// The goodput of the host with eight streams in multiples of that of the host with one.
    pub ratio: f64,
    /// The goodput of both, in Mb/s.
    pub total_mbps: f64,
}

/// Both hosts send to the third at once.
///
/// # Errors
/// iperf3 fails, or the user wants it all to stop.
pub fn shares(world: &World<'_>, seconds: u32) -> Result<Shares> {
    let seconds = seconds + 2 * EDGE as u32;
    let one = Streams::start(world, [0, 2], 0, 1, seconds)?;
    let eight = Streams::start(world, [1, 2], 1, 8, seconds)?;
    let one = one.finish(world, EDGE, EDGE)?;
    let eight = eight.finish(world, EDGE, EDGE)?;
    ensure!(one > 0.0, "the single stream got nothing");
    Ok(Shares { ratio: eight / one, total_mbps: one + eight })
}
