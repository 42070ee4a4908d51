//! One client's requests to one server, one at a time.
//!
//! Over TCP, requests and answers are byte counts on a connection that stays open. Over UDP each is
//! a datagram; a request without an answer is repeated after a timeout, and given up after some
//! tries.
//!
//! A request of 20 bytes or more starts with a header, all fields big-endian: its number, the
//! length of the request and of the answer (4 bytes each), and the server's work (8 bytes, in
//! ticks). A server with fixed sizes needs no header, so that requests of one byte are possible. An
//! answer over UDP begins with the request's number.

use super::tcp::TcpOptions;
use super::{AppId, FlowStats};
use crate::datagram::Datagram;
use crate::stack::Stack;
use crate::tcp::ConnectionId;
use axon_tcp::State;
use axon_wire::{Span, Time};
use std::net::Ipv4Addr;

/// Length of a request's header, in bytes.
pub(crate) const HEADER_BYTES: usize = 20;
/// Maximum number of transmissions of a request over UDP.
const TRIES_MAX: u32 = 5;

/// Transport of requests and answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// One connection that stays open. One that has closed is opened again after the retry timeout.
    Tcp(TcpOptions),
    /// One datagram each; a request without an answer is repeated.
    Udp,
}

/// Request to make.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) request: u32,
    pub(crate) response: u32,
    /// Server work in addition to the fixed cost of a request.
    pub(crate) work: Span,
}

/// Returns a request's header.
pub(crate) fn emit_header(number: u32, call: &Call) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..4].copy_from_slice(&number.to_be_bytes());
    header[4..8].copy_from_slice(&call.request.to_be_bytes());
    header[8..12].copy_from_slice(&call.response.to_be_bytes());
    header[12..].copy_from_slice(&call.work.ticks().to_be_bytes());
    header
}

/// Parses number and sizes of a request. Returns `None` if it is shorter than a header.
pub(crate) fn parse_header(bytes: &[u8]) -> Option<(u32, Call)> {
    let header = bytes.first_chunk::<HEADER_BYTES>()?;
    let word = |at: usize| {
        u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    let ticks = u64::from(word(12)) << 32 | u64::from(word(16));
    let call = Call { request: word(4), response: word(8), work: Span::from_ticks(ticks) };
    Some((word(0), call))
}

/// Result of a poll of a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// No change.
    None,
    /// The stack has work.
    More,
    /// The answer has arrived.
    Answered,
    /// The request has failed.
    Failed,
}

/// Request without an answer yet.
#[derive(Clone, Debug)]
struct Open {
    call: Call,
    /// Start of the request: header and message.
    message: Vec<u8>,
    /// Bytes of the request passed to the stack.
    sent: u32,
    /// Bytes of the answer received.
    got: u32,
    tries: u32,
    again_at: Time,
}

/// Connection or socket to one server.
pub(crate) struct Caller {
    owner: AppId,
    /// Address and port of the server.
    server: (Ipv4Addr, u16),
    transport: Transport,
    timeout: Span,
    connection: Option<ConnectionId>,
    /// Earliest time of the next connection, after one has closed.
    open_at: Option<Time>,
    local_port: Option<u16>,
    number: u32,
    open: Option<Open>,
    /// Last answer, up to the length needed; over TCP as it arrives.
    answer: Vec<u8>,
    keeps_answer: bool,
}

impl Caller {
    /// Returns a caller of an application. `udp_port` is the local port for answers over UDP.
    pub(crate) fn new(
        owner: AppId,
        server: (Ipv4Addr, u16),
        transport: Transport,
        timeout: Span,
        udp_port: Option<u16>,
    ) -> Caller {
        Caller {
            owner,
            server,
            transport,
            timeout,
            connection: None,
            open_at: None,
            local_port: udp_port,
            number: 0,
            open: None,
            answer: Vec::new(),
            keeps_answer: false,
        }
    }

    /// Returns whether a request can be sent: the target's MAC is known, and over TCP the
    /// connection is open. Opens the connection if needed.
    pub(crate) fn is_ready(&mut self, now: Time, stack: &mut Stack) -> bool {
        let Transport::Tcp(options) = self.transport else {
            return stack.way_to(self.server.0).is_some();
        };
        let Some(id) = self.connection else {
            if self.open_at.is_some_and(|at| at > now) {
                return false;
            }
            self.open_at = None;
            let config = options.config(stack.ip.mtu());
            if let Some((id, port)) = stack.open_tcp(now, self.owner, self.server, config) {
                (self.connection, self.local_port) = (Some(id), Some(port));
            }
            return false;
        };
        stack.tcp.look(id).is_some_and(|socket| socket.may_send())
    }

    /// Returns whether this is the caller's connection. Forgets it if it has closed between
    /// requests.
    pub(crate) fn owns(&mut self, now: Time, id: ConnectionId, stack: &Stack) -> bool {
        let is_own = self.connection == Some(id);
        let state = stack.tcp.look(id).map_or(State::Closed, |socket| socket.connection.state());
        if is_own && self.open.is_none() && state == State::Closed {
            (self.connection, self.open_at) = (None, Some(now + self.timeout));
        }
        is_own
    }

