//! Multithreaded execution of one world, with the same result as on one thread.
//!
//! A shard can affect another only over a link between them, and not before the frame's head has
//! passed the sender's egress stages, the wire and the receiver's ingress stages. The minimum of
//! this time over all links from one shard to the other is the *lookahead* between them. On several
//! threads each shard stays behind what the others may still send it (`threads/exchange.rs`). If
//! there is too little work for that, one thread runs all shards in windows: if `T` is the earliest
//! event of all, everything before `T` plus the minimum lookahead is already in the queue of its
//! shard (K. M. Chandy and J. Misra, CACM 24(4), 1981; the bounded-lag form).
//!
//! The result is the same because a station handles its events in the order of their keys,
//! regardless of which shards run at the time, and keys do not depend on the number of shards.
//! Stations of different shards share nothing. The world's own actions (faults, cables, power,
//! readers) happen between runs, when no shard is running.

mod exchange;

use crate::engine::lookahead::Lookahead;
use crate::engine::queue::Key;
use crate::engine::shard::Shard;
use axon_wire::{Span, Time};
use exchange::Exchange;

/// Windows after which the use of threads is reconsidered.
const STRETCH: u64 = 64;
/// Events per window above which threads are used, unless a test sets another value. Below half of
/// it they are not.
pub(crate) const WORTH: u64 = 64;

/// Runs all shards up to and at `end`: on one thread while windows hold fewer events than `worth`,
/// and on `cores` cores while they hold enough. `beside` is the mode at the end of a run, kept for
/// the next.
pub(crate) fn run(
    shards: &mut [Shard],
    end: Time,
    lookahead: &Lookahead,
    (worth, cores): (u64, usize),
    beside: &mut bool,
) {
    let least = lookahead.least();
    if least == Span::ZERO {
        return event_by_event(shards, end);
    }
    debug_assert!(end < Time::MAX, "clocks go beyond the end");
    let is_short = |first: Key| first.time + least * STRETCH > end;
    if next(shards, end).is_none_or(is_short) {
        // Too short to measure the load, and to benefit from threads.
        alone(shards, end, least, u64::MAX / STRETCH);
        return;
    }
    loop {
        *beside = *beside && side_by_side(shards, end, lookahead, (worth, cores));
        if *beside || alone(shards, end, least, worth) {
            return;
        }
        *beside = true;
    }
}

/// Runs on one thread without lookahead.
fn event_by_event(shards: &mut [Shard], end: Time) {
    while let Some(first) = next(shards, end) {
        let is_next = |shard: &&mut Shard| shard.common.queue.peek() == Some(first);
        if let Some(shard) = shards.iter_mut().find(is_next) {
            shard.step(end);
        }
        deliver(shards);
    }
}

/// Runs on one thread, window by window, until threads are worthwhile. Returns whether the run is
/// complete.
fn alone(shards: &mut [Shard], end: Time, lookahead: Span, worth: u64) -> bool {
    let events = |shards: &[Shard]| shards.iter().map(|shard| shard.events).sum::<u64>();
    let (mut windows, mut before) = (0, events(shards));
    while let Some(first) = next(shards, end) {
        let limit = window_end(first.time, lookahead, end);
        shards.iter_mut().for_each(|shard| while shard.step(limit) {});
        deliver(shards);
        windows += 1;
        if windows == STRETCH {
            let now = events(shards);
            if now - before >= STRETCH * worth {
                return false;
            }
            (windows, before) = (0, now);
        }
    }
    true
}

/// Returns the earliest event, if it is due at or before `end`.
fn next(shards: &[Shard], end: Time) -> Option<Key> {
    let next = shards.iter().filter_map(|shard| shard.common.queue.peek()).min();
    next.filter(|key| key.time <= end)
}

/// Runs each shard on its own thread until threads are no longer worthwhile. Returns whether the
/// run is complete.
fn side_by_side(
    shards: &mut [Shard],
    end: Time,
    lookahead: &Lookahead,
    (worth, cores): (u64, usize),
) -> bool {
    let Some(begin) = next(shards, end).map(|key| key.time) else { return true };
    let exchange = Exchange::new(lookahead, shards.len(), (begin, end), worth, cores);
    std::thread::scope(|scope| {
        let mut shards = shards.iter_mut();
        let first = shards.next();
        for shard in shards {
            scope.spawn(|| exchange.work(shard));
        }
        first.into_iter().for_each(|shard| exchange.work(shard));
    });
    exchange.close(shards)
}

/// Moves events between shards.
pub(crate) fn deliver(shards: &mut [Shard]) {
    for from in 0..shards.len() {
        for to in 0..shards[from].common.outbox.len() {
            for (key, event) in std::mem::take(&mut shards[from].common.outbox[to]) {
                shards[to].common.queue.push(key, event);
            }
        }
    }
}

/// Returns the last instant of the window that begins at `start`.
fn window_end(start: Time, lookahead: Span, end: Time) -> Time {
    (start + lookahead - Span::from_ticks(1)).min(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_ends_before_the_lookahead_and_at_the_limit() {
        let (start, lookahead) = (Time::from_ticks(100), Span::from_ticks(10));
        assert_eq!(window_end(start, lookahead, Time::MAX), Time::from_ticks(109));
        assert_eq!(window_end(start, lookahead, Time::from_ticks(105)), Time::from_ticks(105));
    }
}
