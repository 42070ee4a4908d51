//! A host's ping: ICMP echo requests at an interval, with replies counted (RFC 792, RFC 4443).

use crate::apps::Histogram;
use crate::stack::Stack;
use axon_wire::{Span, Time};
use smoltcp::iface::{SocketHandle, SocketSet};
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::socket::icmp;
use smoltcp::wire::{Icmpv4Packet, Icmpv4Repr, Icmpv6Packet, Icmpv6Repr, IpAddress};
use std::collections::VecDeque;
use std::net::IpAddr;

/// Default length of an echo request's data in bytes, as in ping(8).
const DATA_BYTES: u16 = 56;
/// Length of an echo request's header, in bytes.
const HEADER_BYTES: usize = 8;
/// Maximum number of requests in the stack that wait for a neighbour's address.
const WAITING_MAX: usize = 4;

/// Retry intervals after which a silent neighbour's address is removed.
const PATIENCE: u64 = 8;

/// Target, rate and duration of a ping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PingPlan {
    /// Target address.
    pub target: IpAddr,
    /// Earliest time of the first request.
    pub start: Time,
    /// Interval between requests.
    pub interval: Span,
    /// Maximum number of requests, up to 65,535.
    pub count: u16,
    /// Number of replies after which to stop; zero for no limit.
    pub enough: u16,
    /// Time to wait for replies after the last request.
    pub linger: Span,
    /// Data length of a request in bytes. With 28 bytes of headers (48 over IPv6) it must fit the
    /// MTU.
    pub data_bytes: u16,
}

impl PingPlan {
    /// Returns a ping that stops at the first reply: up to `count` requests, one per `interval`.
    pub fn until_reply(target: impl Into<IpAddr>, interval: Span, count: u16) -> PingPlan {
        PingPlan {
            target: target.into(),
            start: Time::ZERO,
            interval,
            count,
            enough: 1,
            linger: interval,
            data_bytes: DATA_BYTES,
        }
    }

    /// Returns a ping that sends `count` requests, one per `interval`, and counts the replies.
    pub fn steady(target: impl Into<IpAddr>, interval: Span, count: u16) -> PingPlan {
        PingPlan {
            target: target.into(),
            start: Time::ZERO,
            interval,
            count,
            enough: 0,
            linger: Span::from_secs(1),
            data_bytes: DATA_BYTES,
        }
    }
}

/// Statistics of a ping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PingStats {
    /// Number of requests sent.
    pub sent: u32,
    /// Number of requests answered.
    pub received: u32,
    /// Minimum time from request to reply.
    pub rtt_min: Option<Span>,
    /// Maximum time from request to reply.
    pub rtt_max: Option<Span>,
    /// Maximum time between two answered requests with no answered request between them.
    pub gap_max: Span,
    /// True if the ping has ended.
    pub done: bool,
}

/// Running ping.
#[derive(Debug)]
struct Ping {
    plan: PingPlan,
    stats: PingStats,
    /// Times from request to reply.
    times: Histogram,
    socket: Option<SocketHandle>,
    ident: u16,
    next: Option<Time>,
    end: Option<Time>,
    waiting: VecDeque<(u16, Time)>,
    answered_last: Option<Time>,
    /// Time since the last reply, or since the target's address was last marked stale.
    silent_since: Time,
}

/// Pings of a host, running or ended.
#[derive(Debug)]
pub(crate) struct Pings {
    all: Vec<Ping>,
    /// Time after which a silent neighbour's address is removed.
    patience: Span,
}

impl Pings {
    /// Returns no pings of a host that repeats requests at an interval of `retry`.
    pub(crate) fn new(retry: Span) -> Pings {
        Pings { all: Vec::new(), patience: retry * PATIENCE }
    }

    /// Starts a ping. Returns its number.
    pub(crate) fn start(
        &mut self,
        plan: PingPlan,
        now: Time,
        sockets: &mut SocketSet<'static>,
    ) -> usize {
        let number = self.all.len();
        self.all.push(Ping::new(plan, number as u16 + 1, now, sockets));
        number
    }

    /// Returns the statistics of a ping so far, and the times from request to reply.
    pub(crate) fn get(&self, number: usize) -> Option<(&PingStats, &Histogram)> {
        self.all.get(number).map(|ping| (&ping.stats, &ping.times))
    }

    /// Marks the addresses of silent targets as stale. Returns whether one was known.
    pub(crate) fn mark_silent(&mut self, now: Time, stack: &mut Stack) -> bool {
        let mut stale = false;
        for ping in &mut self.all {
            let next = stack.ip.next_hop(ping.plan.target);
            stale |= ping.fell_silent(now, self.patience) && stack.neighbours.mark_stale(next);
        }
        stale
    }

    /// Receives replies and sends what is due. Returns whether the stack has work.
    pub(crate) fn poll(
        &mut self,
        now: Time,
        stack: &mut Stack,
        sockets: &mut SocketSet<'static>,
    ) -> bool {
        let mut more = false;
        for ping in &mut self.all {
            if ping.poll(now, sockets) {
                more = true;
                let next = stack.ip.next_hop(ping.plan.target);
                stack.neighbours.wanted(next, !ping.stats.done);
            }
        }
        more
    }

    /// Returns when the first ping is due.
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.all.iter().filter_map(Ping::deadline).min()
    }
}

