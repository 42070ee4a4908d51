//! Processing of received segments (RFC 9293 §3.10.7, with RFC 5961).

use super::{Connection, Failure, State};
use crate::config::{Algorithm, Config};
use crate::receive::Echo;
use crate::segment::{Flags, Segment, Seq};
use crate::send::Agreed;
use axon_wire::{Span, Time};
use core::ops::Range;

/// Minimum MSS, in bytes (Linux: `TCP_MIN_SND_MSS`): options alone would fill a smaller segment.
const MSS_MIN: u16 = 48;
/// MSS of a peer that sends no MSS option, in bytes (RFC 9293 §3.7.1).
const MSS_DEFAULT: u16 = 536;
/// Minimum interval between answers to empty segments outside the window, which keeps two ends from
/// answering each other endlessly (RFC 5961 §7).
const ANSWER_PAUSE: Span = Span::from_millis(100);

impl Connection {
    /// Answers a SYN as the listening end. Returns `None` if the segment does not open a
    /// connection.
    pub fn accept(now: Time, config: Config, first: Seq, syn: &Segment) -> Option<Connection> {
        if !syn.flags.has(Flags::SYN) || syn.flags.has(Flags::ACK | Flags::RST) {
            return None;
        }
        let mut connection = Connection::new(config, State::SynReceived, first);
        let wanted = Flags::ECE | Flags::CWR;
        let offers_ecn = syn.flags.0 & wanted.0 == wanted.0;
        connection.take_syn(syn, offers_ecn);
        connection.handshake.start(now);
        Some(connection)
    }

    /// Returns the answer to a segment that belongs to no connection: a reset, unless the segment
    /// is itself a reset (RFC 9293 §3.10.7.1).
    pub fn refuse(segment: &Segment) -> Option<Segment> {
        if segment.flags.has(Flags::RST) {
            return None;
        }
        if segment.flags.has(Flags::ACK) {
            return Some(Segment { seq: segment.ack, flags: Flags::RST, ..Segment::default() });
        }
        let (ack, flags) = (segment.seq + segment.length(), Flags::RST | Flags::ACK);
        Some(Segment { ack, flags, ..Segment::default() })
    }

    /// Applies the options of the peer's SYN.
    fn take_syn(&mut self, syn: &Segment, ecn: bool) {
        let options = &syn.options;
        let sack = self.config.sack && options.sack_permitted;
        let ecn = ecn && self.config.wants_ecn();
        let echo = match self.config.congestion {
            _ if !ecn => Echo::None,
            Algorithm::Dctcp => Echo::Exact,
            _ => Echo::Latched,
        };
        self.receiver.begin(syn.seq + 1, options.scale.is_some(), sack, echo);
        let mss = options.mss.unwrap_or(MSS_DEFAULT).max(MSS_MIN).min(self.config.mss.max(1));
        let agreed = Agreed { mss: u32::from(mss), sack, ecn };
        self.sender.begin(agreed, self.config.congestion, syn);
    }

    /// Processes a segment. [`Connection::poll_transmit`] returns the segments sent in response.
    /// Returns the part of its payload that is kept, which lies in the window.
    pub fn on_segment(&mut self, now: Time, segment: &Segment) -> Range<u32> {
        match self.state {
            State::Closed => {}
            State::SynSent => self.take_answer(now, segment),
            _ => return self.take_any(now, segment).unwrap_or_default(),
        }
        0..0
    }

    /// Processes a segment in SYN-SENT (RFC 9293 §3.10.7.3).
    fn take_answer(&mut self, now: Time, segment: &Segment) {
        let flags = segment.flags;
        let acknowledges = flags.has(Flags::ACK);
        if acknowledges && segment.ack != self.handshake.next() {
            self.reset = Connection::refuse(segment);
            return;
        }
        if flags.has(Flags::RST) {
            if acknowledges {
                self.fail(Failure::Refused);
            }
            return;
        }
        if !flags.has(Flags::SYN) {
            return;
        }
        let both = Flags::ECE | Flags::CWR;
        let ecn = if acknowledges { Flags::ECE.0 } else { both.0 };
        self.take_syn(segment, flags.0 & both.0 == ecn);
        if acknowledges {
            self.establish(now);
            self.receiver.acknowledge();
        } else {
            // Simultaneous open.
            self.state = State::SynReceived;
            self.handshake.repeat();
        }
    }

