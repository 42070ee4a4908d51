//! Rate limiting of frames: a token bucket, and one driven by a reaction point.

use super::reaction::{ReactionPoint, RpConfig, RpError};
use axon_wire::{Bytes, Rate, Span, Time};

/// Units of credit per byte: credit grows by the rate, in bits per second, with each tick, so a bit
/// costs as many units as a second has ticks.
const UNITS_PER_BYTE: i128 = 8 * Span::from_secs(1).ticks() as i128;

/// Token bucket in integers, exact for any rate and any number of rate changes.
///
/// Credit grows with time at the rate and is capped at the burst; a frame costs its bytes. A frame
/// may leave while the credit is not negative, and may make it negative: the bucket need not know
/// the length of the next frame. Credit is kept in units in which a tick at any rate and a byte are
/// both whole numbers. Only the time returned by `ready_at` is rounded, up to a
/// tick, and credit earned in that part of a tick is kept on top of the burst. So the bytes sent by
/// a time `t` are at most `burst + rate * (t + 1 tick)` and one frame, and with frames always
/// queued they are never less than `rate * t`.
#[derive(Clone, Copy, Debug)]
pub struct TokenBucket {
    rate: Rate,
    burst: i128,
    credit: i128,
    /// Time up to which credit has been counted.
    at: Time,
}

impl TokenBucket {
    /// Returns a bucket at `now`, without credit; with a burst of zero frames are evenly spaced.
    pub(crate) fn new(now: Time, rate: Rate, burst: Bytes) -> TokenBucket {
        TokenBucket { rate, burst: units(burst), credit: 0, at: now }
    }

    /// Returns the current rate.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// Sets the rate from `now` on.
    pub(crate) fn set_rate(&mut self, now: Time, rate: Rate) {
        self.settle(now);
        self.rate = rate;
    }

    /// Charges a frame of `bytes` that has left at `now`.
    pub(crate) fn take(&mut self, now: Time, bytes: Bytes) {
        self.settle(now);
        self.credit = self.credit.saturating_sub(units(bytes));
    }

    /// Returns the earliest time, not before `now`, at which a frame may leave at this rate.
    pub(crate) fn ready_at(&self, now: Time) -> Time {
        let missing = self.credit.min(0).unsigned_abs();
        let ticks = missing.div_ceil(u128::from(self.rate.bits_per_second()));
        let ready = self.at + Span::from_ticks(u64::try_from(ticks).unwrap_or(u64::MAX));
        ready.max(now)
    }

    fn settle(&mut self, now: Time) {
        let elapsed = u128::from(now.since(self.at).ticks());
        let gain = elapsed * u128::from(self.rate.bits_per_second());
        if gain > 0 {
            let gain = i128::try_from(gain).unwrap_or(i128::MAX);
            let part_of_a_tick = i128::from(self.rate.bits_per_second()) - 1;
            self.credit = self.credit.saturating_add(gain).min(self.burst + part_of_a_tick);
            self.at = now;
        }
    }
}

fn units(bytes: Bytes) -> i128 {
    i128::from(bytes.0) * UNITS_PER_BYTE
}

/// Rate limiter that keeps one flow to the rate of its reaction point.
///
/// While the reaction point is inactive every frame may leave at once. Otherwise call
/// [`ready_at`](Self::ready_at) before a frame and [`sent`](Self::sent) after it, and call the
/// former again whenever a CNM has arrived or [`deadline`](Self::deadline) has passed, since the
/// rate has changed. When the flow has nothing left to send, call [`idle`](Self::idle).
#[derive(Clone, Debug)]
pub struct RateLimiter {
    point: ReactionPoint,
    bucket: TokenBucket,
    burst: Bytes,
}

impl RateLimiter {
    /// Returns an inactive limiter with a burst of `burst` bytes; `seed` fixes the jitter of the
    /// recovery.
    ///
    /// # Errors
    /// A configuration that [`RpConfig::check`] refuses.
    pub fn new(config: RpConfig, burst: Bytes, seed: u64) -> Result<RateLimiter, RpError> {
        let point = ReactionPoint::new(config, seed)?;
        let bucket = TokenBucket::new(Time::ZERO, config.max_rate, burst);
        Ok(RateLimiter { point, bucket, burst })
    }

