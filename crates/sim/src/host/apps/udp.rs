//! The simplest traffic: datagrams at an interval, counted where they arrive.

use super::beginning::Beginning;
use super::{App, FlowStats, Received};
use crate::host::datagram::{self, Addresses, Datagram};
use crate::host::stack::Stack;
use axon_wire::{Bytes, MacAddr, Span, Time};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// What fills the payload behind the stamp.
const FILL: u8 = 0x61;

/// A stream of datagrams to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpPlan {
    /// IPv4 address of the receiver.
    pub target: Ipv4Addr,
    /// UDP port of the receiver.
    pub port: u16,
    /// Bytes of UDP payload in each: what fits the MTU, less is sent otherwise. With 16 or
    /// more each carries its number and the time it was sent.
    pub payload: usize,
    /// Time from one datagram to the next.
    pub interval: Span,
    /// Datagrams to send in all.
    pub count: u64,
}

/// Datagrams to one target, made from a frame that is written once.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) target: Ipv4Addr,
    pub(crate) ports: (u16, u16),
    payload: usize,
    /// The frame, for this host's address and this MAC of the target.
    model: Option<(Ipv4Addr, MacAddr, Vec<u8>)>,
    number: u64,
}

impl Stream {
    pub(crate) fn new(target: Ipv4Addr, port: u16, payload: usize, stack: &mut Stack) -> Stream {
        let most = usize::from(stack.mtu).saturating_sub(datagram::IP_HEADER_BYTES);
        let ports = (stack.ephemeral_port(), port);
        Stream { target, ports, payload: payload.min(most), model: None, number: 0 }
    }

    /// Sends one datagram of `payload` bytes, at most those of the plan; says whether it
    /// could.
    pub(crate) fn send(&mut self, now: Time, payload: usize, stack: &mut Stack) -> bool {
        let Some((from, mac)) = stack.way_to(self.target) else {
            return false;
        };
        if !stack.nic.has_room() {
            return false;
        }
        let payload = payload.min(self.payload);
        let bytes = datagram::HEADER_BYTES + payload;
        let fits = |model: &&(Ipv4Addr, MacAddr, Vec<u8>)| {
            (model.0, model.1) == (from, mac) && model.2.len() == bytes
        };
        if self.model.as_ref().filter(fits).is_none() {
            let addresses = Addresses {
                source: (stack.mac, from, self.ports.0),
                target: (mac, self.target, self.ports.1),
            };
            let mut frame = vec![0; bytes];
            datagram::emit(&mut frame, addresses, |payload| payload.fill(FILL));
            self.model = Some((from, mac, frame));
        }
        let Some((_, _, model)) = &self.model else {
            return false;
        };
        let number = self.number;
        self.number += 1;
        stack.nic.copy(model, |frame| datagram::stamp(frame, number, now.ticks()));
        true
    }

    /// Whether the NIC holds as much of this stream as it may. The source is polled again
    /// when that has changed.
    pub(crate) fn is_blocked(&self, stack: &mut Stack) -> bool {
        stack.nic.blocks(self.ports.0)
    }

    /// The most payload of one datagram.
    pub(crate) fn payload_max(&self) -> usize {
        self.payload
    }
}

/// A source at work: datagram `n` leaves `n` intervals after the first. The first waits for
/// the target's address; a later one that finds the NIC full is not sent. A NIC with
/// priorities is never full, but blocks the source until it may go on; intervals count from
/// there.
#[derive(Debug)]
pub(crate) struct UdpSource {
    plan: UdpPlan,
    stream: Stream,
    next: Option<Time>,
    left: u64,
    beginning: Beginning,
    blocked: bool,
    stats: FlowStats,
}

impl UdpSource {
    pub(crate) fn new(plan: UdpPlan, now: Time, stack: &mut Stack) -> UdpSource {
        let stream = Stream::new(plan.target, plan.port, plan.payload, stack);
        stack.way_to(plan.target);
        let next = (plan.count > 0).then_some(now);
        let (left, stats) = (plan.count, FlowStats::default());
        let (beginning, blocked) = (Beginning::default(), false);
        UdpSource { plan, stream, next, left, beginning, blocked, stats }
    }
}

impl App for UdpSource {
    fn poll(&mut self, now: Time, stack: &mut Stack) -> bool {
        while let Some(mut next) = self.next.filter(|&next| next <= now) {
            if !self.beginning.has_begun() && stack.way_to(self.plan.target).is_none() {
                return self.beginning.wait();
            }
            if self.beginning.begin() || self.blocked {
                next = now;
            }
            self.blocked = self.stream.is_blocked(stack);
            if self.blocked {
                return false;
            }
            if self.stream.send(now, self.plan.payload, stack) {
                self.stats.count_sent(now, self.stream.payload);
            }
            self.left -= 1;
            self.next = (self.left > 0).then_some(next + self.plan.interval);
            if self.left == 0 {
                self.stats.done = Some(now);
            }
        }
        false
    }

    fn deadline(&self) -> Option<Time> {
        self.next.filter(|_| !self.beginning.is_waiting() && !self.blocked)
    }

    fn stop(&mut self, now: Time, _stack: &mut Stack) {
        if self.next.take().is_some() {
            self.stats.done = Some(now);
        }
    }

    fn stats(&self) -> &FlowStats {
        &self.stats
    }

    fn source_port(&self) -> Option<u16> {
        Some(self.stream.ports.0)
    }
}

/// Counts what arrives on one UDP port, by sender and in all.
#[derive(Debug)]
pub(crate) struct UdpSink {
    port: u16,
    interval: Option<Span>,
    stats: FlowStats,
    senders: BTreeMap<(Ipv4Addr, u16), Received>,
}

impl UdpSink {
    pub(crate) fn new(port: u16, interval: Option<Span>) -> UdpSink {
        UdpSink { port, interval, stats: FlowStats::default(), senders: BTreeMap::new() }
    }
}

impl App for UdpSink {
    fn poll(&mut self, _now: Time, _stack: &mut Stack) -> bool {
        false
    }

    fn deadline(&self) -> Option<Time> {
        None
    }

    fn stop(&mut self, now: Time, _stack: &mut Stack) {
        self.stats.done = Some(now);
    }

    fn stats(&self) -> &FlowStats {
        &self.stats
    }

    fn receive(&mut self, now: Time, datagram: &Datagram<'_>, _stack: &mut Stack) -> bool {
        if self.stats.done.is_some() {
            return false;
        }
        let bytes = datagram.payload.len();
        let sender = self.senders.entry(datagram.from).or_default();
        sender.count(now, bytes, self.interval);
        let all = &mut self.stats.received;
        all.packets += 1;
        all.bytes += Bytes(bytes as u64);
        all.first.get_or_insert(now);
        all.last = Some(now);
        if let Some((number, ticks)) = datagram::read_stamp(datagram.payload) {
            sender.latency.add(now.since(Time::from_ticks(ticks)));
            if number < sender.next {
                sender.reordered += 1;
                all.reordered += 1;
            }
            sender.next = sender.next.max(number.saturating_add(1));
        }
        false
    }

    fn udp_port(&self) -> Option<u16> {
        Some(self.port)
    }

    fn received_from(&self, from: (Ipv4Addr, u16)) -> Option<&Received> {
        self.senders.get(&from)
    }
}
