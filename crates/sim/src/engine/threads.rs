//! One world on several threads, with the result of one.
//!
//! Conservative windows (K. M. Chandy and J. Misra, CACM 24(4), 1981; the bounded-lag form):
//! what a shard does can reach another only over a link between them, and not before the
//! frame's head has gone through the sender's egress stages, over the wire and through the
//! receiver's ingress stages. The least time that takes, over all such links, is the
//! *lookahead*. If `T` is the earliest event of all shards, everything before `T` plus the
//! lookahead is already in the queue of the shard that it is for. So all shards run that
//! window side by side, put what they have for one another into mailboxes, meet at a barrier,
//! and look for the next `T`.
//!
//! Why the result is the same: a station sees the events that are for it in the order of
//! their keys, whichever shards run at the time, and a key does not depend on the number of
//! shards. Stations of different shards share nothing; what the world does itself (faults,
//! cables, power, readers) it does between runs, when no shard is at work.
//!
//! Two sets of mailboxes alternate, so that one barrier for each window is enough: a set is
//! written to again only after the next barrier, when everybody has emptied it.
#![allow(clippy::disallowed_types, reason = "threads run shards; no lock or thread orders events")]

use crate::engine::event::Parcel;
use crate::engine::queue::Key;
use crate::engine::shard::Shard;
use axon_wire::{Span, Time};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// Looks at the barrier before a thread lets others have the processor.
const SPINS: u32 = 4096;
/// Windows after which it is decided anew whether threads are worth it.
const STRETCH: u64 = 64;
/// Events in a window above which they are, unless a test wants it otherwise; below half of it
/// they are not.
pub(crate) const WORTH: u64 = 64;

/// Runs all shards up to and at `end`: on one thread while windows hold few events, and side
/// by side while they hold enough for threads to be worth meeting after each.
pub(crate) fn run(shards: &mut [Shard], end: Time, lookahead: Span, worth: u64) {
    if lookahead == Span::ZERO {
        return event_by_event(shards, end);
    }
    while !alone(shards, end, lookahead, worth) && !side_by_side(shards, end, lookahead, worth) {}
}

/// On one thread, where there is no lookahead.
fn event_by_event(shards: &mut [Shard], end: Time) {
    while let Some(first) = next(shards, end) {
        let is_next = |shard: &&mut Shard| shard.common.queue.peek() == Some(first);
        if let Some(shard) = shards.iter_mut().find(is_next) {
            shard.step(end);
        }
        deliver(shards);
    }
}

/// On one thread, window by window, until threads are worth it; says whether it is over.
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

/// The earliest event, if it is due at or before `end`.
fn next(shards: &[Shard], end: Time) -> Option<Key> {
    let next = shards.iter().filter_map(|shard| shard.common.queue.peek()).min();
    next.filter(|key| key.time <= end)
}

/// On a thread for each shard, until they are not worth it; says whether it is over.
fn side_by_side(shards: &mut [Shard], end: Time, lookahead: Span, worth: u64) -> bool {
    let exchange = Exchange::new(shards.len());
    let Some((first, others)) = shards.split_first_mut() else {
        return true;
    };
    std::thread::scope(|scope| {
        for shard in others {
            scope.spawn(|| exchange.work(shard, end, lookahead, worth));
        }
        exchange.work(first, end, lookahead, worth)
    })
}

/// Moves what shards have for one another.
pub(crate) fn deliver(shards: &mut [Shard]) {
    for from in 0..shards.len() {
        for to in 0..shards[from].common.outbox.len() {
            for (key, event) in std::mem::take(&mut shards[from].common.outbox[to]) {
                shards[to].common.queue.push(key, event);
            }
        }
    }
}

/// The last moment of the window that begins at `start`.
fn window_end(start: Time, lookahead: Span, end: Time) -> Time {
    (start + lookahead - Span::from_ticks(1)).min(end)
}

/// What threads share.
struct Exchange {
    shards: usize,
    /// The earliest event that each shard has or has sent, in ticks; one of two sets.
    next: [Vec<AtomicU64>; 2],
    /// The events that each shard has handled so far; one of two sets.
    events: [Vec<AtomicU64>; 2],
    /// From each shard to each, row by row; one of two sets.
    mail: [Vec<Mutex<Vec<Parcel>>>; 2],
    barrier: Barrier,
}

impl Exchange {
    fn new(shards: usize) -> Exchange {
        let number = || (0..shards).map(|_| AtomicU64::new(u64::MAX)).collect();
        let mail = || (0..shards * shards).map(|_| Mutex::new(Vec::new())).collect();
        Exchange {
            shards,
            next: [number(), number()],
            events: [number(), number()],
            mail: [mail(), mail()],
            barrier: Barrier::new(shards),
        }
    }

