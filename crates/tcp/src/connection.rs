//! One end of a connection: its state machine and transmission (RFC 9293 §3.3, §3.5, §3.6).

use crate::config::Config;
use crate::header::option_bytes;
use crate::receive::Receiver;
use crate::segment::{Flags, Mark, Options, Segment, Seq};
use crate::send::{Chunk, Sender};
use axon_wire::{Span, Time};

/// State of a connection (RFC 9293 §3.3.2). LISTEN has none: see [`Connection::accept`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// SYN sent.
    SynSent,
    /// SYN received and answered.
    SynReceived,
    /// Open in both directions.
    Established,
    /// Closed by this end; the FIN is not acknowledged.
    FinWait1,
    /// Closed by this end; the FIN is acknowledged.
    FinWait2,
    /// Closed by the peer.
    CloseWait,
    /// Closed by both ends at once.
    Closing,
    /// Closed by the peer, then by this end.
    LastAck,
    /// Closed; repeated segments are answered.
    TimeWait,
    /// Closed.
    Closed,
}

/// Reason for the abnormal end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The peer refused the connection.
    Refused,
    /// The peer reset the connection.
    Reset,
    /// The peer did not answer.
    TimedOut,
    /// This end aborted the connection.
    Aborted,
}

/// Statistics of one end of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Sent segments with payload or FIN, retransmissions included.
    pub segments: u64,
    /// Retransmitted segments.
    pub retransmits: u64,
    /// Retransmission timeouts.
    pub timeouts: u32,
    /// Tail loss probes.
    pub probes: u32,
    /// Recoveries from losses detected without a timeout.
    pub recoveries: u32,
    /// Window reductions by ECE, or by a probe that repaired a loss.
    pub reductions: u32,
    /// Current congestion window, in bytes.
    pub window: u32,
    /// Current slow start threshold, in bytes; `u32::MAX` before the first congestion.
    pub threshold: u32,
    /// Smoothed round-trip time.
    pub rtt: Option<Span>,
    /// Minimum round-trip time.
    pub rtt_min: Option<Span>,
    /// DCTCP's share of marked bytes, in units of 1 / 2^20.
    pub alpha: Option<u32>,
}

/// One end of a connection.
#[derive(Clone, Debug)]
pub struct Connection {
    pub(crate) config: Config,
    pub(crate) state: State,
    pub(crate) failure: Option<Failure>,
    /// Initial sequence number: the number of this end's SYN.
    pub(crate) first: Seq,
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    /// True if the SYN carries the window scale option.
    pub(crate) scaled: bool,
    /// Time of the next SYN retransmission, or of the end of TIME-WAIT.
    pub(crate) at: Option<Time>,
    /// Time of the first SYN; `None` once it has been retransmitted.
    pub(crate) opened: Option<Time>,
    pub(crate) tries: u8,
    /// True if a SYN is due.
    pub(crate) syn_due: bool,
    /// Reset that is due.
    pub(crate) reset: Option<Segment>,
    /// Earliest time of the next answer to an empty segment outside the window.
    pub(crate) answer_at: Time,
    /// Bytes received in order.
    pub(crate) received: u64,
}

impl Connection {
    /// Opens a connection. `first` is the sequence number of its SYN. It must differ between
    /// connections on one pair of ports (RFC 9293 §3.4.1).
    pub fn open(now: Time, config: Config, first: Seq) -> Connection {
        let mut connection = Connection::new(config, State::SynSent, first);
        connection.at = Some(now);
        connection.expire(now);
        connection
    }

    pub(crate) fn new(config: Config, state: State, first: Seq) -> Connection {
        Connection {
            sender: Sender::new(first + 1, &config),
            receiver: Receiver::new(&config),
            config,
            state,
            failure: None,
            first,
            scaled: false,
            at: None,
            opened: None,
            tries: 0,
            syn_due: false,
            reset: None,
            answer_at: Time::ZERO,
            received: 0,
        }
    }

    /// Returns the connection's state.
    pub fn state(&self) -> State {
        self.state
    }

    /// Returns the reason if the connection ended abnormally.
    pub fn failure(&self) -> Option<Failure> {
        self.failure
    }

    /// Returns whether the connection is closed and has nothing left to send.
    pub fn is_closed(&self) -> bool {
        self.state == State::Closed && self.reset.is_none()
    }

