//! Streams of datagrams, and the sources that send them.

use super::beginning::Beginning;
use super::{App, FlowStats};
use crate::host::datagram::{self, Addresses};
use crate::host::stack::Stack;
use axon_wire::{MacAddr, Span, Time};
use std::net::Ipv4Addr;

/// What fills the payload behind the stamp.
const FILL: u8 = 0x61;

/// Datagrams to one target, made from a frame that is written once.
#[derive(Debug)]
pub(crate) struct Stream {
    target: Ipv4Addr,
    ports: (u16, u16),
    /// Bytes of payload of a datagram, at most.
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

    /// Sends one datagram of `payload` bytes, at most what fits the MTU; says whether it could.
    fn send(&mut self, now: Time, payload: usize, stack: &mut Stack) -> bool {
        let Some((from, mac)) = stack.way_to(self.target) else {
            return false;
        };
        if !stack.nic.has_room() {
            return false;
        }
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
    fn is_blocked(&self, stack: &mut Stack) -> bool {
        stack.nic.blocks(self.ports.0)
    }
}

/// When datagrams of a stream leave, and how large they are.
pub(crate) trait Pattern: Send {
    /// The bytes of payload of the next datagram, at most `payload_max`, and the time from it to
    /// the one after it; `None` if it is the last.
    fn next(&mut self, payload_max: usize, stats: &mut FlowStats) -> (usize, Option<Span>);
}

/// A source at work. The first datagram waits for the target's address; a later one that finds
/// the NIC full is not sent. A NIC with priorities is never full, but blocks the source until it
/// may go on; times count from there.
pub(crate) struct Source<P> {
    pattern: P,
    stream: Stream,
    next: Option<Time>,
    beginning: Beginning,
    blocked: bool,
    stats: FlowStats,
}

impl<P> Source<P> {
    /// A source that sends for the first time at `first`; never, without.
    pub(crate) fn new(pattern: P, stream: Stream, first: Option<Time>) -> Source<P> {
        let (beginning, stats) = (Beginning::default(), FlowStats::default());
        Source { pattern, stream, next: first, beginning, blocked: false, stats }
    }
}

impl<P: Pattern> App for Source<P> {
    fn poll(&mut self, now: Time, stack: &mut Stack) -> bool {
        while let Some(mut due) = self.next.filter(|&due| due <= now) {
            if !self.beginning.has_begun() && stack.way_to(self.stream.target).is_none() {
                return self.beginning.wait();
            }
            if self.beginning.begin() || self.blocked {
                due = now;
            }
            self.blocked = self.stream.is_blocked(stack);
            if self.blocked {
                return false;
            }
            let (payload, pause) = self.pattern.next(self.stream.payload, &mut self.stats);
            if self.stream.send(now, payload, stack) {
                self.stats.count_sent(now, payload);
            }
            self.next = pause.map(|pause| due + pause);
            if self.next.is_none() {
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
