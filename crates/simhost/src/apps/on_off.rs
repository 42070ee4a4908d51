//! Bursts of datagrams with pauses between them.
//!
//! Within a burst, datagrams leave at a fixed interval; the last is shorter if the burst size
//! requires it.

use super::FlowStats;
use super::stream::{Pattern, Source, Stream};
use crate::stack::Stack;
use axon_wire::{Span, Time};
use std::net::Ipv4Addr;

/// Burst of datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// Payload in bytes; 0 counts as 1.
    pub bytes: u64,
    /// Pause from the end of the burst (one interval after its last datagram) to the next.
    pub pause: Span,
}

/// Bursts to send.
pub struct OnOffPlan {
    /// Target address.
    pub target: Ipv4Addr,
    /// Target port.
    pub port: u16,
    /// Datagram payload in bytes, limited to the MTU.
    pub payload: usize,
    /// Interval between datagrams of a burst.
    pub interval: Span,
    /// Bursts, in order.
    pub bursts: Box<dyn Iterator<Item = Burst> + Send>,
}

/// Running burst source.
pub(crate) struct Bursts {
    interval: Span,
    bursts: Box<dyn Iterator<Item = Burst> + Send>,
    /// Bytes of the current burst still to be sent, and the pause after it.
    left: Burst,
}

impl Source<Bursts> {
    pub(crate) fn bursts(plan: OnOffPlan, now: Time, stack: &mut Stack) -> Source<Bursts> {
        let OnOffPlan { target, port, payload, interval, mut bursts } = plan;
        let stream = Stream::new(target, port, payload, stack);
        let first = bursts.next();
        let left = first.unwrap_or(Burst { bytes: 0, pause: Span::ZERO });
        Source::new(Bursts { interval, bursts, left }, stream, first.map(|_| now))
    }
}

impl Pattern for Bursts {
    fn next(&mut self, payload_max: usize, stats: &mut FlowStats) -> (usize, Option<Span>) {
        let payload = self.left.bytes.max(1).min(payload_max as u64);
        self.left.bytes = self.left.bytes.saturating_sub(payload);
        let mut pause = self.interval;
        if self.left.bytes == 0 {
            stats.completed += 1;
            pause = pause + self.left.pause;
            let Some(next) = self.bursts.next() else { return (payload as usize, None) };
            self.left = next;
        }
        // At least one tick, so that time advances.
        (payload as usize, Some(pause.max(Span::from_ticks(1))))
    }
}
