//! Streams of datagrams, and the sources that send them.

use super::beginning::Beginning;
use super::{App, FlowStats};
use crate::datagram::{self, Addresses};
use crate::stack::Stack;
use axon_wire::link::FRAME_BYTES_MIN;
use axon_wire::{Filling, LIGHT_BYTES, MacAddr, Span, Time};
use std::net::Ipv4Addr;

/// Payload byte after the stamp.
const FILL: u8 = 0x61;

/// Datagrams to one target, copied from a frame that is written once. The bytes after the stamp are
/// the same in all datagrams and are not stored: the frames are light.
#[derive(Debug)]
pub(crate) struct Stream {
    target: Ipv4Addr,
    ports: (u16, u16),
    /// Maximum datagram payload, in bytes.
    payload: usize,
    model: Option<Model>,
    number: u64,
}

/// Template frame of a stream, complete except for the stamp.
#[derive(Debug)]
struct Model {
    /// Host address and target MAC in the template.
    from: Ipv4Addr,
    to: MacAddr,
    /// Stored bytes, padding included, and the filling after them.
    stored: Vec<u8>,
    filling: Filling,
    /// Frame length without padding, in bytes.
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
        let most = usize::from(stack.ip.mtu()).saturating_sub(datagram::IP_HEADER_BYTES);
        let ports = (stack.ip.ephemeral_port(), port);
        Stream { target, ports, payload: payload.min(most), model: None, number: 0 }
    }

    /// Sends one datagram of `payload` bytes, limited to the MTU. Returns whether it was sent.
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
                source: (stack.ip.mac(), from, self.ports.0),
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

    /// Returns whether the NIC holds the permitted number of frames of this stream. The source is
    /// polled again when that changes.
    fn is_blocked(&self, stack: &mut Stack) -> bool {
        stack.nic.blocks(self.ports.0)
    }
}

/// Times and sizes of a stream's datagrams.
pub(crate) trait Pattern: Send {
    /// Returns the payload bytes of the next datagram, at most `payload_max`, and the time until
    /// the one after it, or `None` if it is the last.
    fn next(&mut self, payload_max: usize, stats: &mut FlowStats) -> (usize, Option<Span>);
}

/// Running source. The first datagram waits for the target's address; a later one that finds the
/// NIC full is dropped. A NIC with priorities is never full, but blocks the source; its intervals
/// resume when it may send again.
pub(crate) struct Source<P> {
    pattern: P,
    stream: Stream,
    next: Option<Time>,
    beginning: Beginning,
    blocked: bool,
    stats: FlowStats,
}

impl<P> Source<P> {
    /// Returns a source that first sends at `first`, or never if `None`.
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
