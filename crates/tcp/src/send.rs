//! The sending half: transmission and retransmission (RFC 9293 §3.8).
//!
//! Lost data is sent before new data, both within the congestion window. New data is also limited
//! by the receiver's window. Small segments are avoided as in RFC 9293 §3.8.6.2.1. A closed window
//! is probed with an empty segment one number before the first unacknowledged one; the receiver
//! answers such a segment outside its window with its current window.

use crate::config::Config;
use crate::congestion::Congestion;
use crate::prr::Prr;
use crate::rack::Rack;
use crate::rtt::Rtt;
use crate::scoreboard::Scoreboard;
use crate::segment::Seq;
use axon_wire::{Span, Time};

/// Recovery state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recovery {
    /// No known loss.
    Open,
    /// Fast recovery after a detected loss, until `point` is acknowledged (RFC 6675 §5).
    Fast { point: Seq, prr: Prr },
    /// Recovery after a timeout, until `point` is acknowledged.
    Timeout { point: Seq },
}

/// Tail loss probe in flight (RFC 8985 §7.4).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Probe {
    /// Next number to send when the probe was sent.
    pub(crate) end: Seq,
    /// True if the probe was a retransmission.
    pub(crate) again: bool,
}

/// State of the end of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fin {
    Open,
    Wanted,
    /// The FIN was sent; holds the number after it.
    Sent(Seq),
}

/// Data to send in one segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chunk {
    pub(crate) seq: Seq,
    pub(crate) bytes: u32,
    pub(crate) fin: bool,
    /// True if to set CWR: the window was reduced (RFC 3168 §6.1.2).
    pub(crate) cwr: bool,
    /// True if the data was sent before.
    pub(crate) again: bool,
}

/// Transmission counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) segments: u64,
    pub(crate) again: u64,
    pub(crate) timeouts: u32,
    pub(crate) probes: u32,
    pub(crate) recoveries: u32,
    pub(crate) reductions: u32,
}

/// Sender of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    pub(crate) board: Scoreboard,
    /// Bytes written and not yet sent.
    unsent: u64,
    fin: Fin,
    /// Receiver's window beyond the acknowledgement, in bytes (SND.WND).
    pub(crate) window: u32,
    pub(crate) window_max: u32,
    /// Sequence and acknowledgement numbers of the segment that set the window (SND.WL1, SND.WL2).
    pub(crate) window_by: (Seq, Seq),
    pub(crate) scale: u8,
    pub(crate) mss: u32,
    pub(crate) sack: bool,
    pub(crate) ecn: bool,
    /// End of the reduced window; ECE is ignored until this number is acknowledged.
    pub(crate) reduced_until: Option<Seq>,
    pub(crate) say_cwr: bool,
    pub(crate) control: Congestion,
    pub(crate) rtt: Rtt,
    pub(crate) rack: Rack,
    pub(crate) recovery: Recovery,
    pub(crate) probe: Option<Probe>,
    pub(crate) probe_due: bool,
    /// True if a timeout has expired since the last transmission.
    pub(crate) timed_out: bool,
    /// True if a window probe is due.
    window_probe: bool,
    /// True if to send data that only fits a small window (RFC 9293 §3.8.6.2.1, the override
    /// timeout).
    small: bool,
    pub(crate) rto_at: Option<Time>,
    pub(crate) probe_at: Option<Time>,
    pub(crate) reorder_at: Option<Time>,
    pub(crate) persist_at: Option<Time>,
    /// Consecutive timeouts without an answer.
    pub(crate) tries: u8,
    /// Consecutive duplicate acknowledgements of a peer without SACK.
    pub(crate) duplicates: u8,
    /// Unacknowledged bytes already counted by duplicate acknowledgements.
    pub(crate) counted: u32,
    /// True if the congestion window limited the sender in the window of data that ends at
    /// `usage_until`.
    pub(crate) held: bool,
    /// Maximum bytes in flight in the window of data that ends at `usage_until`.
    pub(crate) usage: u32,
    usage_until: Seq,
    last_sent: Time,
    /// Acknowledged bytes.
    pub(crate) acked: u64,
    pub(crate) sent: Sent,
}

impl Sender {
    /// Returns a sender before the handshake. `start` is the number of the first byte.
    pub(crate) fn new(start: Seq, config: &Config) -> Sender {
        let mss = u32::from(config.mss);
        Sender {
            board: Scoreboard::new(start),
            unsent: 0,
            fin: Fin::Open,
            window: 0,
            window_max: 0,
            window_by: (Seq(0), Seq(0)),
            scale: 0,
            mss,
            sack: false,
            ecn: false,
            reduced_until: None,
            say_cwr: false,
            control: Congestion::new(config.congestion, mss),
            rtt: Rtt::default(),
            rack: Rack::new(start),
            recovery: Recovery::Open,
            probe: None,
            probe_due: false,
            timed_out: false,
            window_probe: false,
            small: false,
            rto_at: None,
            probe_at: None,
            reorder_at: None,
            persist_at: None,
            tries: 0,
            duplicates: 0,
            counted: 0,
            held: false,
            usage: 0,
            usage_until: start,
            last_sent: Time::ZERO,
            acked: 0,
            sent: Sent::default(),
        }
    }

