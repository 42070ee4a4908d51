//! Runs an agent on an agent port, in batches. Before it sleeps, it polls for a while.

use crate::client::{Client, Given};
use axon_agents::{Agent, Event};
use axon_wire::{Span, Time};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Maximum number of events that are handled before answers are published.
const BATCH: usize = 64;
/// Duration of a batch above which the next batch is shorter, because packets without a published
/// answer are held.
const BATCH_SPAN: Span = Span::from_millis(1);
/// Longest sleep between checks of the stop flag.
const SLEEP_MAX: Duration = Duration::from_millis(100);
/// Interval between checks of the switch's socket while the runner does not sleep.
const LOOK: Span = Span::from_millis(100);

/// Options for a runner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunOptions {
    /// Time for which the runner polls before it sleeps. A longer time is faster, but uses a CPU.
    pub spin: Span,
}

impl Default for RunOptions {
    /// Returns the default of 20 us, which is about the time to wake a process.
    fn default() -> RunOptions {
        RunOptions { spin: Span::from_micros(20) }
    }
}

/// Runs `agent` until `stop` is set.
///
/// # Errors
/// `ConnectionAborted` if the switch has ended the attachment. Also if the switch has broken the
/// protocol.
pub fn run(
    client: &mut Client,
    agent: &mut dyn Agent,
    options: RunOptions,
    stop: &AtomicBool,
) -> io::Result<()> {
    let start = Instant::now();
    let clock = || Time::from_nanos(start.elapsed().as_nanos() as u64);
    let (mut busy_at, mut looked_at) = (clock(), clock());
    let mut part = Vec::new();
    let (mut batch_max, mut batch_began) = (1, None);
    while !stop.load(Ordering::Relaxed) {
        let now = clock();
        if let Some(began) = batch_began.take() {
            batch_max = next_batch(batch_max, now.since(began));
        }
        let count = batch(client, agent, (now, batch_max), &mut part)?;
        batch_began = (count > 0).then_some(now);
        let is_due = agent.deadline().is_some_and(|deadline| deadline <= now);
        if is_due {
            agent.handle(now, Event::Timeout, client);
        }
        if count > 0 || is_due {
            client.flush();
        }
        if now.since(looked_at) >= LOOK {
            client.wait(Duration::ZERO)?;
            looked_at = now;
        }
        // A deadline alone does not keep the runner from sleeping.
        if count > 0 {
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

/// Returns the size of the next batch, after a batch of up to `before` events that took `took`.
fn next_batch(before: usize, took: Span) -> usize {
    if took > BATCH_SPAN { (before / 2).max(1) } else { (2 * before).min(BATCH) }
}

/// Handles up to `batch_max` events from the switch. Returns their number.
fn batch(
    client: &mut Client,
    agent: &mut dyn Agent,
    (now, batch_max): (Time, usize),
    part: &mut Vec<u8>,
) -> io::Result<usize> {
    let mut count = 0;
    while count < batch_max
        && let Some(given) = client.next_given()?
    {
        match given {
            Given::Packet(packet) => agent.handle(now, Event::Packet(packet), client),
            Given::Payload(fetched) => {
                // The agent may send from the buffer that contains this part, so it gets a copy.
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
