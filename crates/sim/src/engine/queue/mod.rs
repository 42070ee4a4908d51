//! The event queue, in one total order.
//!
//! The order is that of [`Key`]: time, then the station that caused the event, then the number of
//! events that it had caused before. No two events share a key, so the order does not depend on the
//! queue's implementation.
//!
//! Most events are kept in lists that need no sorting (`lanes.rs`), the others in a calendar
//! (`calendar.rs`).

mod calendar;
mod key;
mod lanes;

pub use key::Key;

use axon_wire::Time;
use calendar::Calendar;
use key::Order;
use lanes::Lanes;

/// Target number of events prefetched together.
const TOGETHER: u64 = 32;
/// Maximum prefetch distance, in ticks (10 ms).
const STRETCH_MAX: u64 = 1 << 30;

/// Priority queue of events, smallest key first.
#[derive(Debug)]
pub struct Queue<E> {
    lanes: Lanes<E>,
    calendar: Calendar<E>,
    /// Lower bound of the event times in the calendar.
    calendar_from: u64,
    len: usize,
    /// Time up to which [`Queue::each_begun`] has shown events.
    shown: u64,
    /// Time of the last prefetch, followed by its distance in ticks and the events taken since.
    since: u64,
    stretch: u64,
    taken: u64,
}

impl<E> Default for Queue<E> {
    fn default() -> Queue<E> {
        Queue {
            lanes: Lanes::default(),
            calendar: Calendar::default(),
            calendar_from: u64::MAX,
            len: 0,
            shown: 0,
            since: 0,
            stretch: 1,
            taken: 0,
        }
    }
}

impl<E> Queue<E> {
    /// Adds an event. Keys must be unique; the caller counts sequences.
    ///
    /// # Panics
    /// With more than 2^32 queued events.
    #[inline(always)]
    pub(crate) fn push(&mut self, key: Key, event: E) {
        self.len += 1;
        match self.lanes.lane_of(key) {
            Some(lane) => self.lanes.push(lane, key, event),
            None => self.push_aside(key, event),
        }
    }

    /// Adds an event to the calendar.
    #[inline(never)]
    fn push_aside(&mut self, key: Key, event: E) {
        self.calendar_from = self.calendar_from.min(key.time.ticks());
        self.calendar.push(key, event);
    }

    /// Takes the earliest event.
    pub(crate) fn pop(&mut self) -> Option<(Key, E)> {
        self.pop_until(Time::MAX)
    }

    /// Takes the earliest event, if it is due at or before `limit`.
    #[inline(always)]
    pub(crate) fn pop_until(&mut self, limit: Time) -> Option<(Key, E)> {
        let first = self.lanes.first();
        if first >= self.calendar_from {
            return self.pop_either(limit.ticks());
        }
        if first > limit.ticks() {
            return None;
        }
        self.len -= 1;
        self.taken += 1;
        self.lanes.pop()
    }

    /// Takes the earliest event at or before `limit`, which may be in the calendar.
    #[inline(never)]
    fn pop_either(&mut self, limit: u64) -> Option<(Key, E)> {
        let first = self.lanes.first();
        let theirs = self.calendar.front(first.min(limit));
        let theirs = theirs.filter(|theirs| self.lanes.order().is_none_or(|ours| *theirs < ours));
        let taken = match theirs {
            Some(theirs) if theirs.0 <= limit => {
                self.lanes.advance(theirs.0);
                self.calendar.pop()
            }
            None if first <= limit => self.lanes.pop(),
            _ => None,
        };
        self.calendar_from = self.calendar.from();
        if taken.is_some() {
            self.len -= 1;
            self.taken += 1;
        }
        taken
    }

    /// Extends the prefetch range if all shown events, or many others, were taken, unless the next
    /// event is beyond `limit`. Returns whether it did. Calling this is optional.
    #[inline]
    pub(crate) fn begin(&mut self, limit: Time) -> bool {
        let next = self.lanes.first().min(self.calendar_from);
        let goes_on = next <= self.shown && (1..=4 * TOGETHER).contains(&self.taken);
        if goes_on || next > limit.ticks() || self.is_empty() {
            return false;
        }
        self.show(next);
        true
    }

    /// Sets the prefetch range to the time of some dozens of events at the recent rate.
    #[cold]
    fn show(&mut self, next: u64) {
        let pace = next.saturating_sub(self.since).saturating_mul(TOGETHER) / self.taken.max(1);
        self.stretch = pace.clamp(1, (2 * self.stretch).min(STRETCH_MAX));
        (self.taken, self.since) = (0, next);
        self.shown = next.saturating_add(self.stretch);
        self.calendar.front(next);
        self.calendar_from = self.calendar.from();
    }

    /// Calls `show` with the remaining events in the range of [`Queue::begin`].
    pub(crate) fn each_begun<'a>(&'a self, show: &mut impl FnMut(&'a E)) {
        self.lanes.each_until(self.shown, show);
        self.calendar.each_until(self.shown, show);
    }

    /// Returns the key of the earliest event.
    pub(crate) fn peek(&self) -> Option<Key> {
        let both = self.lanes.order().into_iter().chain(self.calendar.peek());
        both.min().map(Order::key)
    }

