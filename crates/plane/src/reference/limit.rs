//! Rate limit of the frames of one port to the control plane.

use crate::config::PuntLimit;
use axon_wire::{Span, Time};

/// Token bucket that counts its credit in time: a frame costs the interval between two frames at
/// the limit, credit grows as time passes, and a full bucket holds the cost of one burst.
#[derive(Clone, Debug)]
pub(super) struct Limit {
    cost: u64,
    credit_max: u64,
    credit: u64,
    last: Time,
}

impl Limit {
    /// Returns a full bucket. A rate or a burst of zero admits nothing.
    pub(super) fn new(limit: PuntLimit) -> Limit {
        let second = Span::from_secs(1).ticks();
        let (cost, burst) = match u64::from(limit.frames_per_second) {
            0 => (1, 0),
            rate => (second.div_ceil(rate), u64::from(limit.burst)),
        };
        Limit { cost, credit_max: cost * burst, credit: cost * burst, last: Time::ZERO }
    }

    /// Returns whether a frame at `now` may pass; only admitted frames are charged.
    pub(super) fn admit(&mut self, now: Time) -> bool {
        let earned = now.ticks().saturating_sub(self.last.ticks());
        self.credit = self.credit.saturating_add(earned).min(self.credit_max);
        self.last = now;
        let admitted = self.credit >= self.cost;
        if admitted {
            self.credit -= self.cost;
        }
        admitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axon::meter::Meter;

    #[test]
    fn it_admits_what_the_meter_of_the_software_plane_admits() {
        for (frames_per_second, burst) in [(1000, 5), (7, 3), (3, 1), (0, 5), (5, 0)] {
            let limit = PuntLimit { frames_per_second, burst };
            let (mut one, mut other) = (Limit::new(limit), Meter::new(limit));
            for step in 0..5_000u64 {
                // Short steps with a long pause now and then.
                let now = Time::from_nanos(step * 170_001 + (step / 900) * 3_000_000_000);
                assert_eq!(one.admit(now), other.admit(now), "{limit:?}, step {step}");
            }
        }
    }
}
