//! Runs an agent on an agent port: batches, and busy polling for a while before it sleeps.

use crate::client::{Client, Given};
use axon_agents::{Agent, Event};
use axon_wire::{Span, Time};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Events that are handled before the switch sees the answers, at most.
const BATCH: usize = 64;
/// A batch that takes longer is followed by a shorter one: packets that the switch has seen no
/// answer to are held.
const BATCH_SPAN: Span = Span::from_millis(1);
/// The longest sleep, after which the runner looks at whether it is to end.
const SLEEP_MAX: Duration = Duration::from_millis(100);
/// How often a runner that does not sleep looks at whether its switch has gone.
const LOOK: Span = Span::from_millis(100);

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
        // Deadlines alone do not keep it awake.
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

/// How many events to handle after a batch of up to `before` that has taken so long.
fn next_batch(before: usize, took: Span) -> usize {
    if took > BATCH_SPAN { (before / 2).max(1) } else { (2 * before).min(BATCH) }
}

/// Handles what the switch has for the agent, up to so many events; returns how many.
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
