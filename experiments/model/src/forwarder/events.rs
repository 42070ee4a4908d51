//! Pending events, in one total order.

use std::collections::BTreeMap;

/// Simulated time in picoseconds.
pub(super) type Picos = u64;

/// Converts microseconds to picoseconds. The result is rounded up, so that nothing ends too early.
pub(super) fn picos(us: f64) -> Picos {
    (us * 1e6).ceil() as Picos
}

/// Converts picoseconds to microseconds.
pub(super) fn micros(time: Picos) -> f64 {
    time as f64 / 1e6
}

/// Event, named after its source. Sources are ordered as listed here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    /// The next packet arrives at the sender.
    Arrival,
    /// The set-up of a DMA over the bus ends.
    SetUp,
    /// An engine or the processor completes its accesses, unless the epoch of the memory has
    /// changed.
    Memory(u64),
    /// The firmware's wait for its host, and its stall, end.
    Firmware,
    /// The host completes a packet.
    Host,
}

impl Event {
    fn source(self) -> u8 {
        match self {
            Event::Arrival => 0,
            Event::SetUp => 1,
            Event::Memory(_) => 2,
            Event::Firmware => 3,
            Event::Host => 4,
        }
    }
}

/// Pending events, in their total order.
#[derive(Debug, Default)]
pub(super) struct Events {
    /// Events by time, source, and a sequence number that counts all events.
    ahead: BTreeMap<(Picos, u8, u64), Event>,
    sequence: u64,
}

impl Events {
    /// Adds an event at `time`.
    pub(super) fn push(&mut self, time: Picos, event: Event) {
        self.sequence += 1;
        self.ahead.insert((time, event.source(), self.sequence), event);
    }

    /// Removes and returns the first event.
    pub(super) fn pop(&mut self) -> Option<(Picos, Event)> {
        self.ahead.pop_first().map(|((time, ..), event)| (time, event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_one_time_come_in_the_order_of_their_sources_and_then_as_they_were_added() {
        let mut events = Events::default();
        for (time, event) in [
            (5, Event::Host),
            (5, Event::Memory(2)),
            (5, Event::Memory(1)),
            (4, Event::Host),
            (5, Event::Arrival),
        ] {
            events.push(time, event);
        }
        let order: Vec<_> = std::iter::from_fn(|| events.pop()).collect();
        let expected = [
            (4, Event::Host),
            (5, Event::Arrival),
            (5, Event::Memory(2)),
            (5, Event::Memory(1)),
            (5, Event::Host),
        ];
        assert_eq!(order, expected);
    }

    #[test]
    fn times_are_rounded_up() {
        assert_eq!(picos(1.0), 1_000_000);
        assert_eq!(picos(0.000_000_1), 1);
        assert_eq!(micros(2_500_000), 2.5);
    }
}
