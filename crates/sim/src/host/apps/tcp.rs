//! Byte streams over TCP: a sender of so many bytes, and a sink for any number of them.
//!
//! The stack is smoltcp's: slow start, congestion avoidance and fast retransmit (RFC 5681,
//! Reno), and a retransmission timeout of at least one second (RFC 6298 clause 2.4; Linux takes
//! 200 ms). Recovery by selective acknowledgments is the host's (`tcp_recovery.rs`). The stack's
//! other algorithm, CUBIC, computes in floating point, and so is not offered: no float may decide
//! an event here.

use super::{App, FlowStats, Received};
use crate::host::stack::Stack;
use axon_wire::{Bytes, Span, Time};
use smoltcp::iface::SocketHandle;
use smoltcp::socket::tcp;
use smoltcp::time::Duration;
use smoltcp::wire::IpAddress;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// The payload repeats after so many bytes: a prime, so that a shift is seen.
const PERIOD: usize = 251;
/// Bytes of payload at hand, whole periods.
const PATTERN_BYTES: usize = PERIOD * 64;

/// What carries on after a loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Congestion {
    /// Slow start and congestion avoidance (RFC 5681).
    #[default]
    Reno,
    /// Nothing but the receiver's window holds the sender back.
    None,
}

/// How a connection behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpOptions {
    /// Congestion control.
    pub congestion: Congestion,
    /// Bytes of each of the buffers; that of the receiver bounds the window.
    pub buffer_bytes: usize,
    /// Whether small writes wait for an acknowledgement (RFC 896).
    pub nagle: bool,
    /// How long an acknowledgement may wait for a second segment (RFC 1122 clause 4.2.3.2);
    /// at once without.
    pub ack_delay: Option<Span>,
}

impl Default for TcpOptions {
    /// Reno, 128 KiB (10 Gb/s for 105 us, and no more than one ingress of a switch queues, so
    /// that a stream alone loses nothing), no Nagle, acknowledgements wait 1 ms.
    fn default() -> TcpOptions {
        TcpOptions {
            congestion: Congestion::Reno,
            buffer_bytes: 1 << 17,
            nagle: false,
            ack_delay: Some(Span::from_millis(1)),
        }
    }
}

/// A stream to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpPlan {
    /// To whom.
    pub target: Ipv4Addr,
    /// To which port there.
    pub port: u16,
    /// How many bytes; until it is stopped without.
    pub bytes: Option<u64>,
    /// How its connection behaves.
    pub options: TcpOptions,
}

/// A socket of these options.
pub(crate) fn socket(options: &TcpOptions) -> tcp::Socket<'static> {
    let buffer = || tcp::SocketBuffer::new(vec![0; options.buffer_bytes.max(2048)]);
    let mut socket = tcp::Socket::new(buffer(), buffer());
    socket.set_congestion_control(match options.congestion {
        Congestion::Reno => tcp::CongestionControl::Reno,
        Congestion::None => tcp::CongestionControl::None,
    });
    socket.set_nagle_enabled(options.nagle);
    let micros = |span: Span| Duration::from_micros(span.as_nanos() / 1000);
    socket.set_ack_delay(options.ack_delay.map(micros));
    socket
}

/// Opens a connection if the way to the target is known; the socket and its local port.
pub(crate) fn connect(
    target: Ipv4Addr,
    port: u16,
    options: &TcpOptions,
    stack: &mut Stack,
) -> Option<(SocketHandle, u16)> {
    stack.way_to(target)?;
    let local = stack.ephemeral_port();
    let mut socket = socket(options);
    let context = stack.iface.context();
    socket.connect(context, (IpAddress::Ipv4(target), port), local).ok()?;
    Some((stack.sockets.add(socket), local))
}

/// The bytes of a stream, by their place in it.
#[derive(Clone, Debug)]
pub(crate) struct Pattern(Vec<u8>);

impl Pattern {
    pub(crate) fn new() -> Pattern {
        Pattern((0..PATTERN_BYTES).map(|at| (at % PERIOD) as u8).collect())
    }

    /// Writes the bytes from `offset` on into `room`, as many as fit at once.
    fn write(&self, offset: u64, room: &mut [u8]) -> usize {
        let bytes = &self.0[(offset % PERIOD as u64) as usize..];
        let count = room.len().min(bytes.len());
        room[..count].copy_from_slice(&bytes[..count]);
        count
    }

