//! A calendar of events (R. Brown, CACM 31(10), 1988): for those that come in no order.
//!
//! It is a wheel of buckets, each for an equal stretch of time, and a heap for what lies beyond one
//! turn of the wheel. A bucket is a plain list until its time comes; then it is sorted, and read
//! from its end. What is added to the bucket that is being read goes to a small heap beside it.
//! Entries are small; the events themselves lie in a slab and move twice, in and out.
//!
//! The width of a bucket follows the events, so that one holds some few whatever the size of the
//! world. It decides how long things take, never their order.

use super::key::{Key, Order};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Buckets of the wheel: a power of two.
const BUCKETS: usize = 4096;
/// Events that a bucket should hold.
const WANTED: usize = 6;
/// Buckets are made narrower above so many times that in each that is not empty, on average.
const CROWDED: u64 = 2;
/// Buckets are made wider below one in so many of that. Each that is read holds one at least.
const SPARSE: u64 = 3;
/// Fewer entries than this are sorted as they are; of more than [`INDICES`], their places in a
/// bucket would not fit.
const PLAIN: usize = 4;
/// A power of two.
const INDICES: usize = 256;
/// After so many buckets their width is reconsidered.
const PERIOD: u64 = 512;
/// Events of one bucket, or added to it while it is read, above which it is held too wide.
const BUCKET_MAX: usize = 256;
/// Periods with too few events, at most, before buckets are made wider.
const PATIENCE_MAX: u32 = 1024;
/// The widest bucket is 2^36 ticks, 0.69 s.
const SHIFT_MAX: u32 = 36;
/// The width of buckets at the start: 2^12 ticks, 41 ns.
const SHIFT_START: u32 = 12;

/// A key, and where its event lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    time: u64,
    source: u32,
    slot: u32,
    sequence: u64,
}

impl Entry {
    /// Its key as two numbers to compare.
    #[inline]
    fn order(&self) -> Order {
        Order::new(self.time, self.source, self.sequence)
    }
}

/// An entry in a heap that gives the earliest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Early(Entry);

