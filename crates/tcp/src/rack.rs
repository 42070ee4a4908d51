//! RACK: a segment is lost if a later one has arrived and the reordering window has passed (RFC
//! 8985 §6).
//!
//! The reordering window is a quarter of the minimum round trip. It is zero while no reordering has
//! been seen and either three segments have arrived out of order or recovery is in progress. Each
//! round with a duplicate selective acknowledgement, which indicates a spurious retransmission,
//! adds a quarter for sixteen recoveries.

use crate::scoreboard::Range;
use crate::segment::Seq;
use axon_wire::{Span, Time};

/// Recoveries after which the reordering window returns to a quarter (§5.3, `reo_wnd_persist`).
const PERSIST: u8 = 16;

/// RACK state of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rack {
    /// Transmission time and end of the most recently sent range among those that have arrived.
    sent: Time,
    end: Seq,
    /// Round-trip time of that range.
    pub(crate) rtt: Span,
    /// End of the highest range that has arrived.
    forward: Seq,
    /// True if reordering has been seen.
    reordered: bool,
    /// Reordering window, in quarters of the minimum round trip.
    quarters: u8,
    persist: u8,
    /// End of the round of the last duplicate selective acknowledgement.
    round: Option<Seq>,
    /// True if any range has arrived.
    known: bool,
}

impl Rack {
    pub(crate) fn new(start: Seq) -> Rack {
        Rack {
            sent: Time::ZERO,
            end: start,
            rtt: Span::ZERO,
            forward: start,
            reordered: false,
            quarters: 1,
            persist: PERSIST,
            round: None,
            known: false,
        }
    }

    /// Records the arrival of a range (§6.2, steps 1 to 3).
    pub(crate) fn arrived(&mut self, now: Time, range: &Range, shortest: Option<Span>) {
        if range.end.is_after(self.forward) {
            self.forward = range.end;
        } else if range.end.is_before(self.forward) && !range.again {
            self.reordered = true;
        }
        let rtt = now.since(range.sent);
        if range.again && shortest.is_some_and(|shortest| rtt < shortest) {
            // The acknowledgement is probably for the first transmission.
            return;
        }
        if !self.known || self.is_after(range.sent, range.end) {
            (self.sent, self.end, self.rtt, self.known) = (range.sent, range.end, rtt, true);
        }
    }

    /// Returns whether a range was sent after the most recently sent arrival.
    fn is_after(&self, sent: Time, end: Seq) -> bool {
        sent > self.sent || sent == self.sent && end.is_after(self.end)
    }

    /// Records a duplicate selective acknowledgement, with everything before `start` acknowledged
    /// and `next` the next number to send (§6.2, step 4).
    pub(crate) fn duplicate(&mut self, start: Seq, next: Seq) {
        if self.round.is_some_and(|end| start.is_before(end)) {
            return;
        }
        self.round = Some(next);
        self.quarters = self.quarters.saturating_add(1);
        self.persist = PERSIST;
    }

    /// Records the end of a recovery.
    pub(crate) fn recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            (self.quarters, self.persist) = (1, PERSIST);
        }
    }

    /// Returns the reordering window. `sure` is whether three segments have arrived out of order or
    /// recovery is in progress.
    pub(crate) fn window(&self, sure: bool, shortest: Option<Span>, smoothed: Span) -> Span {
        if !self.reordered && sure {
            return Span::ZERO;
        }
        let quarter = shortest.unwrap_or(Span::ZERO).ticks() / 4;
        Span::from_ticks(quarter.saturating_mul(u64::from(self.quarters))).min(smoothed)
    }

    /// Returns when a range is considered lost, if a range sent after it has arrived (§6.2, step
    /// 5).
    pub(crate) fn lost_at(&self, range: &Range, window: Span) -> Option<Time> {
        let before = self.known
            && (self.sent > range.sent || self.sent == range.sent && self.end.is_after(range.end));
        before.then(|| range.sent + self.rtt + window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scoreboard::Fate;

    fn range(sent: u64, end: u32, again: bool) -> Range {
        let sent = Time::from_nanos(sent * 1000);
        Range { sent, end: Seq(end), fate: Fate::InFlight, again }
    }

    fn micros(micros: u64) -> Time {
        Time::from_nanos(micros * 1000)
    }

    #[test]
    fn what_was_sent_before_an_arrival_is_lost_after_a_round_trip_and_the_window() {
        let mut rack = Rack::new(Seq(0));
        assert_eq!(rack.lost_at(&range(0, 100, false), Span::ZERO), None);
        rack.arrived(micros(110), &range(10, 300, false), None);
        let window = rack.window(false, Some(Span::from_micros(100)), Span::from_micros(100));
        assert_eq!(window, Span::from_micros(25));
        assert_eq!(rack.lost_at(&range(0, 100, false), window), Some(micros(125)));
        assert_eq!(rack.lost_at(&range(10, 200, false), window), Some(micros(135)), "in the burst");
        assert_eq!(rack.lost_at(&range(10, 400, false), window), None);
        assert_eq!(rack.lost_at(&range(11, 200, true), window), None);
        assert_eq!(rack.window(true, Some(Span::from_micros(100)), Span::ZERO), Span::ZERO);
    }

    #[test]
    fn an_arrival_too_early_for_what_was_sent_again_is_not_its() {
        let mut rack = Rack::new(Seq(0));
        let shortest = Some(Span::from_micros(50));
        rack.arrived(micros(100), &range(10, 300, false), shortest);
        rack.arrived(micros(110), &range(90, 100, true), shortest);
        assert_eq!(rack.rtt, Span::from_micros(90));
        assert!(!rack.reordered);
    }

    #[test]
    fn reordering_keeps_the_window_open_and_duplicates_widen_it() {
        let mut rack = Rack::new(Seq(0));
        let (shortest, smoothed) = (Some(Span::from_micros(40)), Span::from_micros(45));
        rack.arrived(micros(100), &range(10, 300, false), shortest);
        rack.arrived(micros(101), &range(9, 100, false), shortest);
        assert_eq!(rack.window(true, shortest, smoothed), Span::from_micros(10));
        rack.duplicate(Seq(300), Seq(900));
        rack.duplicate(Seq(500), Seq(1000));
        assert_eq!(rack.window(true, shortest, smoothed), Span::from_micros(20), "once a round");
        (0..9).for_each(|n| rack.duplicate(Seq(1000 * n + 900), Seq(1000 * n + 1900)));
        assert_eq!(rack.window(true, shortest, smoothed), smoothed, "at most the round trip");
        (0..16).for_each(|_| rack.recovered());
        assert_eq!(rack.window(true, shortest, smoothed), Span::from_micros(10));
    }
}