    /// Returns whether both ends have closed, so that their ports may be reused.
    pub fn is_over(&self) -> bool {
        matches!(self.state, State::TimeWait | State::Closed)
    }

    /// Returns the number of retransmitted segments.
    pub fn retransmits(&self) -> u64 {
        self.sender.sent.again
    }

    /// Returns whether the peer has closed and all its data has arrived.
    pub fn is_finished(&self) -> bool {
        self.receiver.is_finished()
    }

    /// Queues `bytes` bytes for transmission. Returns their number, or 0 after a close.
    pub fn write(&mut self, bytes: u64) -> u64 {
        self.sender.write(bytes)
    }

    /// Returns the free space in the send buffer, in bytes.
    pub fn room(&self) -> u64 {
        u64::from(self.config.send_buffer).saturating_sub(self.sender.queued())
    }

    /// Returns the bytes written and not yet acknowledged.
    pub fn queued(&self) -> u64 {
        self.sender.queued()
    }

    /// Returns the bytes that the peer has acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.sender.acked
    }

    /// Takes at most `bytes` bytes that were received in order. Returns their number.
    pub fn read(&mut self, bytes: u64) -> u64 {
        u64::from(self.receiver.read(u32::try_from(bytes).unwrap_or(u32::MAX)))
    }

    /// Returns the total number of bytes received in order.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Closes this end once all written data is sent. Returns whether this was the first call.
    pub fn close(&mut self) -> bool {
        self.sender.close()
    }

    /// Aborts the connection (RFC 9293 §3.10.5).
    pub fn abort(&mut self) {
        let synchronised = !matches!(self.state, State::SynSent | State::TimeWait | State::Closed);
        if synchronised {
            let flags = Flags::RST | Flags::ACK;
            let (seq, ack) = (self.sender.board.end(), self.receiver.next);
            self.reset = Some(Segment { seq, ack, flags, ..Segment::default() });
        }
        self.fail(Failure::Aborted);
    }

    pub(crate) fn fail(&mut self, why: Failure) {
        if self.state != State::Closed {
            self.failure = Some(why);
            self.end();
        }
    }

    /// Enters CLOSED and stops the timers.
    pub(crate) fn end(&mut self) {
        (self.state, self.at, self.syn_due) = (State::Closed, None, false);
    }

    /// Returns the current statistics.
    pub fn stats(&self) -> Stats {
        let (sent, control) = (self.sender.sent, &self.sender.control);
        Stats {
            segments: sent.segments,
            retransmits: sent.again,
            timeouts: sent.timeouts,
            probes: sent.probes,
            recoveries: sent.recoveries,
            reductions: sent.reductions,
            window: control.window,
            threshold: control.threshold,
            rtt: self.sender.rtt.smoothed,
            rtt_min: self.sender.rtt.shortest(),
            alpha: control.alpha(),
        }
    }

    /// Returns the connection's memory in bytes, including heap allocations.
    pub fn memory(&self) -> usize {
        size_of::<Connection>() + self.sender.board.memory() + self.receiver.memory()
    }

    /// Returns when to call [`Connection::poll_transmit`] next if no segment arrives before. A time
    /// in the past means now.
    pub fn deadline(&self) -> Option<Time> {
        if self.reset.is_some() || self.syn_due {
            return Some(Time::ZERO);
        }
        match self.state {
            State::Closed => None,
            State::SynSent | State::SynReceived => self.at,
            State::TimeWait => [self.at, self.receiver.deadline()].into_iter().flatten().min(),
            _ => [self.sender.deadline(), self.receiver.deadline()].into_iter().flatten().min(),
        }
    }

    /// Processes the timers that are due.
    fn expire(&mut self, now: Time) {
        match self.state {
            State::Closed => {}
            State::SynSent | State::SynReceived => {
                if self.at.is_some_and(|at| at <= now) {
                    self.syn_expired(now);
                }
            }
            State::TimeWait => {
                if self.at.is_some_and(|at| at <= now) {
                    self.end();
                }
            }
            _ => {
                if self.sender.expire(now, &self.config) {
                    self.fail(Failure::TimedOut);
                }
            }
        }
    }

    /// Sends or retransmits the SYN (RFC 6298 §5.7).
    fn syn_expired(&mut self, now: Time) {
        if self.tries > self.config.retries {
            return self.fail(Failure::TimedOut);
        }
        self.opened = (self.tries == 0).then_some(now);
        self.sender.rtt.backoff = self.tries;
        self.at = Some(now + self.sender.rtt.timeout(&self.config));
        self.tries += 1;
        self.syn_due = true;
    }

    /// Returns the next segment to send now, or `None`. Call it until it returns `None`. A caller
    /// without room may stop earlier and continue later.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        self.expire(now);
        if let Some(reset) = self.reset.take() {
            return Some(reset);
        }
        match self.state {
            State::Closed => None,
            State::SynSent | State::SynReceived => {
                core::mem::take(&mut self.syn_due).then(|| self.syn())
            }
            _ => self.poll_synchronised(now),
        }
    }

    fn syn(&mut self) -> Segment {
        let answers = self.state == State::SynReceived;
        let ecn = if answers { self.sender.ecn } else { self.config.wants_ecn() };
        let mut flags = Flags::SYN;
        if answers {
            flags = flags | Flags::ACK;
        }
        if ecn {
            // A SYN offers ECN with both bits; a SYN-ACK accepts it with ECE alone (RFC 3168
            // §6.1.1).
            flags = if answers { flags | Flags::ECE } else { flags | Flags::ECE | Flags::CWR };
        }
        let options = Options {
            mss: Some(self.config.mss),
            scale: (!answers || self.scaled).then_some(self.receiver.scale),
            sack_permitted: if answers { self.sender.sack } else { self.config.sack },
            ..Options::default()
        };
        let window = if answers {
            self.receiver.window(false)
        } else {
            self.config.window().min(u32::from(u16::MAX)) as u16
        };
        let ack = if answers { self.receiver.next } else { Seq(0) };
        Segment { seq: self.first, ack, flags, window, options, ..Segment::default() }
    }

    fn poll_synchronised(&mut self, now: Time) -> Option<Segment> {
        if let Some(early) = self.receiver.take_early() {
            let empty = Chunk { seq: self.sender.board.end(), ..Chunk::default() };
            let mut segment = self.dress(empty);
            segment.ack = early.ack;
            segment.options.sacks = Default::default();
            let echo = if early.echo { Flags::ECE.0 } else { 0 };
            segment.flags = Flags(segment.flags.0 & !Flags::ECE.0 | echo);
            return Some(segment);
        }
        let options = Options { sacks: self.receiver.sacks(), ..Options::default() };
        let room = self.sender.mss.saturating_sub(option_bytes(&options) as u32).max(1);
        let chunk = match self.state {
            State::TimeWait => None,
            _ => self.sender.next(now, room, &self.config),
        };
        if chunk.is_none() && !self.receiver.owes(now) {
            return None;
        }
        let empty = Chunk { seq: self.sender.board.end(), ..Chunk::default() };
        let segment = self.dress(chunk.unwrap_or(empty));
        self.receiver.reported();
        self.receiver.acknowledged();
        if self.sender.fin_sent() {
            self.state = match self.state {
                State::Established => State::FinWait1,
                State::CloseWait => State::LastAck,
                state => state,
            };
        }
        Some(segment)
    }

    /// Builds the segment of a chunk, with the current acknowledgement, window, SACK blocks and
    /// mark.
    fn dress(&mut self, chunk: Chunk) -> Segment {
        let mut flags = Flags::ACK;
        let flag = |on: bool, flag: Flags| if on { flag } else { Flags::default() };
        flags = flags | flag(chunk.fin, Flags::FIN) | flag(chunk.cwr, Flags::CWR);
        flags = flags | flag(chunk.bytes > 0 && self.sender.is_pushed(), Flags::PSH);
        flags = flags | flag(self.receiver.experienced, Flags::ECE);
        // Retransmissions are not ECN-capable (RFC 3168 §6.1.5), except with DCTCP, as in Linux.
        let markable = !chunk.again || self.sender.control.is_dctcp();
        let capable = chunk.bytes > 0 && self.sender.ecn && markable;
        Segment {
            seq: chunk.seq,
            ack: self.receiver.next,
            flags,
            window: self.receiver.window(self.scaled),
            options: Options { sacks: self.receiver.sacks(), ..Options::default() },
            bytes: chunk.bytes,
            mark: if capable { Mark::Capable } else { Mark::None },
        }
    }
}
