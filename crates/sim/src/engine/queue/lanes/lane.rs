//! One list of events in order, in chunks. It uses only the memory that its current events need,
//! and reuses the most recent chunk first, which is still in the processor's caches. Free chunks
//! are kept.

use crate::engine::queue::key::Order;
use std::collections::VecDeque;

/// Events per chunk.
const CHUNK: usize = 64;

/// Event with its key.
#[derive(Debug)]
pub(super) struct Item<E> {
    pub(super) time: u64,
    pub(super) sequence: u64,
    pub(super) source: u32,
    pub(super) event: E,
}

impl<E> Item<E> {
    #[inline]
    pub(super) fn order(&self) -> Order {
        Order::new(self.time, self.source, self.sequence)
    }
}

/// Free chunks. The last one is reused first.
#[derive(Debug)]
pub(super) struct Spare<E>(Vec<VecDeque<Item<E>>>);

impl<E> Default for Spare<E> {
    fn default() -> Spare<E> {
        Spare(Vec::new())
    }
}

/// List of events. If its front chunk is empty, the whole list is.
#[derive(Debug)]
pub(super) struct Lane<E> {
    front: VecDeque<Item<E>>,
    middle: VecDeque<VecDeque<Item<E>>>,
    back: VecDeque<Item<E>>,
}

impl<E> Default for Lane<E> {
    fn default() -> Lane<E> {
        Lane { front: VecDeque::new(), middle: VecDeque::new(), back: VecDeque::new() }
    }
}

impl<E> Lane<E> {
    /// Puts an event into an empty list.
    #[inline]
    pub(super) fn begin(&mut self, item: Item<E>) {
        self.front.push_back(item);
    }

    /// Appends an event to a list that is not empty.
    #[inline(always)]
    pub(super) fn push(&mut self, item: Item<E>, spare: &mut Spare<E>) {
        if self.back.len() == CHUNK {
            self.extend(spare);
        }
        self.back.push_back(item);
    }

    #[inline(never)]
    fn extend(&mut self, spare: &mut Spare<E>) {
        let fresh = spare.0.pop().unwrap_or_else(|| VecDeque::with_capacity(CHUNK));
        self.middle.push_back(std::mem::replace(&mut self.back, fresh));
    }

    /// Takes the first event; see [`Lane::draw`].
    #[inline(always)]
    pub(super) fn pop(&mut self) -> Option<Item<E>> {
        self.front.pop_front()
    }

    /// Returns whether the front chunk is empty.
    #[inline(always)]
    pub(super) fn is_drained(&self) -> bool {
        self.front.is_empty()
    }

    /// Replaces the empty front chunk with the next one.
    #[inline(never)]
    pub(super) fn draw(&mut self, spare: &mut Spare<E>) {
        self.front.clear();
        match self.middle.pop_front() {
            Some(next) => spare.0.push(std::mem::replace(&mut self.front, next)),
            None => std::mem::swap(&mut self.front, &mut self.back),
        }
    }

    /// Returns the first event.
    #[inline(always)]
    pub(super) fn first(&self) -> Option<&Item<E>> {
        self.front.front()
    }

    /// Returns the last event.
    pub(super) fn last(&self) -> Option<&Item<E>> {
        let middle = || self.middle.back().and_then(VecDeque::back);
        self.back.back().or_else(middle).or_else(|| self.front.back())
    }

    /// Calls `show` with the events at or before `limit`, in order.
    pub(super) fn each_until<'a>(&'a self, limit: u64, show: &mut impl FnMut(&'a E)) {
        let chunks = std::iter::once(&self.front).chain(&self.middle);
        for chunk in chunks.chain(std::iter::once(&self.back)) {
            for item in chunk {
                if item.time > limit {
                    return;
                }
                show(&item.event);
            }
        }
    }

    /// Returns all events, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Item<E>> {
        self.front.iter().chain(self.middle.iter().flatten()).chain(&self.back)
    }
}
