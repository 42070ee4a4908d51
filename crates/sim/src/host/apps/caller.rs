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

use super::FlowStats;
use super::tcp::{self, TcpOptions};
use crate::host::datagram::Datagram;
use crate::host::stack::Stack;
use axon_wire::{Span, Time};
use smoltcp::iface::SocketHandle;
use smoltcp::socket::tcp as stack_tcp;
use std::net::Ipv4Addr;

/// Length of a request's header, in bytes.
pub(crate) const HEADER_BYTES: usize = 20;
/// Maximum number of transmissions of a request over UDP.
const TRIES_MAX: u32 = 5;

/// Transport of requests and answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// One connection that stays open.
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
    pub(crate) target: Ipv4Addr,
    port: u16,
    transport: Transport,
    timeout: Span,
    socket: Option<SocketHandle>,
    pub(crate) local_port: Option<u16>,
    number: u32,
    open: Option<Open>,
    /// Last answer, up to the length needed; over TCP as it arrives.
    answer: Vec<u8>,
    keeps_answer: bool,
}

impl Caller {
    /// Returns a caller. `udp_port` is the local port for answers over UDP.
    pub(crate) fn new(
        (target, port): (Ipv4Addr, u16),
        transport: Transport,
        timeout: Span,
        udp_port: Option<u16>,
    ) -> Caller {
        Caller {
            target,
            port,
            transport,
            timeout,
            socket: None,
            local_port: udp_port,
            number: 0,
            open: None,
            answer: Vec::new(),
            keeps_answer: false,
        }
    }

    /// Returns whether a request can be sent: the target's MAC is known, and over TCP the
    /// connection is open. Opens the connection if needed.
    pub(crate) fn is_ready(&mut self, stack: &mut Stack) -> bool {
        let Transport::Tcp(options) = self.transport else {
            return stack.way_to(self.target).is_some();
        };
        let Some(handle) = self.socket else {
            if let Some((socket, port)) = tcp::connect(self.target, self.port, &options, stack) {
                (self.socket, self.local_port) = (Some(socket), Some(port));
            }
            return false;
        };
        let socket = stack.sockets.get_mut::<stack_tcp::Socket>(handle);
        if !socket.is_open() {
            stack.sockets.remove(handle);
            self.socket = None;
            return false;
        }
        socket.may_send()
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
        let (Some(open), Some(handle)) = (&mut self.open, self.socket) else {
            return Progress::None;
        };
        let socket = stack.sockets.get_mut::<stack_tcp::Socket>(handle);
        if !socket.may_send() {
            if socket.is_open() {
                socket.abort();
            }
            self.open = None;
            return Progress::Failed;
        }
        let mut progress = Progress::None;
        while open.sent < open.call.request && socket.can_send() {
            let (from, left) = (open.sent as usize, (open.call.request - open.sent) as usize);
            let wrote = socket.send(|room| {
                let count = room.len().min(left);
                // The bytes after the message are arbitrary.
                if let Some(message) = open.message.get(from..) {
                    let message = &message[..message.len().min(count)];
                    room[..message.len()].copy_from_slice(message);
                }
                (count, count)
            });
            let Ok(wrote @ 1..) = wrote else { break };
            open.sent += wrote as u32;
            stats.count_sent(now, wrote);
            progress = Progress::More;
        }
        while open.got < open.call.response && socket.can_recv() {
            let left = (open.call.response - open.got) as usize;
            let (answer, keeps) = (&mut self.answer, self.keeps_answer);
            let read = socket.recv(|bytes| {
                let count = bytes.len().min(left);
                if keeps {
                    answer.extend_from_slice(&bytes[..count]);
                }
                (count, count)
            });
            let Ok(read @ 1..) = read else { break };
            open.got += read as u32;
            stats.received.count(now, read, None);
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
        let sent = stack.send_datagram((local, self.port), self.target, bytes, |payload| {
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
        if datagram.from != (self.target, self.port) {
            return false;
        }
        let checked = datagram.payload.len().min(open.call.request as usize).min(4);
        if datagram.payload[..checked] != open.message[..checked] {
            return false;
        }
        if self.keeps_answer {
            self.answer.extend_from_slice(datagram.payload);
        }
        stats.received.count(now, datagram.payload.len(), None);
        self.open = None;
        true
    }

    /// Returns when a request over UDP is to be repeated.
    pub(crate) fn deadline(&self) -> Option<Time> {
        let again = self.open.as_ref().map(|open| open.again_at);
        again.filter(|_| self.transport == Transport::Udp)
    }

    /// Closes the connection.
    pub(crate) fn close(&mut self, stack: &mut Stack) {
        self.open = None;
        if let Some(handle) = self.socket {
            stack.sockets.get_mut::<stack_tcp::Socket>(handle).close();
        }
    }
}
