//! Acknowledgement processing at the sender: delivered and lost data, the windows, the timers.

use super::{Recovery, Reduction, Sender, TailProbe};
use crate::config::Config;
use crate::congestion::Acked;
use crate::prr::Prr;
use crate::scoreboard::Range;
use crate::segment::{Flags, Segment};
use axon_wire::{Span, Time};

/// Data that one acknowledgement reports as delivered.
#[derive(Clone, Copy, Debug, Default)]
struct Arrived {
    /// Delivered bytes, cumulatively or selectively acknowledged.
    bytes: u32,
    /// Latest transmission time among the delivered ranges that were sent once.
    newest: Option<Time>,
}

impl Arrived {
    fn add(&mut self, range: &Range, length: u32) {
        self.bytes += length;
        if !range.again {
            self.newest = self.newest.max(Some(range.sent));
        }
    }
}

impl Sender {
    /// Processes the acknowledgement of a segment. The caller has checked that the segment lies in
    /// the receive window and acknowledges no unsent data.
    pub(crate) fn acknowledged(&mut self, now: Time, segment: &Segment, config: &Config) {
        let before = self.board.start();
        if segment.ack.is_before(before) {
            return;
        }
        let (old, window) = self.peer.update(segment);
        if window > old {
            self.timers.persist = None;
        }
        let (arrived, duplicate) = self.take_arrivals(now, segment);
        let advance = self.board.start().since(before);
        let finished = self.is_finished() && advance > 0;
        let bytes = advance - u32::from(finished);
        self.stream.acknowledged(bytes);
        let sample = arrived.newest.map(|sent| now.since(sent));
        if let Some(rtt) = sample {
            self.rtt.sample(now, rtt);
        }
        if advance > 0 {
            (self.probe.due, self.timed_out) = (false, false);
            (self.timers.tries, self.rtt.backoff) = (0, 0);
            let left = self.board.outstanding() > 0;
            self.timers.rto = left.then(|| now + self.rtt.timeout(config));
        } else if self.board.outstanding() == 0 {
            // The acknowledgement answers a window probe.
            self.timers.tries = 0;
        }
        if self.probe.answered(segment, advance > 0, duplicate) && self.recovery == Recovery::Open {
            // The probe repaired a loss.
            self.control.lost_last();
            self.reduced();
        }
        self.take_echo(segment, bytes);
        self.end_recovery();
        let lost = self.detect_any(now, segment, advance, window == old);
        self.begin_recovery();
        let is_open = self.recovery == Recovery::Open;
        let plain = match self.agreed.sack {
            true => arrived.bytes,
            false => self.duplicates.delivered(advance, self.agreed.mss, is_open),
        };
        self.follow(now, (bytes, sample), plain, advance > 0 && lost == 0);
        if advance > 0 || self.recovery != Recovery::Open || self.board.sacked() > 0 {
            self.arm_probe(now, config);
        }
    }

    /// Updates the scoreboard. Returns the delivered data and whether a duplicate was reported.
    fn take_arrivals(&mut self, now: Time, segment: &Segment) -> (Arrived, bool) {
        let shortest = self.rtt.shortest();
        let mut arrived = Arrived::default();
        let (rack, board) = (&mut self.rack, &mut self.board);
        let mut each = |range: Range, length: u32| {
            arrived.add(&range, length);
            rack.arrived(now, &range, shortest);
        };
        board.acknowledge(segment.ack, &mut each);
        let sacks = segment.options.sacks;
        let blocks = if self.agreed.sack { sacks.as_slice() } else { &[] };
        for &block in blocks {
            // Malformed blocks and blocks below the acknowledgement change nothing.
            if block.0.is_before(block.1) {
                board.sack(block, &mut each);
            }
        }
        let duplicate = match *blocks {
            [first, ..] if first.0.is_before(segment.ack) => true,
            [first, second, ..] => !first.0.is_before(second.0) && !first.1.is_after(second.1),
            _ => false,
        };
        if duplicate {
            self.rack.duplicate(self.board.start(), self.board.end());
        }
        (arrived, duplicate)
    }

    /// Processes the congestion marks that the receiver echoes (RFC 3168 §6.1.2, RFC 8257 §3.3).
    fn take_echo(&mut self, segment: &Segment, bytes: u32) {
        // Strictly after: answers to segments sent earlier may still carry the echo at that number.
        self.reduction.until.take_if(|until| self.board.start().is_after(*until));
        if !self.agreed.ecn {
            return;
        }
        let echo = segment.flags.has(Flags::ECE);
        self.control.marked(self.board.start(), self.board.end(), bytes, echo);
        if echo && self.recovery == Recovery::Open && self.reduction.until.is_none() {
            self.control.signalled();
            self.reduced();
        }
    }

