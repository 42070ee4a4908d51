//! HyStart++ (RFC 9406): slow start ends when round trips grow, before the queue overflows.
//!
//! The minimum round trip of each round is compared with that of the previous round. If it has
//! grown by an eighth (and at least 4 ms), the window grows four times slower for up to five rounds
//! (conservative slow start). If round trips shorten meanwhile, slow start resumes; otherwise it
//! ends. Queues that drain in less than 4 ms are not detected.

use super::acked::Acked;
use crate::segment::Seq;
use axon_wire::Span;

/// Minimum growth of the round trip that ends slow start (§4.3, MIN_RTT_THRESH).
const GROWN_MIN: Span = Span::from_millis(4);
/// Growth of the round trip that always ends slow start (MAX_RTT_THRESH).
const GROWN_MAX: Span = Span::from_millis(16);
/// Divisor of the round trip that gives the required growth (MIN_RTT_DIVISOR).
const GROWN_PART: u64 = 8;
/// Samples per round before it is evaluated (N_RTT_SAMPLE).
const SAMPLES: u8 = 8;
/// Growth divisor of conservative slow start (CSS_GROWTH_DIVISOR).
const SLOWER: u32 = 4;
/// Rounds of conservative slow start (CSS_ROUNDS).
const ROUNDS: u8 = 5;
/// Maximum window growth per acknowledgement, in segments: L of a sender without pacing.
const SEGMENTS_MAX: u32 = 8;

/// Stage of slow start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    SlowStart,
    /// Conservative slow start: rounds left, including this one, and the round trip at its start.
    Conservative { left: u8, baseline: Span },
}

/// State of a connection's first slow start.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HyStart {
    stage: Stage,
    /// End of the current round (windowEnd).
    end: Option<Seq>,
    /// Minimum round trip of the previous round, followed by that of the current round.
    last: Option<Span>,
    current: Option<Span>,
    samples: u8,
}

impl HyStart {
    /// Processes an acknowledgement. Returns whether it ends slow start.
    pub(crate) fn takes(&mut self, acked: &Acked) -> bool {
        if self.end.is_none_or(|end| !acked.ack.is_before(end)) {
            self.end = Some(acked.next);
            (self.last, self.current, self.samples) = (self.current, None, 0);
            if let Stage::Conservative { left, .. } = &mut self.stage {
                *left -= 1;
                if *left == 0 {
                    return true;
                }
            }
        }
        let Some(sample) = acked.sample else { return false };
        let current = self.current.map_or(sample, |current| current.min(sample));
        self.current = Some(current);
        self.samples = self.samples.saturating_add(1);
        if self.samples < SAMPLES {
            return false;
        }
        match (self.stage, self.last) {
            (Stage::SlowStart, Some(last)) => {
                let part = Span::from_ticks(last.ticks() / GROWN_PART);
                if current >= last + part.clamp(GROWN_MIN, GROWN_MAX) {
                    self.stage = Stage::Conservative { left: ROUNDS, baseline: current };
                }
            }
            (Stage::Conservative { baseline, .. }, _) if current < baseline => {
                self.stage = Stage::SlowStart;
            }
            _ => {}
        }
        false
    }

    /// Returns the window growth, in bytes, when `bytes` are acknowledged.
    pub(crate) fn growth(&self, bytes: u32, mss: u32) -> u32 {
        let bytes = bytes.min(SEGMENTS_MAX * mss);
        match self.stage {
            Stage::SlowStart => bytes,
            Stage::Conservative { .. } => bytes / SLOWER,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_wire::Time;

    const MSS: u32 = 1000;

    /// Runs rounds of 16 one-segment acknowledgements, each round with one round trip in
    /// milliseconds. Returns the round in which slow start ends.
    fn ends_in(hystart: &mut HyStart, rounds: &[u64]) -> Option<usize> {
        for (round, &millis) in (0u32..).zip(rounds) {
            for segment in 1..=16 {
                let ack = Seq((round * 16 + segment) * MSS);
                let acked = Acked {
                    now: Time::ZERO,
                    bytes: MSS,
                    rtt: Span::ZERO,
                    limited: true,
                    after_timeout: false,
                    sample: Some(Span::from_millis(millis)),
                    ack,
                    next: ack + 16 * MSS,
                };
                if hystart.takes(&acked) {
                    return Some(round as usize);
                }
            }
        }
        None
    }

    #[test]
    fn round_trips_that_grow_end_it_after_five_slower_rounds() {
        let mut hystart = HyStart::default();
        assert_eq!(ends_in(&mut hystart, &[20, 20, 23, 23]), None, "less than 4 ms");
        assert_eq!(hystart.growth(2 * MSS, MSS), 2 * MSS);
        let mut hystart = HyStart::default();
        assert_eq!(ends_in(&mut hystart, &[20, 20, 24]), None);
        assert_eq!(hystart.growth(2 * MSS, MSS), MSS / 2);
        let mut hystart = HyStart::default();
        assert_eq!(ends_in(&mut hystart, &[20, 24, 24, 30, 40, 40, 40, 40]), Some(6));
    }

    #[test]
    fn the_growth_that_counts_is_an_eighth_of_four_to_sixteen_milliseconds() {
        for (rounds, is_slower) in [
            (&[100, 112][..], false),
            (&[100, 113], true),
            (&[400, 415], false),
            (&[400, 416], true),
            (&[1, 4], false),
            (&[1, 5], true),
        ] {
            let mut hystart = HyStart::default();
            assert_eq!(ends_in(&mut hystart, rounds), None);
            assert_eq!(hystart.growth(MSS, MSS) < MSS, is_slower, "{rounds:?}");
        }
    }

    #[test]
    fn shorter_round_trips_resume_it() {
        let mut hystart = HyStart::default();
        assert_eq!(ends_in(&mut hystart, &[20, 30, 28]), None);
        assert_eq!(hystart.growth(MSS, MSS), MSS);
    }

    #[test]
    fn one_acknowledgement_counts_for_eight_segments_at_most() {
        assert_eq!(HyStart::default().growth(20 * MSS, MSS), 8 * MSS);
    }
}
