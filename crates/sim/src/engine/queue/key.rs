//! The place of an event among all.

use axon_wire::Time;

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

/// A key as two numbers to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Order(pub(super) u64, u128);

impl Order {
    #[inline]
    pub(super) fn new(time: u64, source: u32, sequence: u64) -> Order {
        Order(time, u128::from(source) << 64 | u128::from(sequence))
    }

    pub(super) fn of(key: Key) -> Order {
        Order::new(key.time.ticks(), key.source, key.sequence)
    }

    pub(super) fn key(self) -> Key {
        let Order(time, rest) = self;
        let (source, sequence) = ((rest >> 64) as u32, rest as u64);
        Key { time: Time::from_ticks(time), source, sequence }
    }
}
