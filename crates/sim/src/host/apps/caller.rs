//! One client's way to one server: a request at a time, and its answer.
//!
//! Over TCP a request is so many bytes on a connection that stays open, and its answer so
//! many bytes back. Over UDP each is a datagram; a request that has no answer in time is sent
//! again, and given up after some tries.
//!
//! A request of 20 bytes or more starts with a header, all fields big-endian: its number, the
//! bytes of the request and of the answer (4 bytes each), and the work that it is for the
//! server (8 bytes, in ticks). A server that is set to fixed sizes needs no header, so that
//! requests of one byte are possible. An answer over UDP begins with the request's number.

use super::FlowStats;
use super::tcp::{self, TcpOptions};
use crate::host::datagram::Datagram;
use crate::host::stack::Stack;
use axon_wire::{Span, Time};
use smoltcp::iface::SocketHandle;
use smoltcp::socket::tcp as stack_tcp;
use std::net::Ipv4Addr;

/// Bytes of a request's header.
pub(crate) const HEADER_BYTES: usize = 20;
/// How often a request over UDP is sent.
const TRIES_MAX: u32 = 5;

/// How a request and its answer travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// On one connection that stays open.
    Tcp(TcpOptions),
    /// In one datagram each; a request without an answer is sent again.
    Udp,
}

/// What to ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) request: u32,
    pub(crate) response: u32,
    /// The server's work, beside what every request costs it.
    pub(crate) work: Span,
}

/// A request's header.
pub(crate) fn emit_header(number: u32, call: &Call) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..4].copy_from_slice(&number.to_be_bytes());
    header[4..8].copy_from_slice(&call.request.to_be_bytes());
    header[8..12].copy_from_slice(&call.response.to_be_bytes());
    header[12..].copy_from_slice(&call.work.ticks().to_be_bytes());
    header
}

/// Number and sizes of a request; `None` if it is shorter than a header.
pub(crate) fn parse_header(bytes: &[u8]) -> Option<(u32, Call)> {
    let header = bytes.first_chunk::<HEADER_BYTES>()?;
    let word = |at: usize| {
        u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    let ticks = u64::from(word(12)) << 32 | u64::from(word(16));
    let call = Call { request: word(4), response: word(8), work: Span::from_ticks(ticks) };
    Some((word(0), call))
}

/// What a poll of a caller came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Nothing.
    None,
    /// The stack has work.
    More,
    /// The answer is here.
    Answered,
    /// There will be none.
    Failed,
}

/// A request that awaits its answer.
#[derive(Clone, Debug)]
struct Open {
    call: Call,
    /// What it begins with: its header, and what it says.
    message: Vec<u8>,
    /// Bytes of the request handed to the stack.
    sent: u32,
    /// Bytes of the answer that have come.
    got: u32,
    tries: u32,
    again_at: Time,
}

/// The way to one server.
pub(crate) struct Caller {
    pub(crate) target: Ipv4Addr,
    port: u16,
    transport: Transport,
    timeout: Span,
    socket: Option<SocketHandle>,
    pub(crate) local_port: Option<u16>,
    number: u32,
    open: Option<Open>,
    /// The last answer, as far as it was asked for; over TCP while it comes.
    answer: Vec<u8>,
    keeps_answer: bool,
}

impl Caller {
    /// `udp_port` is the port that answers over UDP come to.
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

    /// Whether a request can go out: the target's MAC is known, and over TCP the connection
    /// is open; one that is not is opened.
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

    /// Begins a request; [`Caller::poll`] brings it on.
    pub(crate) fn ask(&mut self, now: Time, call: Call) {
        self.begin(now, call, &[]);
        self.keeps_answer = false;
    }

    /// Begins a request that says something behind its header, and whose answer matters.
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

    /// What the server has answered to the last request that was said.
    pub(crate) fn answer(&self) -> &[u8] {
        &self.answer
    }

    /// Whether a request waits for its answer.
    pub(crate) fn is_waiting(&self) -> bool {
        self.open.is_some()
    }

    /// Sends what can be sent, takes what has come.
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
                // Behind the message, whatever is in the buffer will do.
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

    /// Takes an answer over UDP: the one to the open request, as far as it can be checked.
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

    /// When a request over UDP is to be sent again.
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
