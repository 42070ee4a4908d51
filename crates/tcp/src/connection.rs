//! One end of a connection: its state machine and transmission (RFC 9293 §3.3, §3.5, §3.6).

mod arrival;

use crate::config::Config;
use crate::handshake::Handshake;
use crate::header::option_bytes;
use crate::receive::Receiver;
use crate::segment::{Flags, Mark, Options, Segment, Seq};
use crate::send::{Chunk, Sender};
use crate::stats::Stats;
use axon_wire::Time;

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

/// One end of a connection.
#[derive(Clone, Debug)]
pub struct Connection {
    config: Config,
    state: State,
    failure: Option<Failure>,
    handshake: Handshake,
    sender: Sender,
    receiver: Receiver,
    /// End of TIME-WAIT.
    over_at: Time,
    /// Reset that is due.
    reset: Option<Segment>,
    /// Earliest time of the next answer to an empty segment outside the window.
    answer_at: Time,
    /// Bytes received in order.
    received: u64,
}

impl Connection {
    /// Opens a connection. `first` is the sequence number of its SYN. It must differ between
    /// connections on one pair of ports (RFC 9293 §3.4.1).
    pub fn open(now: Time, config: Config, first: Seq) -> Connection {
        let mut connection = Connection::new(config, State::SynSent, first);
        connection.handshake.start(now);
        connection.expire(now);
        connection
    }

    fn new(config: Config, state: State, first: Seq) -> Connection {
        Connection {
            sender: Sender::new(first + 1, &config),
            receiver: Receiver::new(&config),
            config,
            state,
            failure: None,
            handshake: Handshake::new(first),
            over_at: Time::ZERO,
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
        self.sender.stats().retransmits
    }

    /// Returns whether the peer has closed and all its data has arrived.
    pub fn is_finished(&self) -> bool {
        self.receiver.is_finished()
    }

    /// Queues `bytes` bytes for transmission. Returns their number, or 0 after a close.
    pub fn write(&mut self, bytes: u64) -> u64 {
        self.sender.stream_mut().write(bytes)
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
        self.sender.stream().acked()
    }

    /// Takes at most `bytes` bytes that were received in order. Returns their number.
    pub fn read(&mut self, bytes: u64) -> u64 {
        u64::from(self.receiver.read(u32::try_from(bytes).unwrap_or(u32::MAX)))
    }

    /// Returns the total number of bytes received in order.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Returns the number of bytes received in order, and the sequence number of the next one.
    pub(crate) fn next_received(&self) -> (u64, Seq) {
        (self.received, self.receiver.next())
    }

    /// Returns the place of a sent byte in the outgoing stream.
    pub(crate) fn place_of(&self, seq: Seq) -> u64 {
        self.acknowledged() + u64::from(seq.since(self.sender.board().start()))
    }

    /// Closes this end once all written data is sent. Returns whether this was the first call.
    pub fn close(&mut self) -> bool {
        self.sender.stream_mut().close()
    }

    /// Aborts the connection (RFC 9293 §3.10.5).
    pub fn abort(&mut self) {
        let synchronised = !matches!(self.state, State::SynSent | State::TimeWait | State::Closed);
        if synchronised {
            let flags = Flags::RST | Flags::ACK;
            let (seq, ack) = (self.sender.board().end(), self.receiver.next());
            self.reset = Some(Segment { seq, ack, flags, ..Segment::default() });
        }
        self.fail(Failure::Aborted);
    }

    fn fail(&mut self, why: Failure) {
        if self.state != State::Closed {
            self.failure = Some(why);
            self.end();
        }
    }

    /// Enters CLOSED.
    fn end(&mut self) {
        self.state = State::Closed;
        self.handshake.stop();
    }

    /// Returns the current statistics.
    pub fn stats(&self) -> Stats {
        self.sender.stats()
    }

    /// Returns the connection's memory in bytes, including heap allocations.
    pub fn memory(&self) -> usize {
        size_of::<Connection>() + self.sender.board().memory() + self.receiver.memory()
    }

    /// Returns when to call [`Connection::poll_transmit`] next if no segment arrives before. A time
    /// in the past means now.
    pub fn deadline(&self) -> Option<Time> {
        if self.reset.is_some() {
            return Some(Time::ZERO);
        }
        match self.state {
            State::Closed => None,
            State::SynSent | State::SynReceived => self.handshake.deadline(),
            State::TimeWait => self.receiver.deadline().into_iter().chain([self.over_at]).min(),
            _ => [self.sender.deadline(), self.receiver.deadline()].into_iter().flatten().min(),
        }
    }

    /// Processes the timers that are due.
    fn expire(&mut self, now: Time) {
        match self.state {
            State::Closed => {}
            State::SynSent | State::SynReceived => {
                if self.handshake.expire(now, &self.config, &mut self.sender) {
                    self.fail(Failure::TimedOut);
                }
            }
            State::TimeWait => {
                if self.over_at <= now {
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
                let answers = self.state == State::SynReceived;
                self.handshake.take(answers, &self.config, &self.sender, &mut self.receiver)
            }
            _ => self.poll_synchronised(now),
        }
    }

    fn poll_synchronised(&mut self, now: Time) -> Option<Segment> {
        if let Some(early) = self.receiver.take_early() {
            let empty = Chunk { seq: self.sender.board().end(), ..Chunk::default() };
            let mut segment = self.dress(empty);
            segment.ack = early.ack;
            segment.options.sacks = Default::default();
            let echo = if early.echo { Flags::ECE.0 } else { 0 };
            segment.flags = Flags(segment.flags.0 & !Flags::ECE.0 | echo);
            return Some(segment);
        }
        let options = Options { sacks: self.receiver.sacks(), ..Options::default() };
        let room = self.sender.agreed().mss.saturating_sub(option_bytes(&options) as u32).max(1);
        let chunk = match self.state {
            State::TimeWait => None,
            _ => self.sender.next(now, room, &self.config),
        };
        if chunk.is_none() && !self.receiver.owes(now) {
            return None;
        }
        let empty = Chunk { seq: self.sender.board().end(), ..Chunk::default() };
        let segment = self.dress(chunk.unwrap_or(empty));
        self.receiver.reported();
        self.receiver.acknowledged();
        if self.sender.stream().fin_sent() {
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
        flags = flags | flag(chunk.bytes > 0 && self.sender.stream().unsent() == 0, Flags::PSH);
        flags = flags | flag(self.receiver.echoes(), Flags::ECE);
        Segment {
            seq: chunk.seq,
            ack: self.receiver.next(),
            flags,
            window: self.receiver.window(false),
            options: Options { sacks: self.receiver.sacks(), ..Options::default() },
            bytes: chunk.bytes,
            mark: if self.sender.may_mark(&chunk) { Mark::Capable } else { Mark::None },
        }
    }
}