    /// Queues bytes for transmission. Returns their number, or 0 after a close.
    pub(crate) fn write(&mut self, bytes: u64) -> u64 {
        if self.fin != Fin::Open {
            return 0;
        }
        self.unsent = self.unsent.saturating_add(bytes);
        bytes
    }

    /// Returns the bytes written and not acknowledged.
    pub(crate) fn queued(&self) -> u64 {
        let fin = u32::from(matches!(self.fin, Fin::Sent(_)) && !self.is_finished());
        self.unsent + u64::from(self.board.outstanding().saturating_sub(fin))
    }

    /// Closes the stream. Returns whether it was open.
    pub(crate) fn close(&mut self) -> bool {
        let is_open = self.fin == Fin::Open;
        if is_open {
            self.fin = Fin::Wanted;
        }
        is_open
    }

    /// Returns whether the FIN was sent.
    pub(crate) fn fin_sent(&self) -> bool {
        matches!(self.fin, Fin::Sent(_))
    }

    /// Returns whether the FIN was sent and is acknowledged.
    pub(crate) fn is_finished(&self) -> bool {
        self.fin == Fin::Sent(self.board.start())
    }

    /// Returns whether all written data was sent (RFC 9293 §3.9.1.2).
    pub(crate) fn is_pushed(&self) -> bool {
        self.unsent == 0
    }

    /// Returns when the next timer expires.
    pub(crate) fn deadline(&self) -> Option<Time> {
        let timers = [self.rto_at, self.probe_at, self.reorder_at, self.persist_at];
        timers.into_iter().flatten().min()
    }

    /// Returns the next chunk to send, with at most `room` bytes of payload. `config` has the
    /// buffers and timeouts.
    pub(crate) fn next(&mut self, now: Time, room: u32, config: &Config) -> Option<Chunk> {
        if core::mem::take(&mut self.window_probe) {
            return Some(Chunk { seq: self.board.start() - 1, ..Chunk::default() });
        }
        if core::mem::take(&mut self.probe_due) {
            return self.tail_probe(now, room, config);
        }
        let chunk =
            self.lost_chunk(now, room, config).or_else(|| self.new_chunk(now, room, config));
        self.note_usage(chunk.is_none());
        chunk
    }

    /// Returns whether `bytes` more fit the congestion window.
    fn fits(&self, bytes: u32) -> bool {
        let pipe = self.board.pipe();
        pipe == 0 || pipe.saturating_add(bytes) <= self.control.window
    }

    /// Records whether the window is used up, and the maximum use (RFC 7661 §4.1).
    fn note_usage(&mut self, blocked: bool) {
        let pipe = self.board.pipe();
        let held = blocked && pipe + self.mss > self.control.window;
        let over = !self.board.start().is_before(self.usage_until);
        if over || held || !self.held && pipe > self.usage {
            (self.held, self.usage, self.usage_until) = (held, pipe, self.board.end());
        }
    }

    fn lost_chunk(&mut self, now: Time, room: u32, config: &Config) -> Option<Chunk> {
        let (from, to) = self.board.first_lost()?;
        let to = to.min(from + room);
        // After a timeout the first lost range is sent regardless of the flight size (RFC 6298
        // §5.4).
        let may = core::mem::take(&mut self.timed_out) || self.fits(to.since(from));
        may.then(|| self.again(from, to, now, config))
    }

    /// Retransmits a range.
    pub(crate) fn again(&mut self, from: Seq, to: Seq, now: Time, config: &Config) -> Chunk {
        self.board.resend(from, to, now);
        let fin = self.fin == Fin::Sent(to);
        let bytes = to.since(from) - u32::from(fin);
        self.sent.again += 1;
        self.left(now, to.since(from), config);
        Chunk { seq: from, bytes, fin, cwr: false, again: true }
    }

    /// Returns the bytes of new data that the receiver's window allows, and whether a FIN goes with
    /// them.
    fn offered(&self, room: u32) -> Option<(u32, bool)> {
        let waiting = u32::try_from(self.unsent).unwrap_or(u32::MAX);
        let usable = self.window.saturating_sub(self.board.outstanding());
        let wanted = waiting.min(room);
        let bytes = wanted.min(usable);
        let last = u64::from(bytes) == self.unsent;
        let fin = last && self.fin == Fin::Wanted && bytes < usable;
        // Half the window is worth a segment, and so is all the remaining data.
        let small = bytes < wanted && bytes < self.window_max / 2 && !self.small;
        ((bytes > 0 && !small) || fin).then_some((bytes, fin))
    }

