//! A server: takes requests, works on one at a time, answers.
//!
//! Requests are worked on in the order in which they became complete. Each costs the server a
//! fixed time and what its header says beside.

use super::caller::{Call, HEADER_BYTES, parse_header};
use super::tcp::{Listener, TcpOptions};
use super::{App, FlowStats};
use crate::host::datagram::Datagram;
use crate::host::stack::Stack;
use axon_wire::{Span, Time};
use smoltcp::iface::SocketHandle;
use smoltcp::socket::tcp;
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

/// How long requests and answers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Always the same, both ends know how many bytes.
    Fixed {
        /// Bytes of a request.
        request: u32,
        /// Bytes of an answer.
        response: u32,
    },
    /// Each request says it in its header.
    Framed,
}

/// A server to run: on the same number of a TCP and a UDP port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RespondPlan {
    /// Its ports.
    pub port: u16,
    /// How its connections behave.
    pub options: TcpOptions,
    /// How long requests and answers are.
    pub protocol: Protocol,
    /// Processor time that each request costs.
    pub service: Span,
}

/// Where an answer goes.
#[derive(Clone, Copy, Debug)]
enum Client {
    Connection(SocketHandle),
    Datagram((Ipv4Addr, u16), [u8; 4]),
}

/// A connection.
#[derive(Debug, Default)]
struct Stream {
    header: Vec<u8>,
    /// Bytes of the open request that have come.
    got: u32,
    /// Bytes of answers still to be handed to the stack.
    owed: u64,
}

/// A server at work.
pub(crate) struct Responder {
    plan: RespondPlan,
    listener: Listener,
    streams: BTreeMap<SocketHandle, Stream>,
    /// What is worked on or waits for that: when its answer is ready.
    jobs: VecDeque<(Time, Client, u32)>,
    free_at: Time,
    stats: FlowStats,
}

impl Responder {
    pub(crate) fn new(plan: RespondPlan, stack: &mut Stack) -> Responder {
        Responder {
            plan,
            listener: Listener::new(plan.port, plan.options, stack),
            streams: BTreeMap::new(),
            jobs: VecDeque::new(),
            free_at: Time::ZERO,
            stats: FlowStats::default(),
        }
    }

    /// Reads what has come on a connection; requests that are complete become jobs.
    fn read(&mut self, now: Time, handle: SocketHandle, stack: &mut Stack) -> bool {
        let stream = self.streams.entry(handle).or_default();
        let socket = stack.sockets.get_mut::<tcp::Socket>(handle);
        let mut more = false;
        while socket.can_recv() {
            let protocol = self.plan.protocol;
            let read = socket.recv(|bytes| stream.take(bytes, protocol));
            let Ok((count @ 1.., call)) = read else { break };
            more = true;
            self.stats.received.count(now, count, None);
            if let Some(call) = call {
                self.free_at = self.free_at.max(now) + self.plan.service + call.work;
                self.jobs.push_back((self.free_at, Client::Connection(handle), call.response));
            }
        }
        if socket.state() == tcp::State::CloseWait && stream.owed == 0 {
            socket.close();
            more = true;
        }
        more
    }

    /// Hands over the answers that are ready.
    fn answer(&mut self, now: Time, stack: &mut Stack) -> bool {
        let mut more = false;
        while let Some(&(ready, client, bytes)) = self.jobs.front() {
            if ready > now {
                break;
            }
            self.jobs.pop_front();
            self.stats.completed += 1;
            match client {
                Client::Connection(handle) => {
                    if let Some(stream) = self.streams.get_mut(&handle) {
                        stream.owed += u64::from(bytes);
                    }
                }
                Client::Datagram((ip, port), number) => {
                    let bytes = bytes as usize;
                    let sent = stack.send_datagram((self.plan.port, port), ip, bytes, |payload| {
                        payload.fill(0);
                        let count = payload.len().min(number.len());
                        payload[..count].copy_from_slice(&number[..count]);
                    });
                    if sent {
                        self.stats.count_sent(now, bytes);
                    }
                }
            }
        }
        for (&handle, stream) in self.streams.iter_mut().filter(|(_, stream)| stream.owed > 0) {
            let socket = stack.sockets.get_mut::<tcp::Socket>(handle);
            while stream.owed > 0 && socket.can_send() {
                let owed = usize::try_from(stream.owed).unwrap_or(usize::MAX);
                let wrote = socket.send(|room| (room.len().min(owed), room.len().min(owed)));
                let Ok(wrote @ 1..) = wrote else { break };
                stream.owed -= wrote as u64;
                self.stats.count_sent(now, wrote);
                more = true;
            }
        }
        more
    }
}

impl Stream {
    /// Takes bytes of one request off what has come: how many, and the request if it is
    /// complete.
    fn take(&mut self, bytes: &[u8], protocol: Protocol) -> (usize, (usize, Option<Call>)) {
        let call = match protocol {
            Protocol::Fixed { request, response } => Call { request, response, work: Span::ZERO },
            Protocol::Framed => {
                let missing = HEADER_BYTES - self.header.len().min(HEADER_BYTES);
                let head = &bytes[..bytes.len().min(missing)];
                self.header.extend_from_slice(head);
                match parse_header(&self.header) {
                    Some((_, call)) => call,
                    None => {
                        self.got += head.len() as u32;
                        return (head.len(), (head.len(), None));
                    }
                }
            }
        };
        let count = bytes.len().min(call.request.saturating_sub(self.got) as usize);
        self.got += count as u32;
        if self.got < call.request {
            return (count, (count, None));
        }
        self.got = 0;
        self.header.clear();
        (count, (count, Some(call)))
    }
}

impl App for Responder {
    fn poll(&mut self, now: Time, stack: &mut Stack) -> bool {
        self.listener.poll(stack);
        let open = std::mem::take(&mut self.listener.open);
        let before = self.streams.len();
        self.streams.retain(|handle, _| open.contains(handle));
        if self.streams.len() < before {
            // Nobody waits for these answers any more, and a handle may be given out again.
            self.jobs.retain(|(_, client, _)| match client {
                Client::Connection(handle) => open.contains(handle),
                Client::Datagram(..) => true,
            });
        }
        let mut more = false;
        for &handle in &open {
            more |= self.read(now, handle, stack);
        }
        self.listener.open = open;
        more | self.answer(now, stack)
    }

    fn deadline(&self) -> Option<Time> {
        self.jobs.front().map(|&(ready, ..)| ready)
    }

    fn stop(&mut self, now: Time, stack: &mut Stack) {
        self.listener.stop(stack);
        self.jobs.clear();
        self.stats.done = Some(now);
    }

    fn stats(&self) -> &FlowStats {
        &self.stats
    }

    fn receive(&mut self, now: Time, datagram: &Datagram<'_>, stack: &mut Stack) -> bool {
        if self.stats.done.is_some() {
            return false;
        }
        self.stats.received.count(now, datagram.payload.len(), None);
        let call = match self.plan.protocol {
            Protocol::Fixed { request, response } => {
                Some(Call { request, response, work: Span::ZERO })
            }
            Protocol::Framed => parse_header(datagram.payload).map(|(_, call)| call),
        };
        let Some(call) = call else { return false };
        let mut number = [0; 4];
        let count = datagram.payload.len().min(4);
        number[..count].copy_from_slice(&datagram.payload[..count]);
        self.free_at = self.free_at.max(now) + self.plan.service + call.work;
        self.jobs.push_back((self.free_at, Client::Datagram(datagram.from, number), call.response));
        self.answer(now, stack)
    }

    fn udp_port(&self) -> Option<u16> {
        Some(self.plan.port)
    }
}
