//! Acknowledgement processing at the sender: delivered and lost data, the windows, the timers.

use crate::config::Config;
use crate::congestion::Acked;
use crate::prr::Prr;
use crate::scoreboard::Range;
use crate::segment::{Flags, Segment};
use crate::send::{Recovery, Sender};
use axon_wire::{Span, Time};

/// Number of duplicate acknowledgements that indicate a loss (RFC 5681 §3.2).
const DUPLICATES: u8 = 3;

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
        let same_window = !self.take_window(segment);
        let (arrived, duplicate) = self.take_arrivals(now, segment);
        let advance = self.board.start().since(before);
        let finished = self.is_finished() && advance > 0;
        let bytes = advance - u32::from(finished);
        self.acked += u64::from(bytes);
        let sample = arrived.newest.map(|sent| now.since(sent));
        if let Some(rtt) = sample {
            self.rtt.sample(now, rtt);
        }
        if advance > 0 {
            (self.probe_due, self.timed_out) = (false, false);
            (self.tries, self.rtt.backoff) = (0, 0);
            let left = self.board.outstanding() > 0;
            self.rto_at = left.then(|| now + self.rtt.timeout(config));
        } else if self.board.outstanding() == 0 {
            // The acknowledgement answers a window probe.
            self.tries = 0;
        }
        if self.probe_answered(segment, advance > 0, duplicate) && self.recovery == Recovery::Open {
            // The probe repaired a loss.
            self.control.lost_last();
            self.reduced();
        }
        self.take_echo(segment, bytes);
        self.end_recovery();
        let lost = self.detect_any(now, segment, advance, same_window);
        self.begin_recovery();
        let plain = if self.sack { arrived.bytes } else { self.without_sack(advance) };
        self.follow(now, (bytes, sample), plain, advance > 0 && lost == 0);
        if advance > 0 || self.recovery != Recovery::Open || self.board.sacked() > 0 {
            self.arm_probe(now, config);
        }
    }

    /// Returns the bytes that an acknowledgement delivers on a connection without SACK. Each
    /// duplicate counts as one segment, which is not counted again when it is acknowledged. The
    /// first of those segments was missing, so no duplicate stands for it (RFC 6937 §3).
    fn without_sack(&mut self, advance: u32) -> u32 {
        if advance == 0 {
            self.counted = self.counted.saturating_add(self.mss);
            return self.mss;
        }
        let again = self.counted.min(advance.saturating_sub(self.mss));
        self.counted -= again;
        if self.recovery == Recovery::Open {
            self.counted = 0;
        }
        advance - again
    }

    /// Updates the send window, unless the segment is older than the one that set it (RFC 9293
    /// §3.10.7.4). Returns whether the window has changed.
    fn take_window(&mut self, segment: &Segment) -> bool {
        let (seq, ack) = self.window_by;
        let newer = seq.is_before(segment.seq) || seq == segment.seq && !segment.ack.is_before(ack);
        if !newer {
            return false;
        }
        self.window_by = (segment.seq, segment.ack);
        let window = u32::from(segment.window) << self.scale;
        let changed = window != self.window;
        if window > self.window {
            self.persist_at = None;
        }
        self.window = window;
        self.window_max = self.window_max.max(window);
        changed
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
        let blocks = if self.sack { sacks.as_slice() } else { &[] };
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
        if self.reduced_until.is_some_and(|until| self.board.start().is_after(until)) {
            self.reduced_until = None;
        }
        if !self.ecn {
            return;
        }
        let echo = segment.flags.has(Flags::ECE);
        self.control.marked(self.board.start(), self.board.end(), bytes, echo);
        if echo && self.recovery == Recovery::Open && self.reduced_until.is_none() {
            self.reduce();
        }
    }

    /// Reduces the window at once, at most once per window of data in flight.
    fn reduce(&mut self) {
        self.control.signalled();
        self.reduced();
    }

    fn reduced(&mut self) {
        self.reduced_until = Some(self.board.end());
        self.say_cwr = self.ecn;
        self.sent.reductions += 1;
    }

    /// Detects losses after an acknowledgement that advances by `advance`. Returns the newly lost
    /// bytes.
    fn detect_any(&mut self, now: Time, segment: &Segment, advance: u32, same_window: bool) -> u32 {
        if self.sack {
            let any = self.board.sacked() > 0 || self.recovery != Recovery::Open;
            return if any { self.detect(now) } else { 0 };
        }
        // Without selective acknowledgements: RFC 5681 §3.2, RFC 6582 §3.2.
        let partial = matches!(self.recovery, Recovery::Fast { point, .. }
            if self.board.start().is_before(point));
        if advance > 0 {
            self.duplicates = 0;
            return if partial { self.board.lose_first(self.mss) } else { 0 };
        }
        let plain = segment.length() == 0 && same_window && self.board.outstanding() > 0;
        self.duplicates = self.duplicates.saturating_add(u8::from(plain));
        let enough = self.duplicates == DUPLICATES && self.recovery == Recovery::Open;
        if enough { self.board.lose_first(self.mss) } else { 0 }
    }

    /// Marks the segments that RACK considers lost and arms the reordering timer for the others
    /// (RFC 8985 §6.2, step 5).
    pub(crate) fn detect(&mut self, now: Time) -> u32 {
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
        self.reorder_at = later;
        lost
    }

    /// Enters recovery if any data is lost (RFC 6675 §5, step 4).
    pub(crate) fn begin_recovery(&mut self) {
        if self.recovery != Recovery::Open || self.board.lost() == 0 {
            return;
        }
        // DCTCP reacts to a loss even if a mark has just reduced its window (RFC 8257 §3.5).
        if self.reduced_until.take().is_none() || self.control.is_dctcp() {
            self.control.lost();
            self.say_cwr = self.ecn;
        }
        let prr = Prr::new(self.board.outstanding());
        self.recovery = Recovery::Fast { point: self.board.end(), prr };
        (self.probe, self.probe_at, self.probe_due) = (None, None, false);
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
        (self.reorder_at, self.duplicates) = (None, 0);
    }

    /// Updates the congestion window after an acknowledgement of `bytes`, with an optional
    /// round-trip sample, that delivered `arrived` bytes.
    pub(crate) fn follow(
        &mut self,
        now: Time,
        (bytes, sample): (u32, Option<Span>),
        arrived: u32,
        safe: bool,
    ) {
        match &mut self.recovery {
            Recovery::Fast { prr, .. } => {
                let (pipe, threshold) = (self.board.pipe(), self.control.threshold);
                let window = prr.window(arrived, pipe, threshold, self.mss, safe);
                self.control.set(window);
            }
            recovery => {
                let after_timeout = *recovery != Recovery::Open;
                if bytes == 0 || self.reduced_until.is_some() {
                    return;
                }
                let ramp = self.control.in_slow_start() && self.control.window < 2 * self.usage;
                self.control.acknowledged(&Acked {
                    now,
                    bytes,
                    rtt: self.rtt.smoothed.unwrap_or(Span::ZERO),
                    limited: self.held || ramp,
                    after_timeout,
                    sample,
                    ack: self.board.start(),
                    next: self.board.end(),
                });
            }
        }
    }
}
