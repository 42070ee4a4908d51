//! Rate limit of the packets of one port to the control plane.

use crate::config::PuntLimit;
use axon_wire::{Span, Time};

/// Rate limit of one sender: a token bucket over frames.
#[derive(Clone, Copy, Debug)]
pub struct Meter {
    pace: Pace,
    next: Time,
}

impl Meter {
    /// Returns a meter with a full burst. A rate or a burst of zero admits nothing.
    pub fn new(limit: PuntLimit) -> Meter {
        Meter { pace: Pace::new(limit), next: Time::ZERO }
    }

    /// Returns whether a frame at `now` is within the limit; only admitted frames are charged.
    pub fn admit(&mut self, now: Time) -> bool {
        self.pace.admit(&mut self.next, now)
    }
}

/// Token bucket over frames, in integers, as virtual scheduling (ITU-T I.371 annex A, the generic
/// cell rate algorithm): instead of tokens it stores the next send time of a sender exactly at the
/// limit.
///
/// A frame at `now` conforms if that time is at most `burst - 1` intervals ahead of `now`; then the
/// time advances by one interval, counted from `now` if it has passed. The interval is rounded up
/// to a whole tick, so the long-run rate is never above the limit.
///
/// Many senders may share a limit, each with its own time, initially [`Time::ZERO`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    interval: Span,
    /// Maximum time that a sender may be ahead; `None` admits nothing.
    tolerance: Option<Span>,
}

impl Pace {
    pub(super) fn new(limit: PuntLimit) -> Pace {
        let rate = u64::from(limit.frames_per_second);
        let interval = Span::from_ticks(Span::from_secs(1).ticks().div_ceil(rate.max(1)));
        let tolerance = match limit.burst.checked_sub(1) {
            Some(ahead) if rate > 0 => Some(interval * u64::from(ahead)),
            _ => None,
        };
        Pace { interval, tolerance }
    }

    /// Returns whether a frame at `now` is within the limit, as [`Meter::admit`], for the sender
    /// with next send time `next`.
    pub(super) fn admit(&self, next: &mut Time, now: Time) -> bool {
        let Some(tolerance) = self.tolerance else {
            return false;
        };
        if *next > now + tolerance {
            return false;
        }
        *next = (*next).max(now) + self.interval;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admitted(meter: &mut Meter, now: Time, tries: u32) -> u32 {
        (0..tries).filter(|_| meter.admit(now)).count() as u32
    }

    #[test]
    fn a_burst_passes_and_then_the_rate() {
        let mut meter = Meter::new(PuntLimit { frames_per_second: 1000, burst: 5 });
        assert_eq!(admitted(&mut meter, Time::ZERO, 20), 5);
        assert_eq!(admitted(&mut meter, Time::from_nanos(999_999), 20), 0);
        assert_eq!(admitted(&mut meter, Time::from_nanos(1_000_000), 20), 1);
        assert_eq!(admitted(&mut meter, Time::from_nanos(3_000_000), 20), 2);
        assert_eq!(admitted(&mut meter, Time::from_nanos(1_000_000_000), 20), 5, "rested");
    }

    #[test]
    fn the_long_run_rate_is_never_above_the_limit() {
        let mut meter = Meter::new(PuntLimit { frames_per_second: 7, burst: 3 });
        let passed: u32 =
            (0..100_000u64).map(|t| admitted(&mut meter, Time::from_nanos(t * 100_000), 1)).sum();
        assert_eq!(passed, 3 + 69, "the burst, and 7 a second for just under ten seconds");
    }

    #[test]
    fn zero_lets_nothing_pass() {
        for (frames_per_second, burst) in [(0, 5), (5, 0), (0, 0)] {
            let mut meter = Meter::new(PuntLimit { frames_per_second, burst });
            assert_eq!(admitted(&mut meter, Time::from_nanos(1 << 40), 3), 0);
        }
    }
}