    /// Returns the queued events, in no particular order; for counting only.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &E> {
        self.lanes.iter().chain(self.calendar.iter())
    }

    /// Returns the number of queued events.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the queue is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn key(nanos: u64, source: u32, sequence: u64) -> Key {
        Key { time: Time::from_nanos(nanos), source, sequence }
    }

    #[test]
    fn events_come_by_time_then_source_then_sequence() {
        let order = [key(1, 9, 9), key(2, 0, 1), key(2, 0, 2), key(2, 1, 0), key(2, u32::MAX, 0)];
        let mut queue = Queue::default();
        for index in [3, 1, 4, 0, 2] {
            queue.push(order[index], index);
        }
        assert_eq!(queue.peek(), Some(order[0]));
        assert_eq!(queue.len(), 5);
        for (index, &expected) in order.iter().enumerate() {
            assert_eq!(queue.pop(), Some((expected, index)));
        }
        assert!(queue.is_empty() && queue.pop().is_none());
    }

    /// Returns the maximum delay of events in ticks, a power of two that depends on the phase, from
    /// zero to seconds.
    fn spans(phase: u64) -> u64 {
        [1, 1 << 4, 1 << 20, 1 << 12, 1 << 38, 1 << 8, 1 << 30][phase as usize % 7]
    }

    /// Returns the delay of the next event: one of three, as with frames and timers, or arbitrary.
    fn ahead(random: &mut oorandom::Rand64, step: u64, seed: u64) -> u64 {
        match seed % 2 {
            0 => [100_000, 120_000, 400_000][random.rand_range(0..3) as usize],
            _ => random.rand_range(0..spans(seed + step / 2400)),
        }
    }

    #[test]
    fn the_order_is_that_of_a_sorted_map_whatever_the_events() {
        for seed in 0..8u64 {
            let mut random = oorandom::Rand64::new(seed.into());
            let (mut queue, mut map) = (Queue::default(), BTreeMap::new());
            let (mut now, mut sequence) = (0, 0);
            for step in 0..24_000u64 {
                let busy = 1 + (step / 4000) % 3;
                for _ in 0..random.rand_range(0..2 * busy + 1) {
                    let time = Time::from_ticks(now + ahead(&mut random, step, seed));
                    let key = Key { time, source: random.rand_range(0..50) as u32, sequence };
                    queue.push(key, sequence);
                    map.insert(key, sequence);
                    sequence += 1;
                }
                let limit = match random.rand_range(0..4) {
                    0 => map.first_key_value().map_or(Time::MAX, |(key, _)| key.time),
                    _ => Time::from_ticks(now + random.rand_range(0..1 << 22)),
                };
                if random.rand_range(0..3) == 0 {
                    queue.begin(limit);
                }
                let expected = map.first_key_value().map(|(&key, &event)| (key, event));
                assert_eq!(queue.peek(), expected.map(|(key, _)| key), "seed {seed}, step {step}");
                let expected = expected.filter(|(key, _)| key.time <= limit);
                assert_eq!(queue.pop_until(limit), expected, "seed {seed}, step {step}");
                if let Some((key, _)) = expected {
                    map.remove(&key);
                    now = key.time.ticks();
                }
                assert_eq!(queue.len(), map.len());
                assert_eq!(queue.iter().count(), map.len());
            }
            while let Some((key, event)) = map.pop_first() {
                assert_eq!(queue.pop(), Some((key, event)), "seed {seed}");
            }
            assert!(queue.pop().is_none());
        }
    }

    #[test]
    fn events_that_follow_by_few_spans_need_no_calendar() {
        let mut queue = Queue::default();
        let spans = [700_000, 100_000, 120_000, 5_000];
        for source in 0..4 {
            queue.push(key(u64::from(source), source, 0), spans[source as usize]);
        }
        for sequence in 1..10_000 {
            let (Key { time, source, .. }, span) = queue.pop().expect("each causes another");
            let time = Time::from_ticks(time.ticks() + span);
            queue.push(Key { time, source, sequence }, span);
        }
        assert_eq!((queue.calendar.iter().count(), queue.lanes.iter().count()), (0, 4));
        assert_eq!(queue.calendar_from, u64::MAX);
    }

    #[test]
    fn nearly_every_event_is_shown_before_it_is_taken() {
        let mut queue = Queue::default();
        for time in 1..1000 {
            queue.push(key(time * 100, 0, time), time);
        }
        // Ten times as many events at once after a quiet period.
        for time in 1000..2000 {
            queue.push(key(1_000_000 + time * 10, 0, time), time);
        }
        let (mut shown, mut times) = (vec![false; 2000], 0);
        loop {
            if queue.begin(Time::MAX) {
                queue.each_begun(&mut |&event| shown[event as usize] = true);
                times += 1;
            }
            let Some((_, event)) = queue.pop() else { break };
            assert!(shown[event as usize], "{event}");
        }
        assert!((2000 / 128..2000 / 8).contains(&times), "some dozens at a time: {times}");
        assert!(!queue.begin(Time::MAX), "nothing is left");
    }
}
