//! A calendar queue (R. Brown, CACM 31(10), 1988) for events in arbitrary order.
//!
//! The calendar is a wheel of buckets of equal duration, and a heap for events beyond one turn of
//! the wheel. A bucket is an unsorted list until its time comes. It is then sorted and read from
//! its end. Events added to the current bucket go to a small heap beside it. Entries are small; the
//! events themselves lie in a slab and are moved twice, in and out.
//!
//! The bucket width adapts so that a bucket holds a few events in worlds of any size. The width
//! affects speed, never order.

use super::key::{Key, Order};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Number of buckets in the wheel, a power of two.
const BUCKETS: usize = 4096;
/// Target number of events per bucket.
const WANTED: usize = 6;
/// Buckets are narrowed when the mean number of events per non-empty bucket exceeds this multiple
/// of the target.
const CROWDED: u64 = 2;
/// Buckets are widened when the mean number of events per bucket read, at least 1, is below the
/// target divided by this.
const SPARSE: u64 = 3;
/// Fewer entries than this are sorted directly. So are more than [`INDICES`], as their positions
/// would not fit a rank.
const PLAIN: usize = 4;
/// Maximum number of entries sorted by rank, a power of two.
const INDICES: usize = 256;
/// Number of buckets after which the width is reconsidered.
const PERIOD: u64 = 512;
/// Number of events in the current bucket, including added ones, above which it is too wide.
const BUCKET_MAX: usize = 256;
/// Maximum number of sparse periods before buckets are widened.
const PATIENCE_MAX: u32 = 1024;
/// Shift of the maximum bucket width: 2^36 ticks, 0.69 s.
const SHIFT_MAX: u32 = 36;
/// Shift of the initial bucket width: 2^12 ticks, 41 ns.
const SHIFT_START: u32 = 12;

/// Key of an event and its index in the slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    time: u64,
    source: u32,
    slot: u32,
    sequence: u64,
}

impl Entry {
    /// Returns the key as two numbers to compare.
    #[inline]
    fn order(&self) -> Order {
        Order::new(self.time, self.source, self.sequence)
    }
}

/// Entry in a min-heap.
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

/// Sorting buffers: time and position of each entry as one number, and the entries in their new
/// order.
#[derive(Debug, Default)]
struct Sorter {
    ranks: Vec<u64>,
    sorted: Vec<Entry>,
}

impl Sorter {
    /// Sorts the entries of one bucket of width 2^`shift`, the latest entry first. A few bits give
    /// the time within the bucket. Most times differ, and numbers sort faster than entries.
    fn sort(&mut self, entries: &mut Vec<Entry>, shift: u32) {
        if !(PLAIN..=INDICES).contains(&entries.len()) {
            entries.sort_unstable_by_key(|entry| Reverse(entry.order()));
            return;
        }
        let within = (1 << shift) - 1;
        let rank = |(index, entry): (usize, &Entry)| {
            (within - (entry.time & within)) * INDICES as u64 + index as u64
        };
        self.ranks.clear();
        self.ranks.extend(entries.iter().enumerate().map(rank));
        self.ranks.sort_unstable();
        self.sorted.clear();
        self.sorted.extend(self.ranks.iter().map(|rank| entries[*rank as usize % INDICES]));
        std::mem::swap(entries, &mut self.sorted);
        for ties in entries.chunk_by_mut(|a, b| a.time == b.time) {
            if ties.len() > 1 {
                ties.sort_unstable_by_key(|entry| Reverse(entry.order()));
            }
        }
    }
}

/// Mean number of events per bucket, which sets the bucket width.
#[derive(Debug)]
struct Fill {
    /// Buckets read since the width was last reconsidered, followed by the events in them.
    turns: u64,
    turned: u64,
    /// Consecutive sparse periods.
    sparse: u32,
    /// Sparse periods before buckets are widened. Doubles each time the width proves too large,
    /// since a change of width moves all events.
    patience: u32,
}

impl Fill {
    /// Counts a bucket that is read. Returns whether the width is to be reconsidered.
    #[inline]
    fn read(&mut self, events: usize) -> bool {
        self.turns += 1;
        self.turned += events as u64;
        self.turns >= PERIOD
    }

    /// Returns the shift of the width that suits the events of the period that ends now.
    fn better(&mut self, shift: u32) -> u32 {
        let (held, wanted) = (self.turned, self.turns * WANTED as u64);
        (self.turns, self.turned) = (0, 0);
        self.sparse = if held * SPARSE < wanted { self.sparse + 1 } else { 0 };
        if held > wanted * CROWDED {
            return shift.saturating_sub(1);
        }
        if self.sparse < self.patience || shift >= SHIFT_MAX {
            return shift;
        }
        self.sparse = 0;
        shift + 1
    }
}