    /// Returns the reaction point.
    pub fn point(&self) -> &ReactionPoint {
        &self.point
    }

    /// Processes a CNM for this flow, received at `now`.
    pub fn notified(&mut self, now: Time, qntz_fb: u8) {
        self.advance(now);
        let was_active = self.point.active();
        self.point.notified(now, qntz_fb);
        if was_active {
            self.bucket.set_rate(now, self.point.rate());
        } else {
            self.bucket = TokenBucket::new(now, self.point.rate(), self.burst);
        }
    }

    /// Returns the earliest time, not before `now`, at which the next frame may leave, unless the
    /// rate changes before then.
    pub fn ready_at(&mut self, now: Time) -> Time {
        self.advance(now);
        if self.point.active() { self.bucket.ready_at(now) } else { now }
    }

    /// Charges a frame of `bytes` that has left at `now`. Whether preamble and gap are included is
    /// the caller's choice; the rate counts the same bytes.
    pub fn sent(&mut self, now: Time, bytes: Bytes) {
        self.advance(now);
        if self.point.active() {
            self.bucket.take(now, bytes);
            self.point.sent(now, bytes);
            self.bucket.set_rate(now, self.point.rate());
        }
    }

    /// Ends the cycles of the timer that are over by `now`, each at its own time. Early or repeated
    /// calls are harmless.
    pub fn advance(&mut self, now: Time) {
        while let Some(timer) = self.point.deadline().filter(|timer| *timer <= now) {
            self.point.advance(timer);
            self.bucket.set_rate(timer, self.point.rate());
        }
    }

    /// Returns the time of the next call of [`advance`](Self::advance), if any.
    pub fn deadline(&self) -> Option<Time> {
        self.point.deadline()
    }

