//! A token bucket, for what may be done so often and not more.
//!
//! In plain English: instead of counting tokens it remembers when somebody who keeps exactly to the
//! rate would be done with all that was taken (virtual scheduling, ITU-T I.371 annex A).

use axon_wire::{Span, Time};

/// How often something may be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    /// From one time to the next in the long run.
    pub(crate) every: Span,
    /// So often at once after a rest.
    pub(crate) burst: u64,
}

/// A bucket: full when it is new.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bucket {
    spent: Time,
}

impl Bucket {
    /// A full bucket.
    pub(crate) const fn new() -> Bucket {
        Bucket { spent: Time::ZERO }
    }

    /// Whether there is a token at `now`.
    pub(crate) fn has(&self, now: Time, rate: Rate) -> bool {
        self.spent.max(now) + rate.every <= now + rate.every * rate.burst
    }

    /// Takes a token, whether or not there is one.
    pub(crate) fn take(&mut self, now: Time, rate: Rate) {
        self.spent = self.spent.max(now) + rate.every;
    }

    /// Whether all tokens are there at `now`.
    pub(crate) fn is_full(&self, now: Time) -> bool {
        self.spent <= now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_and_then_the_rate() {
        let rate = Rate { every: Span::from_millis(10), burst: 5 };
        let mut bucket = Bucket::default();
        let mut taken = |now: Time| {
            let tries = 0..100;
            let done = tries.filter(|_| {
                let has = bucket.has(now, rate);
                if has {
                    bucket.take(now, rate);
                }
                has
            });
            (done.count(), bucket.is_full(now))
        };
        let at = |millis| Time::ZERO + Span::from_millis(millis);
        assert_eq!(taken(at(0)), (5, false));
        assert_eq!(taken(at(9)), (0, false));
        assert_eq!(taken(at(10)), (1, false));
        assert_eq!(taken(at(35)), (2, false));
        assert_eq!(taken(at(1000)), (5, false), "no more than a burst after a rest");
    }
}