/// Calendar of events.
#[derive(Debug)]
pub(super) struct Calendar<E> {
    /// Current bucket, the latest entry first.
    current: Vec<Entry>,
    /// Entries added to the current bucket, or before it, since it was opened.
    late: BinaryHeap<Early>,
    sorter: Sorter,
    wheel: Vec<Vec<Entry>>,
    /// Lists for reuse. The last one is taken first, as it is still in the caches.
    spare: Vec<Vec<Entry>>,
    /// Bitmap of non-empty buckets.
    occupied: Vec<u64>,
    /// Events beyond the wheel.
    far: BinaryHeap<Early>,
    /// Bucket of the first event beyond the wheel; the last possible bucket if there is none.
    far_first: u64,
    /// Number of the current bucket: time divided by the width.
    base: u64,
    /// Bucket width, as a power of two.
    shift: u32,
    slots: Vec<Option<E>>,
    free: Vec<u32>,
    /// Number of events in a bucket above which narrower ones are tried.
    bucket_max: usize,
    fill: Fill,
}

impl<E> Default for Calendar<E> {
    fn default() -> Calendar<E> {
        Calendar {
            current: Vec::new(),
            late: BinaryHeap::new(),
            sorter: Sorter::default(),
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
            fill: Fill { turns: 0, turned: 0, sparse: 0, patience: 1 },
        }
    }
}

impl<E> Calendar<E> {
    /// Adds an event.
    ///
    /// # Panics
    /// With more than 2^32 queued events.
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

    /// Returns the order of the earliest event, if its bucket begins at or before `limit`.
    pub(super) fn front(&mut self, limit: u64) -> Option<Order> {
        if self.current.is_empty() && self.late.is_empty() {
            self.turn(limit);
        }
        self.open()
    }

    /// Returns the order of the earliest event in the current bucket.
    fn open(&self) -> Option<Order> {
        let late = self.late.peek().map(|early| early.0.order());
        self.current.last().map(Entry::order).into_iter().chain(late).min()
    }

    /// Returns a lower bound of all event times: the first open event's time, or the start of its
    /// bucket.
    pub(super) fn from(&self) -> u64 {
        match self.open() {
            Some(order) => order.0,
            None => self.next_bucket().map_or(u64::MAX, |bucket| bucket << self.shift),
        }
    }

    /// Takes the event found by [`Calendar::front`].
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

    /// Calls `show` with the events of the current bucket at or before `limit`, except those added
    /// since it was opened.
    pub(super) fn each_until<'a>(&'a self, limit: u64, show: &mut impl FnMut(&'a E)) {
        let due = self.current.iter().rev().take_while(|entry| entry.time <= limit);
        due.filter_map(|entry| self.slots[entry.slot as usize].as_ref()).for_each(show);
    }

    /// Opens the next non-empty bucket, unless it lies beyond `limit`.
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
        self.sorter.sort(&mut self.current, self.shift);
        if self.fill.read(self.current.len()) {
            self.reconsider();
        }
    }

    /// Moves events into the wheel that are no longer beyond it when `bucket` is current.
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

    /// Returns the number of the next non-empty bucket.
    #[inline]
    fn next_bucket(&self) -> Option<u64> {
        let first = (self.base + 1) as usize % BUCKETS;
        let word = self.occupied[first / 64] >> (first % 64);
        if word != 0 {
            // Buckets of the wheel come before all events beyond it.
            return Some(self.base + 1 + u64::from(word.trailing_zeros()));
        }
        self.next_bucket_beyond()
    }

    /// Returns the next non-empty bucket if the nearest ones are empty.
    fn next_bucket_beyond(&self) -> Option<u64> {
        let far = (self.far_first < u64::MAX).then_some(self.far_first);
        let first = (self.base + 1) as usize % BUCKETS;
        // The first bucket's word is scanned twice: first its upper part, last its lower part.
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

    /// Adapts the bucket width to the recent number of events per bucket.
    #[cold]
    fn reconsider(&mut self) {
        self.bucket_max = BUCKET_MAX;
        let shift = self.fill.better(self.shift);
        if shift != self.shift {
            self.set_width(shift);
        }
    }

    /// Narrows all buckets so that the first holds about the target number of events, if the
    /// current bucket is too full. If all events are at one instant, this does not help and is not
    /// retried soon.
    #[cold]
    fn refine(&mut self) {
        let late = self.late.iter().map(|early| early.0.time);
        let mut times: Vec<u64> = self.current.iter().map(|entry| entry.time).chain(late).collect();
        let held = times.len();
        let (before, &mut some, _) = times.select_nth_unstable(WANTED);
        let span = some - before.iter().min().copied().unwrap_or(some);
        if span > 0 {
            self.fill.patience = (self.fill.patience * 2).min(PATIENCE_MAX);
            self.set_width(span.ilog2().min(self.shift));
        }
        self.bucket_max = if self.current.len() > held / 2 { held * 2 } else { BUCKET_MAX };
    }

    /// Changes the bucket width and moves every entry to its new bucket.
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
        self.sorter.sort(&mut self.current, self.shift);
    }

    /// Returns the order of the earliest event.
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

    /// Returns all events, in no particular order.
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
