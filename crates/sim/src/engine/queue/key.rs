//! The order of events.

use axon_wire::Time;

/// Key of an event, which defines the total order of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Time of the event.
    pub time: Time,
    /// Station that caused the event.
    pub source: u32,
    /// Number of events that this source had caused before.
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
