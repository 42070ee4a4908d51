//! Measurements of agent ports, with a switch in this process and an agent in another one.
//!
//! [`throughput`] measures the rate through an agent, and [`delay`] measures the time to it. Frames
//! start and end in memory, so no device is measured. Both use the plane or the pipeline of `axon
//! switch`, and its port, but each has its own run loop.

pub mod delay;
pub mod process;
mod rewriter;
pub mod throughput;
mod traffic;

use super::port::AgentPort;
use crate::clock::Clock;
use crate::port::{Pool, Port};
use anyhow::{Result, ensure};
use axon_wire::{FrameBuf, Span};
use std::time::Duration;

/// Time limit for an agent to attach.
const ATTACH_MAX: Span = Span::from_secs(10);

/// Waits until an agent is attached.
fn wait_for_agent(port: &mut AgentPort, clock: &Clock) -> Result<()> {
    let until = clock.now() + ATTACH_MAX;
    let (mut pool, mut received): (Pool, Vec<FrameBuf>) = Default::default();
    while port.carrier() != Some(true) {
        ensure!(clock.now() < until, "no agent has attached");
        port.receive(&mut pool, &mut received)?;
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}
