//! Constant-rate datagrams, counted on arrival.

use super::stream::{Pattern, Source, Stream};
use super::{App, FlowStats, Received};
use crate::datagram::{self, Datagram};
use crate::stack::Stack;
use axon_wire::{Bytes, Span, Time};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Datagram stream to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpPlan {
    /// IPv4 address of the target.
    pub target: Ipv4Addr,
    /// UDP port of the target.
    pub port: u16,
    /// Datagram payload in bytes, limited to the MTU. With 16 or more, each datagram carries its
    /// number and transmission time.
    pub payload: usize,
    /// Interval between datagrams.
    pub interval: Span,
    /// Total number of datagrams.
    pub count: u64,
}

/// Datagrams of one size; number `n` is sent `n` intervals after the first.
pub(crate) struct Steady {
    interval: Span,
    left: u64,
}

impl Source<Steady> {
    pub(crate) fn steady(plan: UdpPlan, now: Time, stack: &mut Stack) -> Source<Steady> {
        let stream = Stream::new(plan.target, plan.port, plan.payload, stack);
        stack.way_to(plan.target);
        let first = (plan.count > 0).then_some(now);
        Source::new(Steady { interval: plan.interval, left: plan.count }, stream, first)
    }
}

impl Pattern for Steady {
    fn next(&mut self, payload_max: usize, _stats: &mut FlowStats) -> (usize, Option<Span>) {
        self.left -= 1;
        (payload_max, (self.left > 0).then_some(self.interval))
    }
}

/// Counts the datagrams received on one UDP port, by sender and in total.
#[derive(Debug)]
pub(crate) struct UdpSink {
    port: u16,
    stats: FlowStats,
    /// Boxed, as a node of the map has room for eleven.
    senders: BTreeMap<(Ipv4Addr, u16), Box<Received>>,
}

impl UdpSink {
    pub(crate) fn new(port: u16) -> UdpSink {
        UdpSink { port, stats: FlowStats::default(), senders: BTreeMap::new() }
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
        let bytes = datagram.bytes;
        let sender = self.senders.entry(datagram.from).or_default();
        sender.count(now, bytes);
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

    fn only_counts(&self) -> bool {
        true
    }

    fn received_from(&self, from: (Ipv4Addr, u16)) -> Option<&Received> {
        self.senders.get(&from).map(|received| &**received)
    }
}
