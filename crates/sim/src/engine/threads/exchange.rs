//! State shared by threads that run shards in parallel.
//!
//! Each shard has a *clock*: it has handled and sent everything before it. Whatever it still sends
//! reaches another shard at its clock plus the lookahead between the two, or later. A shard may
//! handle what is due before all of these times. It then advances its own clock, which lets the
//! others proceed (conservative synchronisation with null messages: R. E. Bryant, MIT, 1977; K. M.
//! Chandy and J. Misra, IEEE Trans. Softw. Eng. 5(5), 1979). There is no global barrier: a shard
//! with more work in one stretch may have less in the next.
#![allow(clippy::disallowed_types, reason = "threads run shards; no lock or thread orders events")]

use crate::engine::event::Parcel;
use crate::engine::lookahead::Lookahead;
use crate::engine::shard::Shard;
use axon_wire::{Span, Time};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::sync::{Mutex, OnceLock};
use std::thread::Thread;

/// Maximum and minimum number of polls of the clocks before a thread sleeps, if each thread has a
/// processor. Failed polls lower the number, for processors shared with other processes.
const LOOKS: (u32, u32) = (4096, 16);
/// A clock is advanced at least this many times per lookahead, so that a waiting shard need not
/// wait for a whole lookahead.
const PARTS: u64 = 4;
/// Lookaheads after which the use of threads is reconsidered.
const STRETCH: u64 = 64;

/// State shared by the threads.
pub(super) struct Exchange<'a> {
    lookahead: &'a Lookahead,
    end: Time,
    /// See [`super::run`].
    worth: u64,
    looks_max: u32,
    clocks: Vec<Clock>,
    sleepers: Vec<Sleeper>,
    /// Events from each shard to each, row by row.
    mail: Vec<Mutex<Vec<Parcel>>>,
    /// True if threads are not worthwhile.
    sparse: AtomicBool,
    /// True if a thread has panicked.
    broken: AtomicBool,
}

/// Time in ticks before which a shard has handled and sent everything; in its own cache line.
#[repr(align(64))]
struct Clock(AtomicU64);

/// Thread of a shard, and whether it sleeps.
#[derive(Default)]
struct Sleeper {
    sleeps: AtomicBool,
    thread: OnceLock<Thread>,
}

