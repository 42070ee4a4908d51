//! The events to come, in one total order.
//!
//! The order is that of [`Key`]: time, then the station that caused the event, then how
//! many events that station had caused before. No two events share a key, so the order
//! does not depend on how the queue keeps them. Today that is a binary heap of small
//! entries beside a slab of events; nothing outside this file knows.

use axon_wire::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

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

/// A priority queue of events, earliest key first.
#[derive(Clone, Debug)]
pub struct Queue<E> {
    heap: BinaryHeap<Reverse<(Key, u32)>>,
    slots: Vec<Option<E>>,
    free: Vec<u32>,
}

impl<E> Default for Queue<E> {
    fn default() -> Queue<E> {
        Queue { heap: BinaryHeap::new(), slots: Vec::new(), free: Vec::new() }
    }
}

impl<E> Queue<E> {
    /// Adds an event. Keys must differ; the caller counts sequences.
    ///
    /// # Panics
    /// With more than 2^32 events to come.
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
        self.heap.push(Reverse((key, slot)));
    }

    /// Takes the earliest event.
    pub fn pop(&mut self) -> Option<(Key, E)> {
        let Reverse((key, slot)) = self.heap.pop()?;
        let event = self.slots[slot as usize].take()?;
        self.free.push(slot);
        Some((key, event))
    }

    /// Takes the earliest event, if it is due at or before `limit`.
    pub fn pop_until(&mut self, limit: Time) -> Option<(Key, E)> {
        self.peek().filter(|key| key.time <= limit)?;
        self.pop()
    }

    /// The key of the earliest event.
    pub fn peek(&self) -> Option<Key> {
        self.heap.peek().map(|&Reverse((key, _))| key)
    }

    /// Events to come, in no order: for counting only.
    pub fn iter(&self) -> impl Iterator<Item = &E> {
        self.slots.iter().flatten()
    }

    /// How many events are to come.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether nothing is to come.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
