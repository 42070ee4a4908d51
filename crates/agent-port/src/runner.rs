//! Runner of an agent on an agent port: batches, with busy polling for a while before it sleeps.

use crate::client::{Client, Given};
use axon_agents::{Agent, Event};
use axon_wire::{Span, Time};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Maximum number of events handled before answers are published.
const BATCH: usize = 64;
/// Duration of a batch beyond which the next one is shorter: packets without a published answer are
/// held.
const BATCH_SPAN: Span = Span::from_millis(1);
/// Longest sleep between checks of the stop flag.
const SLEEP_MAX: Duration = Duration::from_millis(100);
/// Interval between checks of the switch's socket while the runner does not sleep.
const LOOK: Span = Span::from_millis(100);

/// Options of a runner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunOptions {
    /// Busy polling time before the runner sleeps. Longer is faster, and uses a CPU.
    pub spin: Span,
}

impl Default for RunOptions {
    /// Default of 20 us: about the time to wake a process.
    fn default() -> RunOptions {
        RunOptions { spin: Span::from_micros(20) }
    }
}

/// Runs `agent` until `stop` is set.
///
/// # Errors
/// `ConnectionAborted` if the switch has ended the attachment; or the switch has broken the
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
        // Deadlines alone do not prevent sleep.
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

/// Returns the size of the next batch after a batch of up to `before` that took `took`.
fn next_batch(before: usize, took: Span) -> usize {
    if took > BATCH_SPAN { (before / 2).max(1) } else { (2 * before).min(BATCH) }
}

/// Handles up to `most` events of the switch; returns their number.
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
                // The agent may send from the buffer of this part, so it gets a copy.
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