impl<'a> Exchange<'a> {
    /// Returns the state for shards that have handled everything before `begin`.
    pub(super) fn new(
        lookahead: &'a Lookahead,
        shards: usize,
        (begin, end): (Time, Time),
        worth: u64,
        cores: usize,
    ) -> Exchange<'a> {
        Exchange {
            lookahead,
            end,
            worth,
            looks_max: if shards <= cores { LOOKS.0 } else { 1 },
            clocks: (0..shards).map(|_| Clock(AtomicU64::new(begin.ticks()))).collect(),
            sleepers: (0..shards).map(|_| Sleeper::default()).collect(),
            mail: (0..shards * shards).map(|_| Mutex::new(Vec::new())).collect(),
            sparse: AtomicBool::new(false),
            broken: AtomicBool::new(false),
        }
    }

    /// Runs one thread until its shard has handled everything up to and at the end, or threads are
    /// not worthwhile.
    pub(super) fn work(&self, shard: &mut Shard) {
        let _guard = Guard(self);
        let own = shard.common.number as usize;
        self.sleepers[own].thread.get_or_init(std::thread::current);
        let part = Span::from_ticks((self.lookahead.after(own).ticks() / PARTS).max(1));
        let mut pace = Pace::new(shard.events, self.clock(own), self.lookahead.least());
        let (mut clock, mut looks) = (self.clock(own), self.looks_max);
        while clock <= self.end
            && let Some(limit) = self.wait(own, clock, &mut looks)
        {
            // Events sent before a clock was advanced are in the mail.
            self.take_mail(shard);
            let next = limit.min(clock + part).min(self.end + Span::from_ticks(1));
            while shard.step(next - Span::from_ticks(1)) {}
            self.send_mail(shard);
            self.clocks[own].0.store(next.ticks(), Ordering::Release);
            clock = next;
            if own == 0 && pace.is_below(self.worth, self.clocks.len(), shard.events, clock) {
                self.sparse.store(true, Ordering::Relaxed);
            }
            self.wake();
        }
    }

    /// Waits until the shard may proceed at `clock` or later. Returns the time before which it may
    /// handle events, or `None` if threads are not worthwhile.
    fn wait(&self, own: usize, clock: Time, looks: &mut u32) -> Option<Time> {
        for look in 0.. {
            if self.sparse.load(Ordering::Relaxed) {
                return None;
            }
            let limit = self.limit(own);
            if limit > clock {
                if 0 < look && look < *looks {
                    *looks = (*looks * 2).min(self.looks_max);
                }
                return Some(limit);
            }
            assert!(!self.broken.load(Ordering::Relaxed), "another thread of this world panicked");
            if look < *looks {
                std::hint::spin_loop();
                continue;
            }
            // Any later clock advance wakes this thread; an earlier one is visible.
            let sleeps = &self.sleepers[own].sleeps;
            sleeps.store(true, Ordering::Relaxed);
            fence(Ordering::SeqCst);
            let is_over =
                || self.sparse.load(Ordering::Relaxed) || self.broken.load(Ordering::Relaxed);
            if self.limit(own) <= clock && !is_over() {
                std::thread::park();
                *looks = (*looks / 2).max(LOOKS.1.min(self.looks_max));
            }
            sleeps.store(false, Ordering::Relaxed);
        }
        None
    }

    /// Wakes all sleeping threads.
    fn wake(&self) {
        fence(Ordering::SeqCst);
        for sleeper in &self.sleepers {
            if sleeper.sleeps.load(Ordering::Relaxed)
                && sleeper.sleeps.swap(false, Ordering::Relaxed)
                && let Some(thread) = sleeper.thread.get()
            {
                thread.unpark();
            }
        }
    }

    fn clock(&self, shard: usize) -> Time {
        Time::from_ticks(self.clocks[shard].0.load(Ordering::Acquire))
    }

    /// Returns the time before which all events for a shard are in its mail.
    fn limit(&self, own: usize) -> Time {
        let others = (0..self.clocks.len()).filter(|&other| other != own);
        let limits = others.map(|other| self.clock(other) + self.lookahead.between(other, own));
        limits.min().unwrap_or(Time::MAX)
    }

    fn take_mail(&self, shard: &mut Shard) {
        let own = shard.common.number as usize;
        for from in (0..self.clocks.len()).filter(|&from| from != own) {
            let Ok(mut mail) = self.mail[from * self.clocks.len() + own].lock() else { return };
            for (key, event) in mail.drain(..) {
                shard.common.queue.push(key, event);
            }
        }
    }

    fn send_mail(&self, shard: &mut Shard) {
        let row = shard.common.number as usize * self.clocks.len();
        for (to, parcels) in shard.common.outbox.iter_mut().enumerate() {
            if !parcels.is_empty()
                && let Ok(mut mail) = self.mail[row + to].lock()
            {
                mail.append(parcels);
            }
        }
    }

    /// Delivers the remaining mail after all threads have ended. Returns whether all shards have
    /// reached the end.
    pub(super) fn close(self, shards: &mut [Shard]) -> bool {
        let count = self.clocks.len();
        for (slot, mail) in self.mail.into_iter().enumerate() {
            for (key, event) in mail.into_inner().into_iter().flatten() {
                shards[slot % count].common.queue.push(key, event);
            }
        }
        self.clocks.iter().all(|clock| clock.0.load(Ordering::Relaxed) > self.end.ticks())
    }
}

/// Event rate of a shard.
struct Pace {
    least: Span,
    /// Events at the last check.
    events: u64,
    clock: Time,
}

impl Pace {
    fn new(events: u64, clock: Time, least: Span) -> Pace {
        Pace { least, events, clock }
    }