    /// How many of `bytes` are not those from `offset` on.
    fn wrong(&self, offset: u64, bytes: &[u8]) -> u64 {
        let start = (offset % PERIOD as u64) as usize;
        let mut wrong = 0;
        for (index, chunk) in bytes.chunks(PATTERN_BYTES - PERIOD).enumerate() {
            let shift = (start + index * (PATTERN_BYTES - PERIOD)) % PERIOD;
            let want = &self.0[shift..shift + chunk.len()];
            if chunk != want {
                wrong += chunk.iter().zip(want).filter(|(a, b)| a != b).count() as u64;
            }
        }
        wrong
    }
}

/// A sender at work. The time of its one transfer runs from its start to the moment when the
/// last byte is acknowledged; waiting for the target's address is part of it.
pub(crate) struct TcpSender {
    plan: TcpPlan,
    pattern: Pattern,
    started: Time,
    /// It is time, but the target's address was not here.
    waiting: bool,
    socket: Option<SocketHandle>,
    local_port: Option<u16>,
    stopped: bool,
    stats: FlowStats,
}

impl TcpSender {
    pub(crate) fn new(plan: TcpPlan, now: Time, stack: &mut Stack) -> TcpSender {
        stack.way_to(plan.target);
        TcpSender {
            plan,
            pattern: Pattern::new(),
            started: now,
            waiting: false,
            socket: None,
            local_port: None,
            stopped: false,
            stats: FlowStats::default(),
        }
    }

    fn left(&self) -> u64 {
        match self.plan.bytes {
            _ if self.stopped => 0,
            Some(bytes) => bytes - self.stats.sent_bytes.0,
            None => u64::MAX,
        }
    }

    fn open(&mut self, stack: &mut Stack) -> bool {
        let TcpPlan { target, port, options, .. } = self.plan;
        let Some((socket, local)) = connect(target, port, &options, stack) else {
            return false;
        };
        (self.socket, self.local_port) = (Some(socket), Some(local));
        true
    }
}

impl App for TcpSender {
    fn poll(&mut self, now: Time, stack: &mut Stack) -> bool {
        let Some(handle) = self.socket else {
            if self.stats.done.is_some() || now < self.started {
                return false;
            }
            self.waiting = true;
            return self.open(stack);
        };
        let socket = stack.sockets.get_mut::<tcp::Socket>(handle);
        if !socket.is_open() {
            // Closed to its end; or else refused or broken off.
            stack.sockets.remove(handle);
            self.socket = None;
            self.stats.failed += u64::from(self.stats.done.is_none());
            self.stats.done.get_or_insert(now);
            return false;
        }
        if self.stats.done.is_some() {
            return false;
        }
        let mut more = false;
        while socket.can_send() && self.left() > 0 {
            let left = self.left();
            let offset = self.stats.sent_bytes.0;
            let pattern = &self.pattern;
            let sent = socket.send(|room| {
                let count = room.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                let count = pattern.write(offset, &mut room[..count]);
                (count, count)
            });
            let Ok(sent @ 1..) = sent else { break };
            self.stats.count_sent(now, sent);
            more = true;
        }
        if self.left() == 0 && socket.may_send() && socket.send_queue() == 0 {
            socket.close();
            self.stats.times.add(now.since(self.started));
            self.stats.completed += 1;
            self.stats.done = Some(now);
            more = true;
        }
        more
    }

    fn deadline(&self) -> Option<Time> {
        // Later frames bring it on: its retransmissions are the stack's.
        (!self.waiting && self.stats.done.is_none()).then_some(self.started)
    }

    fn stop(&mut self, now: Time, _stack: &mut Stack) {
        self.stopped = true;
        if self.socket.is_none() {
            self.stats.done.get_or_insert(now);
        }
    }

    fn stats(&self) -> &FlowStats {
        &self.stats
    }

    fn source_port(&self) -> Option<u16> {
        self.local_port
    }

    fn count_retransmits(&mut self, local_port: u16, segments: u64) {
        if self.local_port == Some(local_port) {
            self.stats.retransmits += segments;
        }
    }
}

/// Sockets that wait for connections and serve them: always one more than is connected.
pub(crate) struct Listener {
    port: u16,
    options: TcpOptions,
    waiting: Option<SocketHandle>,
    /// Those connected, in order of their beginning.
    pub(crate) open: Vec<SocketHandle>,
}

