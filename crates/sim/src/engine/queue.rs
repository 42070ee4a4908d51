//! The events to come, in one total order.
//!
//! The order is that of [`Key`]: time, then the station that caused the event, then how
//! many events that station had caused before. No two events share a key, so the order
//! does not depend on how the queue keeps them.
//!
//! It keeps them in a calendar (R. Brown, CACM 31(10), 1988): a wheel of buckets, each for
//! an equal stretch of time, and a heap for what lies beyond one turn of the wheel. A bucket
//! is a plain list until its time comes; then it is sorted, and read from its end. What is
//! added to the bucket that is being read goes to a small heap beside it. Entries are small;
//! the events themselves lie in a slab and move twice, in and out.
//!
//! The width of a bucket follows the events, so that one holds some few or dozens whatever the size
//! of the world: enough to sort and to fetch together, few enough to sort fast. It decides
//! how long things take, never their order.

use axon_wire::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Buckets of the wheel: a power of two.
const BUCKETS: usize = 4096;
/// Events that a bucket should hold where what they need is in the processor's caches, and where
/// it has to be fetched: then it is fetched for all of them together.
const WANTED: [usize; 2] = [6, 32];
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

/// The place of an event among all events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// When it happens.
    pub time: Time,
    /// The station that caused it.
    pub source: u32,
    /// Events that this source had caused before.
    pub sequence: u64,
}

/// A key, and where its event lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    time: u64,
    source: u32,
    slot: u32,
    sequence: u64,
}

impl Entry {
    fn key(&self) -> Key {
        let Entry { time, source, sequence, .. } = *self;
        Key { time: Time::from_ticks(time), source, sequence }
    }

    /// Its key as two numbers to compare.
    #[inline]
    fn order(&self) -> (u64, u128) {
        (self.time, u128::from(self.source) << 64 | u128::from(self.sequence))
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

/// A priority queue of events, earliest key first.
#[derive(Debug)]
pub struct Queue<E> {
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
    len: usize,
    /// Events that a bucket should hold.
    wanted: usize,
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

impl<E> Default for Queue<E> {
    fn default() -> Queue<E> {
        Queue {
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
            len: 0,
            wanted: WANTED[0],
            bucket_max: BUCKET_MAX,
            sparse: 0,
            patience: 1,
            turns: 0,
            turned: 0,
        }
    }
}

impl<E> Queue<E> {
    /// Says whether what events need has to be fetched from memory: buckets hold more of them then.
    pub fn fetch_together(&mut self, together: bool) {
        self.wanted = WANTED[usize::from(together)];
    }

    /// Adds an event. Keys must differ; the caller counts sequences.
    ///
    /// # Panics
    /// With more than 2^32 events to come.
    #[inline]
    pub fn push(&mut self, key: Key, event: E) {
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
        self.len += 1;
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
                *list = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(WANTED[0]));
                self.occupied[index / 64] |= 1 << (index % 64);
            }
            list.push(entry);
        } else {
            self.far.push(Early(entry));
            self.far_first = self.far_first.min(bucket);
        }
    }

    /// Takes the earliest event.
    pub fn pop(&mut self) -> Option<(Key, E)> {
        self.pop_until(Time::MAX)
    }

    /// If all events of the bucket that is being read are taken, begins the next one, unless
    /// it lies beyond `limit`; says whether it did. Nobody need call this.
    #[inline]
    pub fn begin(&mut self, limit: Time) -> bool {
        self.current.is_empty() && self.late.is_empty() && self.turn(limit.ticks())
    }

    /// The events of the bucket that is being read that were there when it began or was last
    /// split, less those taken.
    pub fn begun(&self) -> impl Iterator<Item = &E> + Clone {
        self.current.iter().rev().filter_map(|entry| self.slots[entry.slot as usize].as_ref())
    }

    /// Takes the earliest event, if it is due at or before `limit`.
    #[inline]
    pub fn pop_until(&mut self, limit: Time) -> Option<(Key, E)> {
        self.begin(limit);
        let entry = if self.late.is_empty() {
            self.current.pop_if(|entry| entry.time <= limit.ticks())?
        } else {
            self.pop_late(limit.ticks())?
        };
        let event = self.slots[entry.slot as usize].take()?;
        self.free.push(entry.slot);
        self.len -= 1;
        Some((entry.key(), event))
    }

    /// Takes the earliest entry where some were added while the bucket was read.
    #[inline(never)]
    fn pop_late(&mut self, limit: u64) -> Option<Entry> {
        let late = self.late.peek()?.0;
        match self.current.last() {
            Some(read) if read.order() < late.order() => {
                self.current.pop_if(|entry| entry.time <= limit)
            }
            _ if late.time > limit => None,
            _ => self.late.pop().map(|early| early.0),
        }
    }

