//! Streams of datagrams, and the sources that send them.

use super::beginning::Beginning;
use super::{App, FlowStats};
use crate::host::datagram::{self, Addresses};
use crate::host::stack::Stack;
use axon_wire::link::FRAME_BYTES_MIN;
use axon_wire::{Filling, LIGHT_BYTES, MacAddr, Span, Time};
use std::net::Ipv4Addr;

/// What fills the payload behind the stamp.
const FILL: u8 = 0x61;

/// Datagrams to one target, made from a frame that is written once. What follows the stamp is the
/// same in all of them and is not stored: the frames are light.
#[derive(Debug)]
pub(crate) struct Stream {
    target: Ipv4Addr,
    ports: (u16, u16),
    /// Bytes of payload of a datagram, at most.
    payload: usize,
    model: Option<Model>,
    number: u64,
}

/// A frame of a stream that lacks only its stamp.
#[derive(Debug)]
struct Model {
    /// This host's address and the MAC of the target in it.
    from: Ipv4Addr,
    to: MacAddr,
    /// What is stored of it, padding included, and what follows that.
    stored: Vec<u8>,
    filling: Filling,
    /// Its length without padding.
    bytes: usize,
}

impl Model {
    fn new(addresses: Addresses, bytes: usize) -> Model {
        let mut stored = vec![0; bytes.max(FRAME_BYTES_MIN)];
        datagram::emit(&mut stored[..bytes], addresses, |payload| payload.fill(FILL));
        let count = stored.len().saturating_sub(LIGHT_BYTES);
        let count = u16::try_from(count).unwrap_or(0);
        stored.truncate(stored.len() - usize::from(count));
        stored.shrink_to_fit();
        let filling = Filling { byte: FILL, count };
        Model { from: addresses.source.1, to: addresses.target.0, stored, filling, bytes }
    }
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
        let fits = |model: &&Model| (model.from, model.to, model.bytes) == (from, mac, bytes);
        if self.model.as_ref().filter(fits).is_none() {
            let addresses = Addresses {
                source: (stack.mac, from, self.ports.0),
                target: (mac, self.target, self.ports.1),
            };
            self.model = Some(Model::new(addresses, bytes));
        }
        let Some(model) = &self.model else {
            return false;
        };
        let number = self.number;
        self.number += 1;
        let stamp = |frame: &mut [u8]| {
            let end = frame.len().min(model.bytes);
            datagram::stamp(&mut frame[..end], number, now.ticks());
        };
        stack.nic.copy(&model.stored, model.filling, stamp);
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