    /// Enters ESTABLISHED after the acknowledgement of the SYN.
    fn establish(&mut self, now: Time) {
        self.state = State::Established;
        self.sender.establish(now, self.handshake.stop());
    }

    /// Processes a segment in any other state (RFC 9293 §3.10.7.4). Returns whether its payload was
    /// taken.
    fn take_any(&mut self, now: Time, segment: &Segment) -> Option<Range<u32>> {
        let flags = segment.flags;
        if flags.has(Flags::RST) {
            self.take_reset(now, segment);
            return None;
        }
        let again = flags.has(Flags::SYN) && segment.seq + 1 == self.receiver.next();
        if self.state == State::SynReceived && again && !flags.has(Flags::ACK) {
            // The SYN-ACK was lost.
            self.handshake.repeat();
            return None;
        }
        let opens = self.state == State::SynReceived && again;
        if !opens && (!self.receiver.accepts(segment) || flags.has(Flags::SYN)) {
            self.answer(now, segment);
            return None;
        }
        if !flags.has(Flags::ACK) {
            return None;
        }
        if self.state == State::SynReceived {
            if segment.ack != self.handshake.next() {
                let after = segment.ack.is_after(self.sender.board().end());
                if after || segment.ack.is_before(self.handshake.next()) {
                    self.reset = Connection::refuse(segment);
                    return None;
                }
            }
            self.establish(now);
            self.sender.set_window(segment);
        }
        if segment.ack.is_after(self.sender.board().end()) {
            self.answer(now, segment);
            return None;
        }
        self.sender.acknowledged(now, segment, &self.config);
        self.acknowledged_fin(now);
        match opens || self.state == State::Closed {
            true => None,
            false => self.take_payload(now, segment),
        }
    }

    /// Answers a segment outside the window with the current window.
    fn answer(&mut self, now: Time, segment: &Segment) {
        if self.state == State::SynReceived {
            self.handshake.repeat();
            return;
        }
        if self.state == State::TimeWait && segment.flags.has(Flags::FIN) {
            self.over_at = now + self.config.time_wait;
        }
        if segment.bytes == 0 && !segment.flags.has(Flags::FIN) {
            if now < self.answer_at {
                return;
            }
            self.answer_at = now + pause(&self.config);
        }
        self.receiver.refuse(segment);
    }

    /// Processes a reset, which is valid only at exactly the next number (RFC 5961 §3.2).
    fn take_reset(&mut self, now: Time, segment: &Segment) {
        if segment.seq == self.receiver.next() {
            let refused = self.state == State::SynReceived;
            let why = if refused { Failure::Refused } else { Failure::Reset };
            match self.state {
                State::TimeWait => self.end(),
                _ => self.fail(why),
            }
        } else if self.receiver.accepts(segment) {
            self.answer(now, &Segment { bytes: 0, flags: Flags::default(), ..*segment });
        }
    }

    /// Advances the state once this end's FIN is acknowledged.
    fn acknowledged_fin(&mut self, now: Time) {
        if !self.sender.is_finished() {
            return;
        }
        match self.state {
            State::FinWait1 => self.state = State::FinWait2,
            State::Closing => self.wait(now),
            State::LastAck => self.end(),
            _ => {}
        }
    }

    fn wait(&mut self, now: Time) {
        (self.state, self.over_at) = (State::TimeWait, now + self.config.time_wait);
    }

    fn take_payload(&mut self, now: Time, segment: &Segment) -> Option<Range<u32>> {
        if self.receiver.is_finished() {
            return None;
        }
        let (in_order, kept) = self.receiver.take(now, segment);
        self.received += u64::from(in_order);
        match self.state {
            _ if !self.receiver.is_finished() => {}
            State::Established => self.state = State::CloseWait,
            State::FinWait1 => self.state = State::Closing,
            State::FinWait2 => self.wait(now),
            _ => {}
        }
        Some(kept)
    }
}

/// Returns the minimum interval between answers, at most the interval of window probes.
fn pause(config: &Config) -> Span {
    ANSWER_PAUSE.min(config.rto_min)
}
