//! A server, which handles one request at a time.
//!
//! Requests are handled in the order of their completion. Each costs the server a fixed time, plus
//! the time in its header.

use super::caller::{Call, HEADER_BYTES, parse_header};
use super::file_store::FileStore;
use super::tcp::TcpOptions;
use super::{App, AppId, FlowStats};
use crate::datagram::Datagram;
use crate::stack::Stack;
use crate::tcp::ConnectionId;
use axon_tcp::{Socket, State};
use axon_wire::{Span, Time};
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

/// Length of a request's number, with which an answer over UDP begins, in bytes.
const NUMBER_BYTES: usize = 4;

/// Protocol that defines the sizes of requests and answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Fixed sizes, known to both ends.
    Fixed {
        /// Request size in bytes.
        request: u32,
        /// Answer size in bytes.
        response: u32,
    },
    /// File service calls, with the sizes in each request's header. The server executes the calls:
    /// it stores written data and answers with it.
    Files,
}

/// Server configuration, for a TCP and a UDP port of the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RespondPlan {
    /// TCP and UDP port.
    pub port: u16,
    /// TCP options of the connections.
    pub options: TcpOptions,
    /// Protocol that defines the sizes of requests and answers.
    pub protocol: Protocol,
    /// Processor time per request.
    pub service: Span,
}

/// Destination of an answer.
#[derive(Clone, Copy, Debug)]
enum Client {
    Connection(ConnectionId),
    Datagram((Ipv4Addr, u16)),
}

/// Request that is queued or in service.
#[derive(Debug)]
struct Job {
    /// Time at which the answer is ready.
    ready: Time,
    client: Client,
    /// Answer size in bytes.
    bytes: u32,
    /// Start of the answer.
    answer: Vec<u8>,
}

/// Connection of a client.
#[derive(Debug, Default)]
struct Stream {
    /// Bytes of the open request, as far as they are read.
    message: Vec<u8>,
    /// Number of bytes of the open request received.
    got: u32,
    /// Answer bytes not yet written to the connection.
    owed: u64,
    /// Contents of these answers; empty if they do not matter.
    answers: VecDeque<u8>,
}

/// Complete request.
type Request = (Call, Vec<u8>);

/// Running server.
pub(crate) struct Responder {
    plan: RespondPlan,
    streams: BTreeMap<ConnectionId, Stream>,
    files: FileStore,
    jobs: VecDeque<Job>,
    free_at: Time,
    stats: FlowStats,
}

impl Responder {
    pub(crate) fn new(id: AppId, plan: RespondPlan, stack: &mut Stack) -> Responder {
        stack.tcp.listen(plan.port, id, plan.options.config(stack.ip.mtu()));
        Responder {
            plan,
            streams: BTreeMap::new(),
            files: FileStore::default(),
            jobs: VecDeque::new(),
            free_at: Time::ZERO,
            stats: FlowStats::default(),
        }
    }

    /// Reads from a connection. Complete requests become jobs.
    fn read(&mut self, now: Time, id: ConnectionId, stack: &mut Stack) {
        let remote = stack.tcp.remote(id);
        let (Some(socket), Some(from)) = (stack.tcp.get(id), remote) else { return };
        if socket.connection.is_over() {
            // Its answers go too, as IDs are reused.
            self.streams.remove(&id);
            let is_of = |job: &Job| matches!(job.client, Client::Connection(of) if of == id);
            self.jobs.retain(|job| !is_of(job));
            return;
        }
        let stream = self.streams.entry(id).or_default();
        let mut requests = Vec::new();
        while socket.unread() > 0 {
            let (count @ 1.., request) = stream.take(socket, self.plan.protocol) else { break };
            self.stats.received.count(now, count as usize);
            requests.extend(request);
        }
        if socket.connection.state() == State::CloseWait && stream.owed == 0 {
            socket.connection.close();
        }
        for (call, message) in requests {
            let answer = match self.plan.protocol {
                Protocol::Files => self.files.serve(from, &message),
                Protocol::Fixed { .. } => Some(Vec::new()),
            };
            self.work(now, Client::Connection(id), call, answer);
        }
    }

    /// Queues a request. A request without an answer ends here.
    fn work(&mut self, now: Time, client: Client, call: Call, answer: Option<Vec<u8>>) {
        let Some(answer) = answer else { return };
        self.free_at = self.free_at.max(now) + self.plan.service + call.work;
        self.jobs.push_back(Job { ready: self.free_at, client, bytes: call.response, answer });
    }

