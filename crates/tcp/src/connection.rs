//! One end of a connection: its state, and what it sends (RFC 9293 §3.3, §3.5, §3.6).

use crate::config::Config;
use crate::header::option_bytes;
use crate::receive::Receiver;
use crate::segment::{Flags, Mark, Options, Segment, Seq};
use crate::send::{Chunk, Sender};
use axon_wire::{Span, Time};

/// The state of an end (RFC 9293 §3.3.2). Listening has none: see [`Connection::accept`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// A SYN was sent.
    SynSent,
    /// A SYN has come and was answered.
    SynReceived,
    /// Open in both directions.
    Established,
    /// This end has closed.
    FinWait1,
    /// This end has closed, and the peer knows.
    FinWait2,
    /// The peer has closed.
    CloseWait,
    /// Both have closed at once.
    Closing,
    /// The peer had closed, and this end has.
    LastAck,
    /// Closed; repeated segments are answered.
    TimeWait,
    /// It is no more.
    Closed,
}

/// Why a connection ended before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The peer refused it.
    Refused,
    /// The peer broke it off.
    Reset,
    /// The peer did not answer.
    TimedOut,
    /// This end broke it off.
    Aborted,
}

/// What has happened at one end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Segments with payload or FIN that were sent, for the first time or again.
    pub segments: u64,
    /// Of those, sent again.
    pub retransmits: u64,
    /// Retransmission timeouts.
    pub timeouts: u32,
    /// Tail loss probes.
    pub probes: u32,
    /// Recoveries from losses that were detected without a timeout.
    pub recoveries: u32,
    /// Reductions of the window by ECE, or by a probe that repaired a loss.
    pub reductions: u32,
    /// The congestion window now, in bytes.
    pub window: u32,
    /// Where slow start ends now, in bytes; `u32::MAX` before the first congestion.
    pub threshold: u32,
    /// The smoothed round trip.
    pub rtt: Option<Span>,
    /// The shortest round trip.
    pub rtt_min: Option<Span>,
    /// DCTCP's share of marked bytes, in 1 / 2^20.
    pub alpha: Option<u32>,
}

/// One end of a connection.
#[derive(Clone, Debug)]
pub struct Connection {
    pub(crate) config: Config,
    pub(crate) state: State,
    pub(crate) failure: Option<Failure>,
    /// The number of this end's SYN.
    pub(crate) first: Seq,
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    /// What the SYN is to carry besides, as the peer's allows.
    pub(crate) scaled: bool,
    /// When the SYN is sent again, or TIME-WAIT ends.
    pub(crate) at: Option<Time>,
    /// When the SYN was first sent, until it was sent again.
    pub(crate) opened: Option<Time>,
    pub(crate) tries: u8,
    /// A SYN is to leave now.
    pub(crate) syn_due: bool,
    /// A reset is to leave.
    pub(crate) reset: Option<Segment>,
    /// The next answer to an empty segment outside of the window leaves no sooner.
    pub(crate) answer_at: Time,
    /// Bytes that came in order.
    pub(crate) received: u64,
}

impl Connection {
    /// Begins to open a connection. `first` is the number of its SYN: different for connections
    /// between the same ports (RFC 9293 §3.4.1).
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

    /// Its state.
    pub fn state(&self) -> State {
        self.state
    }

    /// Why it ended, if that was before its time.
    pub fn failure(&self) -> Option<Failure> {
        self.failure
    }

    /// Whether it is no more, and has nothing to send either.
    pub fn is_closed(&self) -> bool {
        self.state == State::Closed && self.reset.is_none()
    }

    /// Whether it is open: the handshake is over, and neither end has closed or broken off.
    pub fn is_established(&self) -> bool {
        self.state == State::Established
    }

    /// Whether both ends have closed, so that a new one may begin between the same ports.
    pub fn is_over(&self) -> bool {
        matches!(self.state, State::TimeWait | State::Closed)
    }

    /// Segments that were sent again.
    pub fn retransmits(&self) -> u64 {
        self.sender.sent.again
    }

    /// Whether the peer has closed, and all that it sent has arrived.
    pub fn is_finished(&self) -> bool {
        self.receiver.is_finished()
    }

    /// Gives it so many bytes to send.
    pub fn write(&mut self, bytes: u64) {
        self.sender.write(bytes);
    }

    /// Bytes that may be written before the send buffer is full.
    pub fn room(&self) -> u64 {
        u64::from(self.config.send_buffer).saturating_sub(self.sender.queued())
    }

    /// Bytes that were written and are not acknowledged.
    pub fn queued(&self) -> u64 {
        self.sender.queued()
    }

    /// Bytes that the peer has acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.sender.acked
    }

    /// Takes the bytes that have come in order since the last time; how many.
    pub fn read(&mut self) -> u64 {
        u64::from(self.receiver.read())
    }

    /// Bytes that have come in order in all.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Sends what was written, then closes this end. Returns whether it was not asked to before.
    pub fn close(&mut self) -> bool {
        self.sender.close()
    }

    /// Breaks the connection off (RFC 9293 §3.10.5).
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

    /// It is no more.
    pub(crate) fn end(&mut self) {
        (self.state, self.at, self.syn_due) = (State::Closed, None, false);
    }

    /// Figures of now.
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

    /// Bytes of memory that it takes, itself and what it points to.
    pub fn memory(&self) -> usize {
        size_of::<Connection>() + self.sender.board.memory() + self.receiver.memory()
    }

    /// When [`Connection::poll_transmit`] is to be called next, if nothing comes before. A time
    /// that has passed means now.
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

    /// Lets the timers expire that are due.
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

    /// Sends the SYN, for the first time or again (RFC 6298 §5.7).
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

    /// The next segment that leaves now; call until there is none. The caller may take fewer, if
    /// it has no room, and go on later.
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
            // A SYN offers ECN by both bits, its answer accepts by one (RFC 3168 §6.1.1).
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

    /// The segment around a chunk: with acknowledgement, window, blocks and marks of now.
    fn dress(&mut self, chunk: Chunk) -> Segment {
        let mut flags = Flags::ACK;
        let flag = |on: bool, flag: Flags| if on { flag } else { Flags::default() };
        flags = flags | flag(chunk.fin, Flags::FIN) | flag(chunk.cwr, Flags::CWR);
        flags = flags | flag(chunk.bytes > 0 && self.sender.is_pushed(), Flags::PSH);
        flags = flags | flag(self.receiver.experienced, Flags::ECE);
        // What is sent again is not marked (RFC 3168 §6.1.5), but for DCTCP, as in Linux.
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