impl PartialOrd for Early {
    fn partial_cmp(&self, other: &Early) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Early {
    fn cmp(&self, other: &Early) -> std::cmp::Ordering {
        other.0.order().cmp(&self.0.order())
    }
}

/// Events in a calendar.
#[derive(Debug)]
pub(super) struct Calendar<E> {
    /// The bucket that is being read, the latest first.
    current: Vec<Entry>,
    /// What was added to it, or before it, meanwhile.
    late: BinaryHeap<Early>,
    /// To sort with: when each entry of `current` is due and where it stands, as one number; and
    /// the entries in their new order.
    ranks: Vec<u64>,
    sorted: Vec<Entry>,
    wheel: Vec<Vec<Entry>>,
    /// Lists to use again, the last one first: it is still in the processor's caches.
    spare: Vec<Vec<Entry>>,
    /// One bit for each bucket that is not empty.
    occupied: Vec<u64>,
    /// Beyond the wheel.
    far: BinaryHeap<Early>,
    /// The bucket of the first of those; the last there is without any.
    far_first: u64,
    /// The number of the bucket that is being read: time divided by the width.
    base: u64,
    /// The width of a bucket, as a power of two.
    shift: u32,
    slots: Vec<Option<E>>,
    free: Vec<u32>,
    /// Events of one bucket above which it is tried with narrower ones.
    bucket_max: usize,
    /// Periods in a row with too few events in a bucket.
    sparse: u32,
    /// So many of them before buckets are made wider: twice as many each time that it was too
    /// wide, since all that is to come moves.
    patience: u32,
    /// Since the width was last reconsidered: buckets read, and events in them.
    turns: u64,
    turned: u64,
}

impl<E> Default for Calendar<E> {
    fn default() -> Calendar<E> {
        Calendar {
            current: Vec::new(),
            late: BinaryHeap::new(),
            ranks: Vec::new(),
            sorted: Vec::new(),
            wheel: (0..BUCKETS).map(|_| Vec::new()).collect(),
            spare: Vec::new(),
            occupied: vec![0; BUCKETS / 64],
            far: BinaryHeap::new(),
            far_first: u64::MAX,
            base: 0,
            shift: SHIFT_START,
            slots: Vec::new(),
            free: Vec::new(),
            bucket_max: BUCKET_MAX,
            sparse: 0,
            patience: 1,
            turns: 0,
            turned: 0,
        }
    }
}

impl<E> Calendar<E> {
    /// Adds an event.
    ///
    /// # Panics
    /// With more than 2^32 events to come.
    pub(super) fn push(&mut self, key: Key, event: E) {
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = Some(event);
                slot
            }
            None => {
                self.slots.push(Some(event));
                u32::try_from(self.slots.len() - 1).expect("fewer than 2^32 events to come")
            }
        };
        let Key { time, source, sequence } = key;
        self.place(Entry { time: time.ticks(), source, slot, sequence });
        if self.late.len() > self.bucket_max {
            self.refine();
        }
    }

    #[inline]
    fn place(&mut self, entry: Entry) {
        let bucket = entry.time >> self.shift;
        if bucket <= self.base {
            self.late.push(Early(entry));
        } else if bucket - self.base < BUCKETS as u64 {
            let index = bucket as usize % BUCKETS;
            let list = &mut self.wheel[index];
            if list.capacity() == 0 {
                *list = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(WANTED));
                self.occupied[index / 64] |= 1 << (index % 64);
            }
            list.push(entry);
        } else {
            self.far.push(Early(entry));
            self.far_first = self.far_first.min(bucket);
        }
    }

    /// The place of the earliest event, if its bucket begins at or before `limit`.
    pub(super) fn front(&mut self, limit: u64) -> Option<Order> {
        if self.is_read() {
            self.turn(limit);
        }
        self.open()
    }

    /// Whether all events of the bucket that is being read are taken.
    fn is_read(&self) -> bool {
        self.current.is_empty() && self.late.is_empty()
    }

    /// The place of the earliest event in the bucket that is being read.
    fn open(&self) -> Option<Order> {
        let late = self.late.peek().map(|early| early.0.order());
        self.current.last().map(Entry::order).into_iter().chain(late).min()
    }

    /// No event is earlier: the time of the first that is open, or the beginning of its bucket.
    pub(super) fn from(&self) -> u64 {
        match self.open() {
            Some(order) => order.0,
            None => self.next_bucket().map_or(u64::MAX, |bucket| bucket << self.shift),
        }
    }

    /// Takes the event that [`Calendar::front`] has found.
    pub(super) fn pop(&mut self) -> Option<(Key, E)> {
        let late = self.late.peek().map(|early| early.0.order());
        let read = self.current.last().map(Entry::order);
        let is_late = late.is_some_and(|late| read.is_none_or(|read| late < read));
        let entry = match is_late {
            true => self.late.pop()?.0,
            false => self.current.pop()?,
        };
        let event = self.slots[entry.slot as usize].take()?;
        self.free.push(entry.slot);
        Some((entry.order().key(), event))
    }

    /// Shows the events of the bucket that is being read that happen at or before `limit`, but for
    /// those that were added meanwhile.
    pub(super) fn each_until<'a>(&'a self, limit: u64, show: &mut impl FnMut(&'a E)) {
        let due = self.current.iter().rev().take_while(|entry| entry.time <= limit);
        due.filter_map(|entry| self.slots[entry.slot as usize].as_ref()).for_each(show);
    }

    /// Begins the next bucket that is not empty, unless it lies beyond `limit`.
    fn turn(&mut self, limit: u64) {
        let Some(bucket) = self.next_bucket().filter(|bucket| bucket << self.shift <= limit) else {
            return;
        };
        self.base = bucket;
        let index = bucket as usize % BUCKETS;
        let list = std::mem::take(&mut self.wheel[index]);
        if !list.is_empty() {
            self.spare.push(std::mem::replace(&mut self.current, list));
        }
        self.occupied[index / 64] &= !(1 << (index % 64));
        if self.far_first < bucket.saturating_add(BUCKETS as u64) {
            self.draw_near(bucket);
        }
        if self.current.len() > self.bucket_max {
            self.refine();
        }
        self.sort();
        self.turns += 1;
        self.turned += self.current.len() as u64;
        if self.turns >= PERIOD {
            self.reconsider();
        }
    }

    /// Moves what lay beyond the wheel and no longer does into it, now that `bucket` is read.
    #[cold]
    #[inline(never)]
    fn draw_near(&mut self, bucket: u64) {
        let horizon = bucket.saturating_add(BUCKETS as u64);
        while let Some(&Early(entry)) = self.far.peek()
            && entry.time >> self.shift < horizon
        {
            self.far.pop();
            if entry.time >> self.shift == bucket {
                self.current.push(entry);
            } else {
                self.place(entry);
            }
        }
        self.find_far_first();
    }

    fn find_far_first(&mut self) {
        let first = self.far.peek().map(|early| early.0.time >> self.shift);
        self.far_first = first.unwrap_or(u64::MAX);
    }

    /// The number of the next bucket that holds something.
    #[inline]
    fn next_bucket(&self) -> Option<u64> {
        let first = (self.base + 1) as usize % BUCKETS;
        let word = self.occupied[first / 64] >> (first % 64);
        if word != 0 {
            // All that is near comes before all that is far.
            return Some(self.base + 1 + u64::from(word.trailing_zeros()));
        }
        self.next_bucket_beyond()
    }

    /// The same where the next some buckets are empty.
    fn next_bucket_beyond(&self) -> Option<u64> {
        let far = (self.far_first < u64::MAX).then_some(self.far_first);
        let first = (self.base + 1) as usize % BUCKETS;
        // The word with the first bucket is looked at twice: its upper part, at last its lower.
        let words = (0..=BUCKETS / 64).map(|step| {
            let index = (first / 64 + step) % (BUCKETS / 64);
            let mask = match step {
                0 => u64::MAX << (first % 64),
                step if step == BUCKETS / 64 => !(u64::MAX << (first % 64)),
                _ => u64::MAX,
            };
            (index, self.occupied[index] & mask)
        });
        let near = words.filter(|&(_, word)| word != 0).map(|(index, word)| {
            let found = index * 64 + word.trailing_zeros() as usize;
            self.base + 1 + ((found + BUCKETS - first) % BUCKETS) as u64
        });
        near.into_iter().next().into_iter().chain(far).min()
    }

    /// Fits the width of buckets to what those of late have held.
    #[cold]
    fn reconsider(&mut self) {
        let (held, wanted) = (self.turned, self.turns * WANTED as u64);
        (self.turns, self.turned) = (0, 0);
        self.bucket_max = BUCKET_MAX;
        self.sparse = if held * SPARSE < wanted { self.sparse + 1 } else { 0 };
        if held > wanted * CROWDED && self.shift > 0 {
            self.set_width(self.shift - 1);
        } else if self.sparse >= self.patience && self.shift < SHIFT_MAX {
            self.sparse = 0;
            self.set_width(self.shift + 1);
        }
    }

    /// The bucket that is being read is too wide: makes all of them so narrow that the first
    /// holds about as many as it should. Where that does not help, since all happens at once,
    /// it is not tried again soon.
    #[cold]
    fn refine(&mut self) {
        let late = self.late.iter().map(|early| early.0.time);
        let mut times: Vec<u64> = self.current.iter().map(|entry| entry.time).chain(late).collect();
        let held = times.len();
        let (before, &mut some, _) = times.select_nth_unstable(WANTED);
        let span = some - before.iter().min().copied().unwrap_or(some);
        if span > 0 {
            self.patience = (self.patience * 2).min(PATIENCE_MAX);
            self.set_width(span.ilog2().min(self.shift));
        }
        self.bucket_max = if self.current.len() > held / 2 { held * 2 } else { BUCKET_MAX };
    }

    /// Changes the width of buckets, and puts every entry where it now belongs.
    fn set_width(&mut self, shift: u32) {
        let mut entries: Vec<Entry> = std::mem::take(&mut self.current);
        for list in self.wheel.iter_mut().filter(|list| list.capacity() > 0) {
            entries.append(list);
            self.spare.push(std::mem::take(list));
        }
        entries.extend(std::mem::take(&mut self.late).into_iter().map(|early| early.0));
        entries.extend(std::mem::take(&mut self.far).into_iter().map(|early| early.0));
        self.occupied.fill(0);
        self.far_first = u64::MAX;
        self.shift = shift;
        let first = entries.iter().map(|entry| entry.time).min().unwrap_or(0);
        self.base = first >> shift;
        for entry in entries {
            match entry.time >> shift == self.base {
                true => self.current.push(entry),
                false => self.place(entry),
            }
        }
        self.sort();
    }

    /// Puts what is being read in order, the latest first. All of it lies in one bucket, so a few
    /// bits say when; most times differ, and numbers are sorted faster than entries.
    fn sort(&mut self) {
        if !(PLAIN..=INDICES).contains(&self.current.len()) {
            self.current.sort_unstable_by_key(|entry| Reverse(entry.order()));
            return;
        }
        let within = (1 << self.shift) - 1;
        let rank = |(index, entry): (usize, &Entry)| {
            (within - (entry.time & within)) * INDICES as u64 + index as u64
        };
        self.ranks.clear();
        self.ranks.extend(self.current.iter().enumerate().map(rank));
        self.ranks.sort_unstable();
        self.sorted.clear();
        let sorted = self.ranks.iter().map(|rank| self.current[*rank as usize % INDICES]);
        self.sorted.extend(sorted);
        std::mem::swap(&mut self.current, &mut self.sorted);
        for ties in self.current.chunk_by_mut(|a, b| a.time == b.time) {
            if ties.len() > 1 {
                ties.sort_unstable_by_key(|entry| Reverse(entry.order()));
            }
        }
    }

    /// The place of the earliest event.
    pub(super) fn peek(&self) -> Option<Order> {
        if let Some(open) = self.open() {
            return Some(open);
        }
        let bucket = self.next_bucket()?;
        let near = self.wheel[bucket as usize % BUCKETS].iter();
        let near = near.filter(|entry| entry.time >> self.shift == bucket);
        let far = self.far.peek().map(|early| &early.0);
        near.chain(far).map(Entry::order).min()
    }

    /// All events, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &E> {
        self.slots.iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_wire::Time;
    use std::collections::BTreeMap;

    fn key(ticks: u64, sequence: u64) -> Key {
        Key { time: Time::from_ticks(ticks), source: 0, sequence }
    }

    impl<E> Calendar<E> {
        fn take(&mut self) -> Option<(Key, E)> {
            self.front(u64::MAX)?;
            self.pop()
        }
    }

    #[test]
    fn buckets_that_a_burst_has_made_narrow_get_wide_again() {
        let mut calendar = Calendar::default();
        for tick in 0..300 {
            calendar.push(key(tick, tick), tick);
        }
        while calendar.take().is_some() {}
        let narrow = calendar.shift;
        assert!(narrow < SHIFT_START, "{narrow}");
        for number in 1..100_000 {
            calendar.push(key(number * 100_000, number), number);
            assert_eq!(calendar.take().map(|(_, number)| number), Some(number));
        }
        assert!(calendar.shift > narrow, "{} after {narrow}", calendar.shift);
    }

    #[test]
    fn places_are_used_again() {
        let mut calendar = Calendar::default();
        for round in 0..100 {
            calendar.push(key(round, 2 * round), round);
            calendar.push(key(round, 2 * round + 1), round);
            assert!(calendar.take().is_some() && calendar.take().is_some());
        }
        assert_eq!(calendar.slots.len(), 2);
        assert_eq!(calendar.iter().count(), 0);
    }

    #[test]
    fn events_far_and_near_come_in_order_and_none_before_the_bound() {
        let mut random = oorandom::Rand64::new(1);
        let (mut calendar, mut map) = (Calendar::default(), BTreeMap::new());
        let mut now = 0;
        for sequence in 0..50_000 {
            let span = random.rand_range(1..40);
            let ahead = random.rand_range(0..1 << span);
            let key = key(now + ahead, sequence);
            calendar.push(key, sequence);
            map.insert(key, sequence);
            if random.rand_range(0..5) > 1 {
                let (&first, _) = map.first_key_value().expect("one was added");
                assert!(calendar.from() <= first.time.ticks());
                assert_eq!(calendar.peek().map(Order::key), Some(first));
                assert_eq!(calendar.take(), map.pop_first());
                now = first.time.ticks();
            }
        }
        while let Some(first) = map.pop_first() {
            assert_eq!(calendar.take(), Some(first));
        }
        assert!(calendar.take().is_none());
    }
}