    /// Records that the flow has nothing to send at `now`. Returns whether the limiter is inactive,
    /// so that it may serve another flow.
    pub fn idle(&mut self, now: Time) -> bool {
        self.advance(now);
        self.point.release()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    const FRAME: Bytes = Bytes(1_500);

    /// Sends frames as soon as the bucket allows, until `end`; returns their send times.
    fn send_all(bucket: &mut TokenBucket, frame: Bytes, end: Time) -> Vec<Time> {
        let mut now = bucket.ready_at(Time::ZERO);
        let mut times = Vec::new();
        while now < end {
            times.push(now);
            bucket.take(now, frame);
            now = bucket.ready_at(now);
        }
        times
    }

    #[test]
    fn frames_are_evenly_spaced_without_a_burst() {
        let mut bucket = TokenBucket::new(Time::ZERO, Rate::gbps(1), Bytes(0));
        let times = send_all(&mut bucket, FRAME, Time::from_nanos(48_001));
        assert_eq!(times, [0, 12, 24, 36, 48].map(|micros| Time::from_nanos(micros * 1_000)));
    }

    #[test]
    fn a_rate_that_divides_nothing_does_not_drift_in_an_hour() {
        let rate = Rate::from_bits_per_second(7_777_777).unwrap();
        let mut bucket = TokenBucket::new(Time::ZERO, rate, Bytes(0));
        let hour = Span::from_secs(3_600);
        let frames = send_all(&mut bucket, FRAME, Time::ZERO + hour).len() as u64;
        assert_eq!(frames, rate.bytes_in(hour).0 / 1_500 + 1);
    }

    #[test]
    fn rest_earns_the_burst_and_no_more() {
        let mut bucket = TokenBucket::new(Time::ZERO, Rate::gbps(1), Bytes(3_000));
        let now = Time::ZERO + Span::from_secs(1);
        for _ in 0..3 {
            assert_eq!(bucket.ready_at(now), now);
            bucket.take(now, FRAME);
        }
        assert_eq!(bucket.ready_at(now), now + Span::from_micros(12));
    }

    fn limiter(rate: Rate) -> RateLimiter {
        RateLimiter::new(RpConfig::for_port(rate), Bytes(0), 3).unwrap()
    }

    #[test]
    fn an_inactive_limiter_holds_nothing_back() {
        let mut limiter = limiter(Rate::gbps(10));
        for _ in 0..5 {
            assert_eq!(limiter.ready_at(Time::ZERO), Time::ZERO);
            limiter.sent(Time::ZERO, FRAME);
        }
        assert!(limiter.idle(Time::ZERO));
    }

    #[test]
    fn after_a_notification_frames_leave_at_the_rate_of_the_reaction_point() {
        let mut limiter = limiter(Rate::gbps(10));
        let start = Time::from_nanos(500);
        limiter.notified(start, 16);
        assert_eq!(limiter.ready_at(start), start);
        limiter.sent(start, FRAME);
        assert_eq!(limiter.ready_at(start), start + Rate::mbps(8_750).time_for(FRAME));
        assert!(!limiter.idle(start));
    }

    #[test]
    fn a_timer_that_ends_while_a_frame_waits_counts_from_its_own_time() {
        let config = RpConfig {
            time_reset: Span::from_micros(100),
            min_dec_fac_percent: 0,
            ..RpConfig::for_port(Rate::gbps(1))
        };
        let mut limiter = RateLimiter::new(config, Bytes(0), 3).unwrap();
        for _ in 0..9 {
            limiter.notified(Time::ZERO, 63);
        }
        let slow = limiter.point().rate();
        limiter.sent(Time::ZERO, FRAME);
        let timer = limiter.deadline().unwrap();
        assert!(limiter.ready_at(Time::ZERO) > timer);
        // Called late, at a time when the second cycle is still running.
        let late = timer + Span::from_micros(1);
        let ready = limiter.ready_at(late);
        let fast = limiter.point().rate();
        let left = FRAME.0 - slow.bytes_in(timer.since(Time::ZERO)).0;
        let exact = timer + fast.time_for(Bytes(left));
        assert!(fast > slow && exact.since(ready) <= fast.time_for(Bytes(1)), "{ready} {exact}");
        assert!(ready.since(exact) <= fast.time_for(Bytes(1)));
    }

    #[test]
    fn a_recovered_limiter_lets_go_when_its_flow_rests() {
        let mut limiter = limiter(Rate::gbps(1));
        limiter.notified(Time::ZERO, 20);
        let later = Time::ZERO + Span::from_secs(1);
        assert!(limiter.idle(later));
        assert_eq!(limiter.deadline(), None);
    }

    proptest! {
        #[test]
        fn never_more_than_the_rate_allows_and_never_less_when_there_is_a_backlog(
            changes in prop::collection::vec((1u64..=800_000_000_000, 1u64..10_000_000), 1..20),
            frame in 64u64..=9_216,
        ) {
            let mut bucket = TokenBucket::new(Time::ZERO, Rate::gbps(1), Bytes(0));
            let (mut now, mut allowed, mut sent) = (Time::ZERO, 0u128, 0u128);
            for (rate, ticks) in changes {
                bucket.set_rate(now, Rate::from_bits_per_second(rate).unwrap());
                let end = now + Span::from_ticks(ticks);
                while bucket.ready_at(now) < end {
                    now = bucket.ready_at(now);
                    bucket.take(now, Bytes(frame));
                    sent += u128::from(frame);
                }
                now = end;
                allowed += u128::from(ticks) * u128::from(rate);
            }
            let sent_units = sent * UNITS_PER_BYTE as u128;
            let frame_units = u128::from(frame) * UNITS_PER_BYTE as u128;
            prop_assert!(sent_units <= allowed + frame_units);
            // A frame that is ready just at the end has not been sent.
            prop_assert!(sent_units + u128::from(Rate::gbps(800).bits_per_second()) > allowed);
        }

        #[test]
        fn any_amounts_are_taken(takes in prop::collection::vec(any::<(u64, u64, u64)>(), 1..50)) {
            let mut bucket = TokenBucket::new(Time::ZERO, Rate::gbps(800), Bytes(u64::MAX));
            for (now, bytes, rate) in takes {
                let now = Time::from_ticks(now);
                bucket.take(now, Bytes(bytes));
                bucket.set_rate(now, Rate::from_bits_per_second(rate.max(1)).unwrap());
                prop_assert!(bucket.ready_at(now) >= now);
            }
        }
    }
}
