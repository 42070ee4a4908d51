//! Time of the clock cycles of a device that runs only while frames are in it.
//!
//! Cycles are tied to the time outside, or are as long as the machine makes them.

use crate::driver::CYCLE;
use axon_wire::Time;

/// Cycles from one deadline to the next, if cycles are tied to the time outside.
const BATCH_CYCLES: u64 = 16;
/// Cycles of one input, if they are not.
const OWN_CYCLES: u64 = 512;

/// A cycle and its time, from which those after it follow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    cycle: u64,
    time: Time,
    /// A cycle and the time of the probe units in it.
    units: (u64, Time),
    /// True if cycles are not tied to the time outside.
    is_own: bool,
}

impl Clock {
    /// Returns a clock in which this cycle is at time zero.
    pub(super) const fn new(cycle: u64) -> Clock {
        Clock { cycle, time: Time::ZERO, units: (cycle, Time::ZERO), is_own: false }
    }

    /// Unties cycles from the time outside.
    pub(super) const fn untie(&mut self) {
        self.is_own = true;
    }

    pub(super) const fn is_own(&self) -> bool {
        self.is_own
    }

    /// Sets the time of a cycle, up to which a device has run that is at rest or not.
    pub(super) fn reached(&mut self, cycle: u64, time: Time, is_at_rest: bool) {
        if is_at_rest || self.is_own {
            (self.cycle, self.time) = (cycle, time);
        }
    }

    /// Returns the time to which the probe units of a device at `cycle` are set with an input at
    /// `now`: never back.
    pub(super) fn time_of_units(&self, cycle: u64, now: Time) -> Time {
        let (from, time) = self.units;
        now.max(time + CYCLE * (cycle - from))
    }

    /// Sets the time of the probe units in this cycle, which is also that of an input at `now`.
    pub(super) fn units_set(&mut self, cycle: u64, now: Time, units: Time) {
        (self.cycle, self.time) = (cycle, now);
        self.units = (cycle, units);
    }

    /// Returns the cycle up to which a device at `cycle` runs with an input at `now`.
    pub(super) fn run_until(&self, cycle: u64, now: Time) -> u64 {
        if self.is_own { cycle + OWN_CYCLES } else { self.cycle_at(now) }
    }

    /// Returns the time at which a busy device at `cycle` runs again without an input.
    pub(super) fn deadline(&self, cycle: u64) -> Time {
        if self.is_own { self.time } else { self.time_of(cycle + BATCH_CYCLES) }
    }

    /// Returns the number of cycles that have ended by `now`.
    fn cycle_at(&self, now: Time) -> u64 {
        self.cycle + now.since(self.time).ticks() / CYCLE.ticks()
    }

    /// Returns the time of a cycle.
    fn time_of(&self, cycle: u64) -> Time {
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
        clock.reached(140, Time::from_nanos(900), false);
        clock.reached(150, Time::from_nanos(1_000), true);
        assert_eq!(clock.cycle_at(Time::from_nanos(1_016)), 152);
        assert_eq!(clock.time_of(152), Time::from_nanos(1_016));
        assert_eq!(clock.cycle_at(Time::ZERO), 150, "time does not go back");
        assert_eq!(clock.deadline(150), Time::from_nanos(1_128));
    }

    #[test]
    fn the_time_of_probe_units_never_goes_back() {
        let (at, mut clock) = (Time::from_nanos, Clock::new(0));
        clock.units_set(10, at(100), at(100));
        assert_eq!(clock.time_of_units(20, at(150)), at(180));
        assert_eq!(clock.time_of_units(20, at(200)), at(200));
        assert_eq!(clock.cycle_at(at(116)), 12);
    }

    #[test]
    fn a_clock_of_its_own_runs_the_same_cycles_at_any_time() {
        let mut clock = Clock::new(100);
        clock.untie();
        assert_eq!(clock.run_until(100, Time::ZERO), 612);
        clock.reached(612, Time::from_nanos(9), false);
        assert_eq!(clock.deadline(612), Time::from_nanos(9), "at once");
        assert_eq!(clock.run_until(612, Time::MAX), 1_124);
    }
}
