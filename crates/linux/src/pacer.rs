//! Limits an egress to the configured link rate.

use axon_wire::{Bytes, Rate, Span, Time};

/// Overhead of a frame on the wire, in bytes: preamble and start delimiter (8), FCS (4) and
/// inter-frame gap (12) (IEEE 802.3 clause 4.4.2).
pub const WIRE_OVERHEAD_BYTES: u64 = 24;

/// Longest time by which the wire may lag behind the clock and still catch up. It bounds bursts.
pub(crate) const SLACK: Span = Span::from_millis(2);

/// Model of one wire. It is busy for (bytes + 24) / rate after each frame.
///
/// The wire keeps its own time, `free_at`, which advances by exactly the duration of each frame. If
/// a timer fires late, `free_at` lags behind the clock, and the following frames go at once until
/// it has caught up. Jitter therefore does not lower the rate. The lag is bounded by `SLACK`, so
/// that an idle wire does not send a long burst.
#[derive(Clone, Copy, Debug)]
pub struct Pacer {
    rate: Option<Rate>,
    free_at: Time,
}

impl Pacer {
    /// Creates a free wire with this rate. Without a rate, the wire is free at once after every
    /// frame.
    pub(crate) fn new(rate: Option<Rate>) -> Pacer {
        Pacer { rate, free_at: Time::ZERO }
    }

    /// Puts a frame of `bytes` on the wire at `now`. Returns the time at which the wire is free
    /// again, which may be in the past.
    pub(crate) fn send(&mut self, now: Time, bytes: usize) -> Time {
        let Some(rate) = self.rate else { return Time::ZERO };
        let start = self.free_at.max(now - SLACK);
        self.free_at = start + rate.time_for(Bytes(bytes as u64 + WIRE_OVERHEAD_BYTES));
        self.free_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends `frames` frames of 1500 bytes, each at its time, with every wake-up delayed by `late`.
    fn finish(frames: u32, late: Span) -> Time {
        let mut pacer = Pacer::new(Some(Rate::mbps(100)));
        let mut now = Time::from_nanos(1_000_000_000);
        for _ in 0..frames {
            let free_at = pacer.send(now, 1500);
            if free_at > now {
                now = free_at + late;
            }
        }
        now
    }

    #[test]
    fn the_rate_is_kept_although_every_timer_is_late() {
        let wire = Rate::mbps(100).time_for(Bytes(1524)) * 1000;
        let took = finish(1000, Span::from_micros(60)).since(Time::from_nanos(1_000_000_000));
        assert!(took.as_nanos() + SLACK.as_nanos() >= wire.as_nanos());
        assert!(took.as_nanos() <= wire.as_nanos() + 60_000);
    }

    #[test]
    fn a_burst_after_a_rest_is_no_longer_than_the_slack() {
        let mut pacer = Pacer::new(Some(Rate::mbps(100)));
        let now = Time::from_nanos(5_000_000_000);
        let burst = (0..100).take_while(|_| pacer.send(now, 1500) <= now).count();
        assert_eq!(burst, 16);
    }

    #[test]
    fn without_a_rate_the_wire_is_free_at_once() {
        let now = Time::from_nanos(7);
        // A loop that read its clock before this frame also finds the wire free.
        assert_eq!(Pacer::new(None).send(now, 1500), Time::ZERO);
    }
}
