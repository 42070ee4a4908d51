//! Runs an agent on an agent port: batches, and busy polling for a while before it sleeps.

use crate::client::{Client, Given};
use axon_agents::{Agent, Event};
use axon_wire::{Span, Time};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Events that are handled before the switch sees the answers.
const BATCH: usize = 64;
/// The longest sleep, after which the runner looks at whether it is to end.
const SLEEP_MAX: Duration = Duration::from_millis(100);

/// How an agent is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunOptions {
    /// How long the runner looks for packets before it sleeps. Longer is faster, and takes a CPU.
    pub spin: Span,
}

impl Default for RunOptions {
    /// 20 us: about what it takes to wake a process.
    fn default() -> RunOptions {
        RunOptions { spin: Span::from_micros(20) }
    }
}

/// Runs `agent` until `stop` is set.
///
/// # Errors
/// `ConnectionAborted` when the switch has ended the attachment; or the switch has broken the
/// protocol.
pub fn run(
    client: &mut Client,
    agent: &mut dyn Agent,
    options: RunOptions,
    stop: &AtomicBool,
) -> io::Result<()> {
    let start = Instant::now();
    let clock = || Time::from_nanos(start.elapsed().as_nanos() as u64);
    let mut busy_at = clock();
    let mut part = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let now = clock();
        let mut count = batch(client, agent, now, &mut part)?;
        if agent.deadline().is_some_and(|deadline| deadline <= now) {
            agent.handle(now, Event::Timeout, client);
            count += 1;
        }
        if count > 0 {
            client.flush();
            busy_at = now;
        } else if now.since(busy_at) < options.spin {
            std::hint::spin_loop();
        } else {
            let due = agent.deadline().map(|deadline| deadline.since(now).as_nanos());
            let sleep = due.map_or(SLEEP_MAX, |nanos| Duration::from_nanos(nanos).min(SLEEP_MAX));
            client.wait(sleep)?;
            busy_at = clock();
        }
    }
    client.flush();
    Ok(())
}

/// Handles what the switch has for the agent, up to a batch of it; returns how much.
fn batch(
    client: &mut Client,
    agent: &mut dyn Agent,
    now: Time,
    part: &mut Vec<u8>,
) -> io::Result<usize> {
    let mut count = 0;
    while count < BATCH
        && let Some(given) = client.next_given()?
    {
        match given {
            Given::Packet(packet) => agent.handle(now, Event::Packet(packet), client),
            Given::Payload(fetched) => {
                // The agent may send from the buffer that this part is in, so it gets a copy.
                part.clear();
                part.extend_from_slice(client.fetched(fetched));
                let (handle, offset) = (fetched.handle, fetched.offset);
                agent.handle(now, Event::Payload { handle, offset, bytes: part }, client);
            }
        }
        count += 1;
    }
    Ok(count)
}