    /// What one thread does; all of them leave in the same turn, and answer the same: whether
    /// it is over.
    fn work(&self, shard: &mut Shard, end: Time, lookahead: Span, worth: u64) -> bool {
        let _guard = Guard(&self.barrier);
        let own = shard.common.number as usize;
        let (mut sent, mut windows, mut before) = (u64::MAX, 0, None);
        for turn in (0..2).cycle() {
            let first = shard.common.queue.peek().map_or(u64::MAX, |key| key.time.ticks());
            self.next[turn][own].store(first.min(sent), Ordering::Relaxed);
            self.events[turn][own].store(shard.events, Ordering::Relaxed);
            self.barrier.wait();
            self.take_mail(shard, turn);
            let next = self.next[turn].iter().map(|next| next.load(Ordering::Relaxed)).min();
            let Some(start) = next.filter(|&next| next <= end.ticks()) else {
                // Nothing was sent to anybody for a time that is within reach; what was sent
                // for later has been taken all the same.
                return true;
            };
            if windows % STRETCH == 0 {
                let events = self.events[turn].iter().map(|events| events.load(Ordering::Relaxed));
                let events: u64 = events.sum();
                let sparse = |before| events - before < STRETCH * worth / 2;
                if before.replace(events).is_some_and(sparse) {
                    return false;
                }
            }
            windows += 1;
            let limit = window_end(Time::from_ticks(start), lookahead, end);
            while shard.step(limit) {}
            sent = self.send_mail(shard, 1 - turn);
        }
        true
    }

    fn take_mail(&self, shard: &mut Shard, turn: usize) {
        for from in 0..self.shards {
            let slot = &self.mail[turn][from * self.shards + shard.common.number as usize];
            let Ok(mut mail) = slot.lock() else { return };
            for (key, event) in mail.drain(..) {
                shard.common.queue.push(key, event);
            }
        }
    }

    /// Puts the outbox into the mailboxes; returns the earliest time in it.
    fn send_mail(&self, shard: &mut Shard, turn: usize) -> u64 {
        let mut first = u64::MAX;
        for (to, parcels) in shard.common.outbox.iter_mut().enumerate() {
            if parcels.is_empty() {
                continue;
            }
            let earliest = parcels.iter().map(|(key, _)| key.time.ticks()).min();
            first = first.min(earliest.unwrap_or(u64::MAX));
            let slot = &self.mail[turn][shard.common.number as usize * self.shards + to];
            if let Ok(mut mail) = slot.lock() {
                mail.append(parcels);
            }
        }
        first
    }
}

/// Where threads wait for one another: they look again and again, since a window is short,
/// and give way after a while.
struct Barrier {
    threads: usize,
    arrived: AtomicUsize,
    /// How often all were here.
    rounds: AtomicUsize,
    /// A thread panicked and will not come.
    broken: AtomicBool,
}

impl Barrier {
    fn new(threads: usize) -> Barrier {
        Barrier {
            threads,
            arrived: AtomicUsize::new(0),
            rounds: AtomicUsize::new(0),
            broken: AtomicBool::new(false),
        }
    }

    fn wait(&self) {
        let round = self.rounds.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.arrived.store(0, Ordering::Relaxed);
            self.rounds.store(round.wrapping_add(1), Ordering::Release);
            return;
        }
        let mut spins = 0;
        while self.rounds.load(Ordering::Acquire) == round {
            assert!(!self.broken.load(Ordering::Relaxed), "another thread of this world panicked");
            spins += 1;
            if spins < SPINS {
                std::hint::spin_loop();
            } else {
                std::thread::yield_now();
            }
        }
    }
}

/// Lets the other threads go when this one panics.
struct Guard<'a>(&'a Barrier);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.broken.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_passes_the_barrier_before_all_are_there() {
        let (barrier, count) = (Barrier::new(3), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for round in 1..=1000 {
                        count.fetch_add(1, Ordering::Relaxed);
                        barrier.wait();
                        assert!(count.load(Ordering::Relaxed) >= 3 * round);
                        barrier.wait();
                    }
                });
            }
        });
        assert_eq!(count.load(Ordering::Relaxed), 3000);
    }

    #[test]
    fn a_window_ends_before_the_lookahead_and_at_the_limit() {
        let (start, lookahead) = (Time::from_ticks(100), Span::from_ticks(10));
        assert_eq!(window_end(start, lookahead, Time::MAX), Time::from_ticks(109));
        assert_eq!(window_end(start, lookahead, Time::from_ticks(105)), Time::from_ticks(105));
    }
}