    fn new_chunk(&mut self, now: Time, room: u32, config: &Config) -> Option<Chunk> {
        if self.unsent == 0 && self.fin != Fin::Wanted {
            return None;
        }
        let idle = self.board.outstanding() == 0;
        let Some((bytes, fin)) = self.offered(room) else {
            if idle && self.persist_at.is_none() {
                self.persist_at = Some(now + self.rtt.timeout(config));
            }
            return None;
        };
        if idle && now.since(self.last_sent) > self.rtt.timeout(config) && self.sent.segments > 0 {
            self.control.idle(now);
        }
        let waits = config.nagle && bytes < self.mss && !idle && !fin;
        if waits || !self.fits(bytes) {
            return None;
        }
        Some(self.fresh(now, bytes, fin, config))
    }

    /// Sends new data.
    fn fresh(&mut self, now: Time, bytes: u32, fin: bool, config: &Config) -> Chunk {
        let (seq, numbers) = (self.board.end(), bytes + u32::from(fin));
        self.board.push(numbers, now);
        self.unsent -= u64::from(bytes);
        if fin {
            self.fin = Fin::Sent(self.board.end());
        }
        (self.persist_at, self.small) = (None, false);
        self.left(now, numbers, config);
        self.arm_probe(now, config);
        let cwr = bytes > 0 && core::mem::take(&mut self.say_cwr);
        Chunk { seq, bytes, fin, cwr, again: false }
    }

    /// Records sent or retransmitted numbers.
    fn left(&mut self, now: Time, numbers: u32, config: &Config) {
        if let Recovery::Fast { prr, .. } = &mut self.recovery {
            prr.sent(numbers);
        }
        self.last_sent = now;
        self.sent.segments += 1;
        if self.rto_at.is_none() {
            self.rto_at = Some(now + self.rtt.timeout(config));
        }
    }

    /// Returns a segment of new data regardless of the congestion window.
    pub(crate) fn beyond(&mut self, now: Time, room: u32, config: &Config) -> Option<Chunk> {
        let (bytes, fin) = self.offered(room)?;
        Some(self.fresh(now, bytes, fin, config))
    }

    /// Processes the timers that are due. Returns whether to give the connection up.
    pub(crate) fn expire(&mut self, now: Time, config: &Config) -> bool {
        let due = |at: &mut Option<Time>| at.take_if(|at| *at <= now).is_some();
        if due(&mut self.reorder_at) {
            let was_open = self.recovery == Recovery::Open;
            self.detect(now);
            self.begin_recovery();
            if was_open && self.recovery != Recovery::Open {
                // No data was delivered: lost data is retransmitted one segment at a time.
                self.follow(now, (0, None), 0, false);
            }
        }
        if due(&mut self.probe_at) {
            self.probe_due = true;
            return false;
        }
        let (persist, timeout) = (due(&mut self.persist_at), due(&mut self.rto_at));
        if !persist && !timeout {
            return false;
        }
        self.tries = self.tries.saturating_add(1);
        if self.tries > config.retries {
            return true;
        }
        if persist {
            self.small = self.window > 0;
            self.window_probe = !self.small;
            self.rtt.backoff = self.rtt.backoff.saturating_add(1);
            self.persist_at = Some(now + self.rtt.timeout(config));
        }
        if timeout && self.board.outstanding() > 0 {
            self.time_out(now, config);
        }
        false
    }

    /// Processes a retransmission timeout (RFC 6298 §5.4 to §5.6, RFC 8985 §6.3).
    fn time_out(&mut self, now: Time, config: &Config) {
        // A timeout during a recovery keeps that recovery's threshold.
        let first = match self.recovery {
            Recovery::Open => true,
            Recovery::Fast { .. } => false,
            Recovery::Timeout { .. } => self.tries == 1,
        };
        self.control.timed_out(first);
        self.recovery = Recovery::Timeout { point: self.board.end() };
        let (start, sack) = (self.board.start(), self.sack);
        let window = self.reordering_window();
        let old = self.rack.rtt + window;
        self.board.lose(|begin, range| begin == start || !sack || range.sent + old <= now);
        (self.probe, self.probe_at, self.reorder_at) = (None, None, None);
        (self.reduced_until, self.say_cwr) = (None, self.ecn);
        (self.duplicates, self.counted) = (0, 0);
        self.rtt.backoff = self.rtt.backoff.saturating_add(1);
        self.rto_at = Some(now + self.rtt.timeout(config));
        self.sent.timeouts += 1;
        self.timed_out = true;
    }

    /// Returns the current reordering window.
    pub(crate) fn reordering_window(&self) -> Span {
        let many = self.board.sacked() > 2 * self.mss;
        let sure = many || self.recovery != Recovery::Open;
        let smoothed = self.rtt.smoothed.unwrap_or(Span::ZERO);
        self.rack.window(sure, self.rtt.shortest(), smoothed)
    }
}