    /// Records a reduction of the window, which is at most one per window of data in flight.
    fn reduced(&mut self) {
        self.reduction = Reduction { until: Some(self.board.end()), cwr: self.agreed.ecn };
        self.sent.reductions += 1;
    }

    /// Detects losses after an acknowledgement that advances by `advance`. Returns the newly lost
    /// bytes.
    fn detect_any(&mut self, now: Time, segment: &Segment, advance: u32, same_window: bool) -> u32 {
        if self.agreed.sack {
            let any = self.board.sacked() > 0 || self.recovery != Recovery::Open;
            return if any { self.detect(now) } else { 0 };
        }
        // Without selective acknowledgements: RFC 5681 §3.2, RFC 6582 §3.2.
        let partial = matches!(self.recovery, Recovery::Fast { point, .. }
            if self.board.start().is_before(point));
        if advance > 0 {
            self.duplicates.restart();
            return if partial { self.board.lose_first(self.agreed.mss) } else { 0 };
        }
        let plain = segment.length() == 0 && same_window && self.board.outstanding() > 0;
        let enough = self.duplicates.count(plain) && self.recovery == Recovery::Open;
        if enough { self.board.lose_first(self.agreed.mss) } else { 0 }
    }

    /// Marks the segments that RACK considers lost and arms the reordering timer for the others
    /// (RFC 8985 §6.2, step 5).
    pub(super) fn detect(&mut self, now: Time) -> u32 {
        let window = self.reordering_window();
        let (rack, mut later) = (&self.rack, None);
        let lost = self.board.lose(|_, range| match rack.lost_at(range, window) {
            Some(at) if at <= now => true,
            Some(at) => {
                later = Some(later.map_or(at, |other: Time| other.min(at)));
                false
            }
            None => false,
        });
        self.timers.reorder = later;
        lost
    }

    /// Enters recovery if any data is lost (RFC 6675 §5, step 4).
    pub(super) fn begin_recovery(&mut self) {
        if self.recovery != Recovery::Open || self.board.lost() == 0 {
            return;
        }
        // DCTCP reacts to a loss even if a mark has just reduced its window (RFC 8257 §3.5).
        if self.reduction.until.take().is_none() || self.control.is_dctcp() {
            self.control.lost();
            self.reduction.cwr = self.agreed.ecn;
        }
        let prr = Prr::new(self.board.outstanding());
        self.recovery = Recovery::Fast { point: self.board.end(), prr };
        self.probe = TailProbe::default();
        self.timers.probe = None;
        self.sent.recoveries += 1;
    }

    /// Ends recovery once all data sent before it began is acknowledged.
    fn end_recovery(&mut self) {
        let (Recovery::Fast { point, .. } | Recovery::Timeout { point }) = self.recovery else {
            return;
        };
        if self.board.start().is_before(point) {
            return;
        }
        if let Recovery::Fast { .. } = self.recovery {
            self.control.recovered();
        }
        self.recovery = Recovery::Open;
        self.rack.recovered();
        self.timers.reorder = None;
        self.duplicates.restart();
    }

    /// Updates the congestion window after an acknowledgement of `bytes`, with an optional
    /// round-trip sample, that delivered `arrived` bytes.
    pub(super) fn follow(
        &mut self,
        now: Time,
        (bytes, sample): (u32, Option<Span>),
        arrived: u32,
        safe: bool,
    ) {
        match &mut self.recovery {
            Recovery::Fast { prr, .. } => {
                let (pipe, threshold) = (self.board.pipe(), self.control.threshold());
                let window = prr.window(arrived, pipe, threshold, self.agreed.mss, safe);
                self.control.set(window);
            }
            recovery => {
                let after_timeout = *recovery != Recovery::Open;
                if bytes == 0 || self.reduction.until.is_some() {
                    return;
                }
                self.control.acknowledged(&Acked {
                    now,
                    bytes,
                    rtt: self.rtt.smoothed.unwrap_or(Span::ZERO),
                    limited: self.usage.is_limited(&self.control),
                    after_timeout,
                    sample,
                    ack: self.board.start(),
                    next: self.board.end(),
                });
            }
        }
    }
}
