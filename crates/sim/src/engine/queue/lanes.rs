//! Lanes for events that arrive nearly in order and need no sorting.
//!
//! Most events follow their cause by one of a few delays: that of a cable, of a frame on the wire,
//! of a source between two datagrams. Events with one delay are caused in the order in which they
//! happen. So a few lists, each kept in order by appending only events later than its last, hold
//! nearly all of them, and the earliest event is the first of one list.
//!
//! There are two lists for each power of two of the delay, so an event in the far future never
//! blocks a list for near ones.

mod lane;

use super::key::{Key, Order};
use axon_wire::Time;
use lane::{Item, Lane, Spare};

/// Lists for each power of two of the delay.
const WAYS: usize = 2;
/// Powers of two of the delay. Events more than 2^32 ticks (43 ms) ahead are too few to matter.
const SPANS: usize = 32;
const LANES: usize = WAYS * SPANS;

/// Lists of events, each in order.
#[derive(Debug)]
pub(super) struct Lanes<E> {
    lanes: Box<[Lane<E>; LANES]>,
    spare: Spare<E>,
    /// Time of the first event of each list; [`u64::MAX`] if empty.
    heads: [u64; LANES],
    /// Time of the last event of each list, including events already taken.
    backs: [u64; LANES],
    /// Bitmap of non-empty lists.
    busy: u64,
    /// Time and list of the earliest event; [`u64::MAX`] if there is none.
    first: u64,
    first_lane: usize,
    /// Time of the event taken last.
    now: u64,
}

impl<E> Default for Lanes<E> {
    fn default() -> Lanes<E> {
        Lanes {
            lanes: Box::new(std::array::from_fn(|_| Lane::default())),
            spare: Spare::default(),
            heads: [u64::MAX; LANES],
            backs: [0; LANES],
            busy: 0,
            first: u64::MAX,
            first_lane: 0,
            now: 0,
        }
    }
}

impl<E> Lanes<E> {
    /// Returns the list to which an event may be appended: one of its delay, unless the event is
    /// earlier than the last of each.
    #[inline(always)]
    pub(super) fn lane_of(&self, key: Key) -> Option<usize> {
        let time = key.time.ticks();
        let span = (time.saturating_sub(self.now) | 1).ilog2() as usize;
        if span >= SPANS || time == u64::MAX {
            return None;
        }
        let lane = span * WAYS;
        if self.backs[lane] < time {
            Some(lane)
        } else if self.backs[lane + 1] < time {
            Some(lane + 1)
        } else {
            self.tied_lane_of(key, lane)
        }
    }

    /// Appends an event to its list.
    #[inline(always)]
    pub(super) fn push(&mut self, lane: usize, key: Key, event: E) {
        let lane = lane % LANES;
        let Key { time, source, sequence } = key;
        let time = time.ticks();
        self.backs[lane] = time;
        let item = Item { time, sequence, source, event };
        if self.heads[lane] == u64::MAX {
            self.begin(lane, key);
            return self.lanes[lane].begin(item);
        }
        self.lanes[lane].push(item, &mut self.spare);
    }

    /// Returns the list for an event that is not later than the last event of both lists from
    /// `lane`.
    #[cold]
    fn tied_lane_of(&self, key: Key, lane: usize) -> Option<usize> {
        let order = Order::of(key);
        let fits = |lane: &usize| self.lanes[*lane].last().is_none_or(|last| last.order() < order);
        (lane..lane + WAYS).find(fits)
    }

    /// Puts an event into an empty list.
    #[inline]
    fn begin(&mut self, lane: usize, key: Key) {
        let time = key.time.ticks();
        self.heads[lane] = time;
        self.busy |= 1 << lane;
        if time < self.first || time == self.first && self.order() > Some(Order::of(key)) {
            (self.first, self.first_lane) = (time, lane);
        }
    }

    /// Returns the time of the earliest event, or [`u64::MAX`] if there is none.
    #[inline]
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    /// Returns the order of the earliest event.
    #[inline]
    pub(super) fn order(&self) -> Option<Order> {
        self.lanes[self.first_lane].first().map(Item::order)
    }

    /// Advances the time to that of an event taken elsewhere.
    #[inline]
    pub(super) fn advance(&mut self, now: u64) {
        self.now = now;
    }

    /// Takes the earliest event.
    #[inline(always)]
    pub(super) fn pop(&mut self) -> Option<(Key, E)> {
        let lane = self.first_lane;
        let list = &mut self.lanes[lane];
        let Item { time, source, sequence, event } = list.pop()?;
        self.now = time;
        if list.is_drained() {
            list.draw(&mut self.spare);
        }
        self.heads[lane] = match list.first() {
            Some(next) => next.time,
            None => {
                self.busy &= !(1 << lane);
                u64::MAX
            }
        };
        self.find_first();
        Some((Key { time: Time::from_ticks(time), source, sequence }, event))
    }

    #[inline(always)]
    fn find_first(&mut self) {
        let (mut first, mut first_lane) = (u64::MAX, 0);
        let mut busy = self.busy;
        while busy != 0 {
            let lane = busy.trailing_zeros() as usize % LANES;
            busy &= busy - 1;
            let head = self.heads[lane];
            if head < first || head == first && self.is_before(lane, first_lane) {
                (first, first_lane) = (head, lane);
            }
        }
        (self.first, self.first_lane) = (first, first_lane);
    }

    #[cold]
    fn is_before(&self, lane: usize, other: usize) -> bool {
        let order = |lane: usize| self.lanes[lane].first().map(Item::order);
        order(lane) < order(other)
    }

    /// Calls `show` with the events at or before `limit`, in no particular order.
    pub(super) fn each_until<'a>(&'a self, limit: u64, show: &mut impl FnMut(&'a E)) {
        let mut busy = self.busy;
        while busy != 0 {
            let lane = busy.trailing_zeros() as usize % LANES;
            busy &= busy - 1;
            if self.heads[lane] <= limit {
                self.lanes[lane].each_until(limit, show);
            }
        }
    }

    /// Returns all events, in no particular order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &E> {
        self.lanes.iter().flat_map(Lane::iter).map(|item| &item.event)
    }
}