    /// Begins the next bucket that is not empty, unless it lies beyond `limit`.
    fn turn(&mut self, limit: u64) -> bool {
        let Some(bucket) = self.next_bucket().filter(|bucket| bucket << self.shift <= limit) else {
            return false;
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
        true
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
        let (held, wanted) = (self.turned, self.turns * self.wanted as u64);
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
        let (before, &mut some, _) = times.select_nth_unstable(self.wanted);
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

    /// The key of the earliest event.
    pub fn peek(&self) -> Option<Key> {
        let read = self.current.last();
        let late = self.late.peek().map(|early| &early.0);
        let open = read.into_iter().chain(late).min_by_key(|entry| entry.order());
        if let Some(entry) = open {
            return Some(entry.key());
        }
        let bucket = self.next_bucket()?;
        let near = self.wheel[bucket as usize % BUCKETS].iter();
        let near = near.filter(|entry| entry.time >> self.shift == bucket);
        let far = self.far.peek().map(|early| &early.0);
        near.chain(far).min_by_key(|entry| entry.order()).map(Entry::key)
    }

    /// Events to come, in no order: for counting only.
    pub fn iter(&self) -> impl Iterator<Item = &E> {
        self.slots.iter().flatten()
    }

    /// How many events are to come.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing is to come.
    pub fn is_empty(&self) -> bool {
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

    #[test]
    fn buckets_that_a_burst_has_made_narrow_get_wide_again() {
        let mut queue = Queue::default();
        for tick in 0..300 {
            queue.push(Key { time: Time::from_ticks(tick), source: 0, sequence: tick }, tick);
        }
        while queue.pop().is_some() {}
        let narrow = queue.shift;
        assert!(narrow < SHIFT_START, "{narrow}");
        for number in 1..100_000 {
            queue.push(key(number * 1000, 0, number), number);
            assert_eq!(queue.pop().map(|(_, number)| number), Some(number));
        }
        assert!(queue.shift > narrow, "{} after {narrow}", queue.shift);
    }

    #[test]
    fn places_are_used_again() {
        let mut queue = Queue::default();
        for round in 0..100 {
            queue.push(key(round, 0, round), round);
            queue.push(key(round, 1, round), round);
            queue.pop();
            queue.pop();
        }
        assert_eq!(queue.slots.len(), 2);
        assert_eq!(queue.iter().count(), 0);
    }

    /// How far ahead events are caused, in ticks: up to a power of two that changes as the
    /// world does, from all at once to seconds.
    fn spans(phase: u64) -> u64 {
        [1, 1 << 4, 1 << 20, 1 << 12, 1 << 38, 1 << 8, 1 << 30][phase as usize % 7]
    }

    #[test]
    fn the_order_is_that_of_a_sorted_map_whatever_the_events() {
        for seed in 0..5u64 {
            let mut random = oorandom::Rand64::new(seed.into());
            let (mut queue, mut map) = (Queue::default(), BTreeMap::new());
            let (mut now, mut sequence) = (0, 0);
            for step in 0..24_000u64 {
                let busy = 1 + (step / 4000) % 3;
                for _ in 0..random.rand_range(0..2 * busy + 1) {
                    let ahead = random.rand_range(0..spans(seed + step / 2400));
                    let time = Time::from_ticks(now + ahead);
                    let key = Key { time, source: random.rand_range(0..50) as u32, sequence };
                    queue.push(key, sequence);
                    map.insert(key, sequence);
                    sequence += 1;
                }
                let limit = Time::from_ticks(now + random.rand_range(0..1 << 22));
                let expected = map.first_key_value().map(|(&key, &event)| (key, event));
                assert_eq!(queue.peek(), expected.map(|(key, _)| key), "seed {seed}, step {step}");
                let expected = expected.filter(|(key, _)| key.time <= limit);
                assert_eq!(queue.pop_until(limit), expected, "seed {seed}, step {step}");
                if let Some((key, _)) = expected {
                    map.remove(&key);
                    now = key.time.ticks();
                }
                assert_eq!(queue.len(), map.len());
            }
            while let Some((key, event)) = map.pop_first() {
                assert_eq!(queue.pop(), Some((key, event)), "seed {seed}");
            }
            assert!(queue.pop().is_none());
        }
    }

    #[test]
    fn every_event_of_a_bucket_is_shown_before_it_is_taken() {
        let mut queue = Queue::default();
        for time in 1..1000 {
            queue.push(key(time * 100, 0, time), time);
        }
        let mut shown = vec![false; 1000];
        loop {
            if queue.begin(Time::MAX) {
                queue.begun().for_each(|&event| shown[event as usize] = true);
            }
            let Some((_, event)) = queue.pop() else { break };
            assert!(shown[event as usize], "{event}");
        }
    }
}
