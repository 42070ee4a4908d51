//! Agent ports that are measured: a switch in this process, an agent in another one.
//!
//! [`throughput`] is what goes through an agent, [`delay`] what the way to it takes. Frames come
//! from memory and go there, so no device is in what is measured. Between are the plane or the
//! pipeline and the port of `axon switch`; its loop is written again in each of both.

pub mod delay;
pub mod process;
mod rewriter;
pub mod throughput;

use super::port::AgentPort;
use crate::clock::Clock;
use crate::port::{Pool, Port};
use anyhow::{Result, ensure};
use axon_wire::{FrameBuf, Span};
use std::time::Duration;

/// How long an agent is waited for.
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