impl Listener {
    pub(crate) fn new(port: u16, options: TcpOptions, stack: &mut Stack) -> Listener {
        let mut listener = Listener { port, options, waiting: None, open: Vec::new() };
        listener.wait(stack);
        listener
    }

    fn wait(&mut self, stack: &mut Stack) {
        let mut socket = socket(&self.options);
        if socket.listen(self.port).is_ok() {
            self.waiting = Some(stack.sockets.add(socket));
        }
    }

    /// Takes what has connected; forgets what has ended.
    pub(crate) fn poll(&mut self, stack: &mut Stack) {
        let listens =
            |handle| stack.sockets.get::<tcp::Socket>(handle).state() == tcp::State::Listen;
        if let Some(handle) = self.waiting.filter(|&handle| !listens(handle)) {
            self.open.push(handle);
            self.wait(stack);
        }
        self.open.retain(|&handle| {
            let open = stack.sockets.get::<tcp::Socket>(handle).is_open();
            if !open {
                stack.sockets.remove(handle);
            }
            open
        });
    }

    /// Ends every connection and listens no more.
    pub(crate) fn stop(&mut self, stack: &mut Stack) {
        for handle in self.open.iter().copied().chain(self.waiting.take()) {
            stack.sockets.get_mut::<tcp::Socket>(handle).abort();
        }
    }
}

/// Counts what arrives on one TCP port and compares it with what senders send.
pub(crate) struct TcpSink {
    listener: Listener,
    pattern: Pattern,
    interval: Option<Span>,
    stats: FlowStats,
    senders: BTreeMap<(Ipv4Addr, u16), Received>,
}

impl TcpSink {
    pub(crate) fn new(
        port: u16,
        options: TcpOptions,
        interval: Option<Span>,
        stack: &mut Stack,
    ) -> TcpSink {
        TcpSink {
            listener: Listener::new(port, options, stack),
            pattern: Pattern::new(),
            interval,
            stats: FlowStats::default(),
            senders: BTreeMap::new(),
        }
    }
}

impl App for TcpSink {
    fn poll(&mut self, now: Time, stack: &mut Stack) -> bool {
        self.listener.poll(stack);
        let mut more = false;
        for &handle in &self.listener.open {
            let socket = stack.sockets.get_mut::<tcp::Socket>(handle);
            let Some(remote) = socket.remote_endpoint() else {
                continue;
            };
            let IpAddress::Ipv4(ip) = remote.addr else {
                continue;
            };
            while socket.can_recv() {
                let sender = self.senders.entry((ip, remote.port)).or_default();
                let (offset, pattern) = (sender.bytes.0, &self.pattern);
                let read =
                    socket.recv(|bytes| (bytes.len(), (bytes.len(), pattern.wrong(offset, bytes))));
                let Ok((count @ 1.., wrong)) = read else { break };
                sender.count(now, count, self.interval);
                sender.wrong_bytes += wrong;
                let all = &mut self.stats.received;
                all.packets += 1;
                all.bytes += Bytes(count as u64);
                all.first.get_or_insert(now);
                all.last = Some(now);
                all.wrong_bytes += wrong;
                more = true;
            }
            if socket.state() == tcp::State::CloseWait {
                socket.close();
                self.stats.completed += 1;
                more = true;
            }
        }
        more
    }

    fn deadline(&self) -> Option<Time> {
        None
    }

    fn stop(&mut self, now: Time, stack: &mut Stack) {
        self.listener.stop(stack);
        self.stats.done = Some(now);
    }

    fn stats(&self) -> &FlowStats {
        &self.stats
    }

    fn received_from(&self, from: (Ipv4Addr, u16)) -> Option<&Received> {
        self.senders.get(&from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shifted_or_altered_stream_is_seen() {
        let pattern = Pattern::new();
        let mut stream = vec![0; 100_000];
        let mut at = 0;
        while at < stream.len() {
            at += pattern.write(at as u64, &mut stream[at..]);
        }
        for offset in [0, 1, 250, 251, 16_064, 50_000] {
            assert_eq!(pattern.wrong(offset as u64, &stream[offset..]), 0, "{offset}");
            assert!(pattern.wrong(offset as u64 + 1, &stream[offset..]) > 10_000, "{offset}");
        }
        stream[77_777] ^= 1;
        assert_eq!(pattern.wrong(0, &stream), 1);
    }
}
