//! HyStart++ (RFC 9406): slow start ends when round trips grow, before the queue overflows.
//!
//! The shortest round trip of each round is compared with that of the round before. If it has
//! grown by an eighth (and 4 ms at least), the window grows four times slower from then on, for up
//! to five rounds (conservative slow start). If round trips are shorter again meanwhile, slow start
//! goes on; else it has ended. Queues that drain in less than 4 ms never show.

use super::acked::Acked;
use crate::segment::Seq;
use axon_wire::Span;

/// The least by which a round trip has to grow (§4.3, MIN_RTT_THRESH).
const GROWN_MIN: Span = Span::from_millis(4);
/// By which it is enough (MAX_RTT_THRESH).
const GROWN_MAX: Span = Span::from_millis(16);
/// The part of a round trip by which it has to grow (MIN_RTT_DIVISOR).
const GROWN_PART: u64 = 8;
/// Samples in a round before it is judged (N_RTT_SAMPLE).
const SAMPLES: u8 = 8;
/// Conservative slow start is so many times slower (CSS_GROWTH_DIVISOR).
const SLOWER: u32 = 4;
/// Rounds of it (CSS_ROUNDS).
const ROUNDS: u8 = 5;
/// Segments that one acknowledgement lets the window grow by, at most: L of a sender that does not
/// pace.
const SEGMENTS_MAX: u32 = 8;

/// How far it has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    SlowStart,
    /// So many rounds of conservative slow start are left, this one included; the round trip with
    /// which it began.
    Conservative { left: u8, baseline: Span },
}

/// The first slow start of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HyStart {
    stage: Stage,
    /// Where the present round ends (windowEnd).
    end: Option<Seq>,
    /// The shortest round trip of the round before, and of this one.
    last: Option<Span>,
    current: Option<Span>,
    samples: u8,
}

impl HyStart {
    /// Takes an acknowledgement; whether slow start has ended with it.
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

    /// What the window grows by when `bytes` are acknowledged.
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

    /// Rounds of 16 acknowledgements of a segment each, all with one round trip in milliseconds;
    /// the number of the round in which slow start ends.
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
