//! Time of the clock cycles of a device that runs only while frames are in it.

use axon_wire::{Span, Time};

/// Length of a cycle: 125 MHz.
const CYCLE: Span = Span::from_nanos(8);

/// A cycle and its time, from which those after it follow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    cycle: u64,
    time: Time,
}

impl Clock {
    /// Returns a clock in which this cycle is at time zero.
    pub(super) const fn new(cycle: u64) -> Clock {
        Clock { cycle, time: Time::ZERO }
    }

    /// Sets the time of a cycle, which is at rest until then.
    pub(super) fn set(&mut self, cycle: u64, time: Time) {
        *self = Clock { cycle, time };
    }

    /// Returns the number of cycles that have ended by `now`.
    pub(super) fn cycle_at(&self, now: Time) -> u64 {
        self.cycle + now.since(self.time).ticks() / CYCLE.ticks()
    }

    /// Returns the time of a cycle.
    pub(super) fn time_of(&self, cycle: u64) -> Time {
        self.time + CYCLE * cycle.saturating_sub(self.cycle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_count_from_the_last_rest() {
        let mut clock = Clock::new(100);
        assert_eq!(clock.cycle_at(Time::from_nanos(79)), 109);
        clock.set(150, Time::from_nanos(1_000));
        assert_eq!(clock.cycle_at(Time::from_nanos(1_016)), 152);
        assert_eq!(clock.time_of(152), Time::from_nanos(1_016));
        assert_eq!(clock.cycle_at(Time::ZERO), 150, "time does not go back");
    }
}
