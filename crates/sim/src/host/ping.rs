//! A host's ping: ICMP echo requests at an interval, replies counted (RFC 792, RFC 4443).

use crate::host::apps::Histogram;
use axon_wire::{Span, Time};
use smoltcp::iface::{SocketHandle, SocketSet};
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::socket::icmp;
use smoltcp::wire::{Icmpv4Packet, Icmpv4Repr, Icmpv6Packet, Icmpv6Repr, IpAddress};
use std::collections::VecDeque;
use std::net::IpAddr;

/// Bytes of an echo request's data, by default: as many as ping(8) sends.
const DATA_BYTES: u16 = 56;
/// Header of an echo request, in bytes.
const HEADER_BYTES: usize = 8;
/// Requests that may wait inside the stack for a neighbour's address.
const WAITING_MAX: usize = 4;

/// What to ping and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PingPlan {
    /// Whom.
    pub target: IpAddr,
    /// When the first request goes out, if not at once.
    pub start: Time,
    /// Between requests.
    pub interval: Span,
    /// How many requests at most, up to 65,535.
    pub count: u16,
    /// Stop after this many replies; zero for never.
    pub enough: u16,
    /// How long to wait for replies after the last request.
    pub linger: Span,
    /// Bytes of data in a request; with 28 of headers (48 over IPv6) it has to fit the MTU.
    pub data_bytes: u16,
}

impl PingPlan {
    /// Asks until one reply comes: up to `count` requests, one each `interval`.
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

    /// Sends `count` requests, one each `interval`, and counts the replies.
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

/// What came of a ping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PingStats {
    /// Requests sent.
    pub sent: u32,
    /// Requests answered.
    pub received: u32,
    /// The shortest time from request to reply.
    pub rtt_min: Option<Span>,
    /// The longest.
    pub rtt_max: Option<Span>,
    /// The longest time between two requests that were answered with none answered between.
    pub gap_max: Span,
    /// Whether it has ended.
    pub done: bool,
}

/// A ping that runs.
#[derive(Debug)]
pub(crate) struct Ping {
    pub(crate) plan: PingPlan,
    pub(crate) stats: PingStats,
    /// From request to reply.
    pub(crate) times: Histogram,
    socket: Option<SocketHandle>,
    ident: u16,
    next: Option<Time>,
    end: Option<Time>,
    waiting: VecDeque<(u16, Time)>,
    answered_last: Option<Time>,
    /// Since when no reply has come, or the target's address was last marked stale.
    silent_since: Time,
}

impl Ping {
    /// Opens the socket that the replies come to.
    pub(crate) fn new(
        plan: PingPlan,
        ident: u16,
        now: Time,
        sockets: &mut SocketSet<'static>,
    ) -> Ping {
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

    /// Takes replies, sends what is due. Says whether it has sent or ended.
    pub(crate) fn poll(&mut self, now: Time, sockets: &mut SocketSet<'static>) -> bool {
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
        let satisfied = plan.enough > 0 && self.stats.received >= u32::from(plan.enough);
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
        // With its buffer full of requests for a neighbour that does not answer, this one
        // is lost, as it would be in a kernel.
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

    /// Whether the target has been silent for `patience`; true once each time.
    pub(crate) fn fell_silent(&mut self, now: Time, patience: Span) -> bool {
        let silent = !self.stats.done && now.since(self.silent_since) >= patience;
        if silent {
            self.silent_since = now;
        }
        silent
    }

    /// When it has something to do of its own.
    pub(crate) fn deadline(&self) -> Option<Time> {
        match (self.next, self.end) {
            (Some(next), Some(end)) => Some(next.min(end)),
            (next, end) => next.or(end),
        }
    }
}

/// Writes an echo request. The stack fills in the checksum of one over IPv6, which covers its own
/// address too.
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

/// The number of the request that a message answers; the stack has checked it.
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
