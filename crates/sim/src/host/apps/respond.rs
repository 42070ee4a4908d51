//! A server, which handles one request at a time.
//!
//! Requests are handled in the order of their completion. Each costs the server a fixed time, plus
//! the time in its header.

use super::caller::{Call, HEADER_BYTES, parse_header};
use super::file_store::FileStore;
use super::tcp::{Listener, TcpOptions};
use super::{App, FlowStats};
use crate::host::datagram::Datagram;
use crate::host::stack::Stack;
use axon_wire::{Span, Time};
use smoltcp::iface::SocketHandle;
use smoltcp::socket::tcp;
use smoltcp::wire::IpAddress;
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
    Connection(SocketHandle),
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
    /// Answer bytes not yet passed to the stack.
    owed: u64,
    /// Contents of these answers; empty if they do not matter.
    answers: VecDeque<u8>,
}

/// Complete request.
type Request = (Call, Vec<u8>);

/// Running server.
pub(crate) struct Responder {
    plan: RespondPlan,
    listener: Listener,
    streams: BTreeMap<SocketHandle, Stream>,
    files: FileStore,
    jobs: VecDeque<Job>,
    free_at: Time,
    stats: FlowStats,
}

impl Responder {
    pub(crate) fn new(plan: RespondPlan, stack: &mut Stack) -> Responder {
        Responder {
            plan,
            listener: Listener::new(plan.port, plan.options, stack),
            streams: BTreeMap::new(),
            files: FileStore::default(),
            jobs: VecDeque::new(),
            free_at: Time::ZERO,
            stats: FlowStats::default(),
        }
    }

    /// Reads from a connection. Complete requests become jobs.
    fn read(&mut self, now: Time, handle: SocketHandle, stack: &mut Stack) -> bool {
        let stream = self.streams.entry(handle).or_default();
        let socket = stack.sockets.get_mut::<tcp::Socket>(handle);
        let (mut more, mut requests) = (false, Vec::new());
        while socket.can_recv() {
            let protocol = self.plan.protocol;
            let read = socket.recv(|bytes| stream.take(bytes, protocol));
            let Ok((count @ 1.., request)) = read else { break };
            more = true;
            self.stats.received.count(now, count, None);
            requests.extend(request);
        }
        if socket.state() == tcp::State::CloseWait && stream.owed == 0 {
            socket.close();
            more = true;
        }
        let from = socket.remote_endpoint().map(|remote| (remote.addr, remote.port));
        for (call, message) in requests {
            let answer = match (self.plan.protocol, from) {
                (Protocol::Files, Some((IpAddress::Ipv4(ip), port))) => {
                    self.files.serve((ip, port), &message)
                }
                _ => Some(Vec::new()),
            };
            self.work(now, Client::Connection(handle), call, answer);
        }
        more
    }

    /// Queues a request. A request without an answer ends here.
    fn work(&mut self, now: Time, client: Client, call: Call, answer: Option<Vec<u8>>) {
        let Some(answer) = answer else { return };
        self.free_at = self.free_at.max(now) + self.plan.service + call.work;
        self.jobs.push_back(Job { ready: self.free_at, client, bytes: call.response, answer });
    }

    /// Passes the ready answers to the stack.
    fn answer(&mut self, now: Time, stack: &mut Stack) -> bool {
        let mut more = false;
        while self.jobs.front().is_some_and(|job| job.ready <= now) {
            let Some(Job { client, bytes, mut answer, .. }) = self.jobs.pop_front() else { break };
            self.stats.completed += 1;
            match client {
                Client::Connection(handle) => {
                    if let Some(stream) = self.streams.get_mut(&handle) {
                        stream.owed += u64::from(bytes);
                        if !answer.is_empty() {
                            answer.resize(bytes as usize, 0);
                            stream.answers.extend(answer);
                        }
                    }
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
        for (&handle, stream) in self.streams.iter_mut().filter(|(_, stream)| stream.owed > 0) {
            let socket = stack.sockets.get_mut::<tcp::Socket>(handle);
            while stream.owed > 0 && socket.can_send() {
                let owed = usize::try_from(stream.owed).unwrap_or(usize::MAX);
                let answers = &mut stream.answers;
                let wrote = socket.send(|room| {
                    let count = room.len().min(owed);
                    let said = answers.len().min(count);
                    room[..said].iter_mut().zip(answers.drain(..said)).for_each(|(a, b)| *a = b);
                    (count, count)
                });
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
    /// Takes bytes of one request from the input. Returns their number, and the request if it is
    /// complete.
    fn take(&mut self, bytes: &[u8], protocol: Protocol) -> (usize, (usize, Option<Request>)) {
        let wanted = match protocol {
            Protocol::Fixed { request, .. } => request,
            Protocol::Files => match parse_header(&self.message) {
                Some((_, call)) => call.request,
                None => HEADER_BYTES as u32,
            },
        };
        let count = bytes.len().min(wanted.saturating_sub(self.got) as usize);
        self.got += count as u32;
        if protocol == Protocol::Files {
            self.message.extend_from_slice(&bytes[..count]);
        }
        (count, (count, self.complete(protocol)))
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
        self.listener.poll(stack);
        let open = std::mem::take(&mut self.listener.open);
        let before = self.streams.len();
        self.streams.retain(|handle, _| open.contains(handle));
        if self.streams.len() < before {
            // Drop the answers of closed connections, as handles are reused.
            self.jobs.retain(|job| match &job.client {
                Client::Connection(handle) => open.contains(handle),
                Client::Datagram(_) => true,
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
        self.jobs.front().map(|job| job.ready)
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
        self.answer(now, stack)
    }

    fn udp_port(&self) -> Option<u16> {
        Some(self.plan.port)
    }
}
