//! Token bucket.
//!
//! Instead of a token count it stores the time at which the tokens taken would be used up at the
//! exact rate (virtual scheduling, ITU-T I.371 annex A).

use axon_wire::{Span, Time};

/// Rate and burst size of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Interval between tokens.
    pub every: Span,
    /// Burst size, in tokens.
    pub burst: u64,
}

/// Token bucket, initially full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bucket {
    spent: Time,
}

impl Bucket {
    /// Creates a full bucket.
    pub const fn new() -> Bucket {
        Bucket { spent: Time::ZERO }
    }

    /// Returns whether there is a token at `now`.
    pub fn has(&self, now: Time, rate: Rate) -> bool {
        self.spent.max(now) + rate.every <= now + rate.every * rate.burst
    }

    /// Takes a token, even if there is none.
    pub fn take(&mut self, now: Time, rate: Rate) {
        self.spent = self.spent.max(now) + rate.every;
    }

    /// Takes `tokens` tokens if there are that many; returns whether there were.
    pub fn take_all(&mut self, now: Time, rate: Rate, tokens: u64) -> bool {
        let spent = self.spent.max(now) + rate.every * tokens;
        let has = spent <= now + rate.every * rate.burst;
        if has {
            self.spent = spent;
        }
        has
    }

    /// Returns the time of the next token if none is taken before.
    pub fn next(&self, now: Time, rate: Rate) -> Time {
        let before = (rate.every * rate.burst).ticks() - rate.every.ticks();
        now.max(Time::from_ticks(self.spent.ticks().saturating_sub(before)))
    }

    /// Returns whether the bucket is full at `now`.
    pub fn is_full(&self, now: Time) -> bool {
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

    #[test]
    fn several_tokens_are_taken_together_or_none_is() {
        let rate = Rate { every: Span::from_millis(10), burst: 5 };
        let at = |millis| Time::ZERO + Span::from_millis(millis);
        let mut bucket = Bucket::default();
        assert!(!bucket.take_all(at(0), rate, 6) && bucket.is_full(at(0)));
        assert!(bucket.take_all(at(0), rate, 4) && !bucket.take_all(at(0), rate, 2));
        assert_eq!(bucket.next(at(0), rate), at(0));
        assert!(bucket.take_all(at(0), rate, 1));
        assert_eq!(bucket.next(at(0), rate), at(10));
        assert!(bucket.take_all(at(20), rate, 2) && !bucket.has(at(20), rate));
        assert_eq!(bucket.next(at(20), rate), at(30));
        assert_eq!(bucket.next(at(500), rate), at(500));
    }
}