    /// Returns the local port, over TCP that of the last connection.
    pub(crate) fn local_port(&self) -> Option<u16> {
        self.local_port
    }

    /// Starts a request. [`Caller::poll`] sends it.
    pub(crate) fn ask(&mut self, now: Time, call: Call) {
        self.begin(now, call, &[]);
        self.keeps_answer = false;
    }

    /// Starts a request with a message after its header, and keeps its answer.
    pub(crate) fn say(&mut self, now: Time, call: Call, said: &[u8]) {
        self.begin(now, call, said);
        self.keeps_answer = true;
    }

    fn begin(&mut self, now: Time, call: Call, said: &[u8]) {
        self.number = self.number.wrapping_add(1);
        let message = [&emit_header(self.number, &call)[..], said].concat();
        self.open = Some(Open { call, message, sent: 0, got: 0, tries: 0, again_at: now });
        self.answer.clear();
    }

    /// Returns the answer to the last request with a message.
    pub(crate) fn answer(&self) -> &[u8] {
        &self.answer
    }

    /// Returns whether a request waits for its answer.
    pub(crate) fn is_waiting(&self) -> bool {
        self.open.is_some()
    }

    /// Sends and receives as much as possible.
    pub(crate) fn poll(&mut self, now: Time, stack: &mut Stack, stats: &mut FlowStats) -> Progress {
        match self.transport {
            Transport::Tcp(_) => self.poll_tcp(now, stack, stats),
            Transport::Udp => self.poll_udp(now, stack, stats),
        }
    }

    fn poll_tcp(&mut self, now: Time, stack: &mut Stack, stats: &mut FlowStats) -> Progress {
        let (Some(open), Some(id)) = (&mut self.open, self.connection) else {
            return Progress::None;
        };
        let socket = match stack.tcp.get(id) {
            Some(socket) if socket.may_send() => socket,
            closed => {
                if let Some(socket) = closed {
                    socket.connection.abort();
                }
                (self.open, self.connection) = (None, None);
                self.open_at = Some(now + self.timeout);
                return Progress::Failed;
            }
        };
        let mut progress = Progress::None;
        let message = open.message.get(open.sent as usize..).unwrap_or(&[]);
        let wrote = socket.write(message, (open.call.request - open.sent).into());
        if wrote > 0 {
            open.sent += wrote as u32;
            stats.count_sent(now, wrote as usize);
            progress = Progress::More;
        }
        let left = u64::from(open.call.response - open.got);
        let read = match self.keeps_answer {
            true => socket.read(left, &mut self.answer),
            false => socket.skip(left).0,
        };
        if read > 0 {
            open.got += read as u32;
            stats.received.count(now, read as usize);
            progress = Progress::More;
        }
        if open.sent == open.call.request && open.got == open.call.response {
            self.open = None;
            return Progress::Answered;
        }
        progress
    }

    fn poll_udp(&mut self, now: Time, stack: &mut Stack, stats: &mut FlowStats) -> Progress {
        let (Some(open), Some(local)) = (&mut self.open, self.local_port) else {
            return Progress::None;
        };
        if open.again_at > now {
            return Progress::None;
        }
        if open.tries == TRIES_MAX {
            self.open = None;
            return Progress::Failed;
        }
        let bytes = open.call.request as usize;
        let message = &open.message;
        let sent = stack.send_datagram((local, self.server.1), self.server.0, bytes, |payload| {
            payload.fill(0);
            let count = payload.len().min(message.len());
            payload[..count].copy_from_slice(&message[..count]);
        });
        if sent {
            stats.count_sent(now, bytes);
            stats.retransmits += u64::from(open.tries > 0);
        }
        open.tries += 1;
        open.again_at = now + self.timeout;
        Progress::More
    }

    /// Receives an answer over UDP, if it matches the open request as far as that can be checked.
    pub(crate) fn receive(
        &mut self,
        now: Time,
        datagram: &Datagram<'_>,
        stats: &mut FlowStats,
    ) -> bool {
        let Some(open) = &self.open else { return false };
        if datagram.from != self.server {
            return false;
        }
        let checked = datagram.payload.len().min(open.call.request as usize).min(4);
        if datagram.payload[..checked] != open.message[..checked] {
            return false;
        }
        if self.keeps_answer {
            self.answer.extend_from_slice(datagram.payload);
        }
        stats.received.count(now, datagram.payload.len());
        self.open = None;
        true
    }

    /// Returns when a request over UDP is to be repeated, or when a connection may be opened again
    /// for a request that is `pending`.
    pub(crate) fn deadline(&self, pending: bool) -> Option<Time> {
        let again = self.open.as_ref().map(|open| open.again_at);
        match self.transport {
            Transport::Udp => again,
            Transport::Tcp(_) => self.open_at.filter(|_| pending),
        }
    }

    /// Closes the connection.
    pub(crate) fn close(&mut self, stack: &mut Stack) {
        self.open = None;
        if let Some(socket) = self.connection.take().and_then(|id| stack.tcp.get(id)) {
            socket.connection.close();
        }
    }
}