impl Ping {
    /// Opens the socket for the replies.
    fn new(plan: PingPlan, ident: u16, now: Time, sockets: &mut SocketSet<'static>) -> Ping {
        let buffer = || {
            let places = vec![icmp::PacketMetadata::EMPTY; WAITING_MAX];
            let bytes = usize::from(plan.data_bytes) + HEADER_BYTES;
            icmp::PacketBuffer::new(places, vec![0; WAITING_MAX * bytes])
        };
        let mut socket = icmp::Socket::new(buffer(), buffer());
        socket.bind(icmp::Endpoint::Ident(ident)).expect("a new socket, a given identifier");
        Ping {
            plan,
            stats: PingStats::default(),
            times: Histogram::default(),
            socket: Some(sockets.add(socket)),
            ident,
            next: Some(plan.start.max(now)),
            end: None,
            waiting: VecDeque::new(),
            answered_last: None,
            silent_since: plan.start.max(now),
        }
    }

    /// Receives replies and sends what is due. Returns whether it has sent or ended.
    fn poll(&mut self, now: Time, sockets: &mut SocketSet<'static>) -> bool {
        let Some(handle) = self.socket else {
            return false;
        };
        let socket = sockets.get_mut::<icmp::Socket>(handle);
        while let Ok((bytes, from)) = socket.recv() {
            let sequence = reply(bytes, self.plan.target);
            if let Some(sequence) = sequence.filter(|_| from == IpAddress::from(self.plan.target)) {
                self.answered(sequence, now);
            }
        }
        let plan = &self.plan;
        let is_enough = plan.enough > 0 && self.stats.received >= u32::from(plan.enough);
        let has_all = self.stats.sent >= u32::from(plan.count) && self.waiting.is_empty();
        let satisfied = is_enough || has_all;
        if satisfied || self.end.is_some_and(|end| end <= now) {
            sockets.remove(handle);
            (self.socket, self.next, self.end) = (None, None, None);
            self.stats.done = true;
            return true;
        }
        if self.next.is_none_or(|next| next > now) {
            return false;
        }
        self.send(now, socket);
        true
    }

    fn send(&mut self, now: Time, socket: &mut icmp::Socket<'static>) {
        let sequence = self.stats.sent as u16;
        let data = vec![0x61; usize::from(self.plan.data_bytes)];
        let bytes = HEADER_BYTES + data.len();
        // If the buffer is full of requests for an unresolved neighbour, this one is lost, as in a
        // kernel.
        if let Ok(bytes) = socket.send(bytes, self.plan.target.into()) {
            request(bytes, self.plan.target, (self.ident, sequence), &data);
        }
        self.stats.sent += 1;
        self.waiting.push_back((sequence, now));
        if self.stats.sent < u32::from(self.plan.count) {
            self.next = Some(now + self.plan.interval);
        } else {
            self.next = None;
            self.end = Some(now + self.plan.linger);
        }
    }

    fn answered(&mut self, sequence: u16, now: Time) {
        let Some(at) = self.waiting.iter().position(|&(waiting, _)| waiting == sequence) else {
            return;
        };
        let Some((_, asked)) = self.waiting.remove(at) else {
            return;
        };
        self.silent_since = now;
        let rtt = now.since(asked);
        self.times.add(rtt);
        let stats = &mut self.stats;
        stats.received += 1;
        stats.rtt_min = Some(stats.rtt_min.map_or(rtt, |least| least.min(rtt)));
        stats.rtt_max = Some(stats.rtt_max.map_or(rtt, |most| most.max(rtt)));
        if let Some(last) = self.answered_last {
            stats.gap_max = stats.gap_max.max(asked.since(last));
        }
        self.answered_last = Some(self.answered_last.map_or(asked, |last| last.max(asked)));
    }

    /// Returns whether the target has been silent for `patience`; true once each time.
    fn fell_silent(&mut self, now: Time, patience: Span) -> bool {
        let silent = !self.stats.done && now.since(self.silent_since) >= patience;
        if silent {
            self.silent_since = now;
        }
        silent
    }

    /// Returns when the ping is next due.
    fn deadline(&self) -> Option<Time> {
        match (self.next, self.end) {
            (Some(next), Some(end)) => Some(next.min(end)),
            (next, end) => next.or(end),
        }
    }
}

/// Writes an echo request. Over IPv6 the stack fills in the checksum, which also covers the source
/// address.
fn request(bytes: &mut [u8], target: IpAddr, (ident, seq_no): (u16, u16), data: &[u8]) {
    let checksums = ChecksumCapabilities::default();
    match target {
        IpAddr::V4(_) => {
            let echo = Icmpv4Repr::EchoRequest { ident, seq_no, data };
            echo.emit(&mut Icmpv4Packet::new_unchecked(bytes), &checksums);
        }
        IpAddr::V6(target) => {
            let echo = Icmpv6Repr::EchoRequest { ident, seq_no, data };
            let mut packet = Icmpv6Packet::new_unchecked(bytes);
            echo.emit(&target, &target, &mut packet, &checksums);
        }
    }
}

/// Returns the number of the request that a message answers. The stack has verified the message.
fn reply(bytes: &[u8], from: IpAddr) -> Option<u16> {
    match from {
        IpAddr::V4(_) => {
            let packet = Icmpv4Packet::new_checked(bytes).ok()?;
            match Icmpv4Repr::parse(&packet, &ChecksumCapabilities::default()).ok()? {
                Icmpv4Repr::EchoReply { seq_no, .. } => Some(seq_no),
                _ => None,
            }
        }
        IpAddr::V6(from) => {
            let packet = Icmpv6Packet::new_checked(bytes).ok()?;
            match Icmpv6Repr::parse(&from, &from, &packet, &ChecksumCapabilities::ignored()).ok()? {
                Icmpv6Repr::EchoReply { seq_no, .. } => Some(seq_no),
                _ => None,
            }
        }
    }
}