    /// Sends the ready answers.
    fn answer(&mut self, now: Time, stack: &mut Stack) {
        while self.jobs.front().is_some_and(|job| job.ready <= now) {
            let Some(Job { client, bytes, mut answer, .. }) = self.jobs.pop_front() else { break };
            self.stats.completed += 1;
            match client {
                Client::Connection(id) => {
                    if let Some(stream) = self.streams.get_mut(&id) {
                        stream.owed += u64::from(bytes);
                        if !answer.is_empty() {
                            answer.resize(bytes as usize, 0);
                            stream.answers.extend(answer);
                        }
                    }
                    self.write(now, id, stack);
                }
                Client::Datagram((ip, port)) => {
                    let bytes = bytes as usize;
                    let sent = stack.send_datagram((self.plan.port, port), ip, bytes, |payload| {
                        payload.fill(0);
                        let count = payload.len().min(answer.len());
                        payload[..count].copy_from_slice(&answer[..count]);
                    });
                    if sent {
                        self.stats.count_sent(now, bytes);
                    }
                }
            }
        }
    }

    /// Writes answers to a connection, as far as its send buffer has room.
    fn write(&mut self, now: Time, id: ConnectionId, stack: &mut Stack) {
        let Some(stream) = self.streams.get_mut(&id).filter(|stream| stream.owed > 0) else {
            return;
        };
        let Some(socket) = stack.tcp.get(id) else { return };
        let wrote = socket.write(stream.answers.make_contiguous(), stream.owed);
        if wrote > 0 {
            stream.owed -= wrote;
            stream.answers.drain(..stream.answers.len().min(wrote as usize));
            self.stats.count_sent(now, wrote as usize);
        }
    }
}

impl Stream {
    /// Reads bytes of one request. Returns their number, and the request if it is complete.
    fn take(&mut self, socket: &mut Socket, protocol: Protocol) -> (u64, Option<Request>) {
        let wanted = match protocol {
            Protocol::Fixed { request, .. } => request,
            Protocol::Files => match parse_header(&self.message) {
                Some((_, call)) => call.request,
                None => HEADER_BYTES as u32,
            },
        };
        let left = u64::from(wanted.saturating_sub(self.got));
        let count = match protocol {
            Protocol::Fixed { .. } => socket.skip(left).0,
            Protocol::Files => socket.read(left, &mut self.message),
        };
        self.got += count as u32;
        (count, self.complete(protocol))
    }

    /// Returns the received request if it is complete.
    fn complete(&mut self, protocol: Protocol) -> Option<Request> {
        let call = match protocol {
            Protocol::Fixed { request, response } => Call { request, response, work: Span::ZERO },
            Protocol::Files => parse_header(&self.message)?.1,
        };
        if self.got < call.request {
            return None;
        }
        self.got = 0;
        Some((call, std::mem::take(&mut self.message)))
    }
}

impl App for Responder {
    fn poll(&mut self, now: Time, stack: &mut Stack) -> bool {
        self.answer(now, stack);
        false
    }

    fn connection(&mut self, now: Time, id: ConnectionId, stack: &mut Stack) {
        self.read(now, id, stack);
        self.write(now, id, stack);
        self.answer(now, stack);
    }

    fn deadline(&self) -> Option<Time> {
        self.jobs.front().map(|job| job.ready)
    }

    fn stop(&mut self, now: Time, stack: &mut Stack) {
        stack.tcp.close_port(self.plan.port);
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
        self.stats.received.count(now, datagram.payload.len());
        let (call, answer) = match self.plan.protocol {
            Protocol::Fixed { request, response } => {
                let number = &datagram.payload[..datagram.payload.len().min(NUMBER_BYTES)];
                (Call { request, response, work: Span::ZERO }, Some(number.to_vec()))
            }
            Protocol::Files => {
                let Some((_, call)) = parse_header(datagram.payload) else { return false };
                (call, self.files.serve(datagram.from, datagram.payload))
            }
        };
        self.work(now, Client::Datagram(datagram.from), call, answer);
        self.answer(now, stack);
        false
    }

    fn udp_port(&self) -> Option<u16> {
        Some(self.plan.port)
    }
}