    /// Returns whether all shards together had fewer than half of `worth` events per lookahead
    /// since the last check, estimated from this shard. Checks every [`STRETCH`] lookaheads.
    fn is_below(&mut self, worth: u64, shards: usize, events: u64, clock: Time) -> bool {
        if clock < self.clock + self.least * STRETCH {
            return false;
        }
        let stretches = clock.since(self.clock).ticks() / self.least.ticks().max(1);
        let is_below =
            (events - self.events) * shards as u64 <= stretches * (worth / 2) && worth > 0;
        (self.events, self.clock) = (events, clock);
        is_below
    }
}

/// Releases the other threads when this one panics.
struct Guard<'a, 'b>(&'a Exchange<'b>);

impl Drop for Guard<'_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.broken.store(true, Ordering::Relaxed);
            self.0.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_comes_to_a_shard_before_the_clocks_of_others_and_their_lookahead() {
        let mut lookahead = Lookahead::new(3);
        let span = Span::from_ticks;
        [(0, 1, 10), (1, 0, 20), (2, 0, 5), (2, 1, 7)]
            .into_iter()
            .for_each(|(from, to, ticks)| lookahead.add(from, to, span(ticks)));
        let begin = Time::from_ticks(100);
        let exchange = Exchange::new(&lookahead, 3, (begin, Time::MAX), 0, 3);
        assert_eq!([0, 1].map(|own| exchange.limit(own).ticks()), [105, 107]);
        exchange.clocks[2].0.store(1_000, Ordering::Release);
        assert_eq!([0, 1].map(|own| exchange.limit(own).ticks()), [120, 110]);
    }

    #[test]
    fn who_sleeps_is_woken_by_a_clock_and_when_threads_are_not_worth_it() {
        let mut lookahead = Lookahead::new(2);
        lookahead.add(0, 1, Span::from_ticks(10));
        lookahead.add(1, 0, Span::from_ticks(10));
        // With more shards than cores, no thread polls twice.
        let (begin, end) = (Time::from_ticks(0), Time::from_ticks(1_000_000));
        let exchange = Exchange::new(&lookahead, 2, (begin, end), 0, 1);
        let (mut seen, mut looks) = ((0, 0), exchange.looks_max);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                exchange.sleepers[1].thread.get_or_init(std::thread::current);
                let mut looks = exchange.looks_max;
                for clock in (0..1_000).map(|round| 10 * round) {
                    let limit = exchange.wait(1, Time::from_ticks(clock), &mut looks);
                    assert!(limit.is_some_and(|limit| limit.ticks() >= clock + 10));
                    exchange.clocks[1].0.store(clock + 10, Ordering::Release);
                    exchange.wake();
                }
                assert_eq!(exchange.wait(1, Time::from_ticks(20_000), &mut looks), None);
            });
            exchange.sleepers[0].thread.get_or_init(std::thread::current);
            for clock in (0..1_000).map(|round| 10 * round) {
                seen.0 += 1;
                let limit = exchange.wait(0, Time::from_ticks(clock), &mut looks).expect("more");
                exchange.clocks[0].0.store(clock + 10, Ordering::Release);
                exchange.wake();
                seen.1 += u64::from(limit.ticks() >= clock + 10);
            }
            while exchange.clock(1) < Time::from_ticks(10_000) {
                std::thread::yield_now();
            }
            exchange.sparse.store(true, Ordering::Relaxed);
            exchange.wake();
        });
        assert_eq!(seen, (1_000, 1_000));
    }

    #[test]
    fn a_pace_is_looked_at_once_in_a_stretch() {
        let begin = Time::from_ticks(0);
        let mut pace = Pace::new(0, begin, Span::from_ticks(10));
        let at = |lookaheads| Time::from_ticks(10 * lookaheads);
        assert!(!pace.is_below(64, 2, 0, at(STRETCH - 1)));
        assert!(!pace.is_below(64, 2, STRETCH * 17, at(STRETCH)), "34 in a lookahead");
        assert!(pace.is_below(64, 2, STRETCH * 33, at(2 * STRETCH)), "32 in a lookahead");
        assert!(!pace.is_below(0, 2, STRETCH * 33, at(3 * STRETCH)), "never too few");
    }
}
