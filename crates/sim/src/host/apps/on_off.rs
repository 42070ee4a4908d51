//! Bursts of datagrams with pauses between them.
//!
//! The size of a burst and the pause after it are drawn from distributions; within a burst
//! datagrams leave at an interval, the last one shorter where the size asks for that. The
//! random numbers are the source's own: nothing else that happens changes them.

use super::beginning::Beginning;
use super::udp::Stream;
use super::{App, FlowStats};
use crate::host::stack::Stack;
use axon_fabric::traffic::Sizes;
use axon_wire::{Span, Time};
use oorandom::Rand64;
use std::net::Ipv4Addr;

/// Bursts to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnOffPlan {
    /// To whom.
    pub target: Ipv4Addr,
    /// To which port there.
    pub port: u16,
    /// Bytes of payload of a datagram, at most what fits the MTU.
    pub payload: usize,
    /// From one datagram of a burst to the next.
    pub interval: Span,
    /// Bytes of payload of a burst.
    pub on: Sizes,
    /// Ticks of 10 ps from the end of a burst (an interval after its last datagram) to the
    /// next.
    pub off: Sizes,
    /// Seed of its random numbers.
    pub seed: u64,
}

/// A source at work.
pub(crate) struct OnOffSource {
    plan: OnOffPlan,
    stream: Stream,
    random: Rand64,
    /// Bytes of the current burst that are still to be sent.
    left: u64,
    next: Option<Time>,
    beginning: Beginning,
    /// The NIC takes no more of its datagrams for now.
    blocked: bool,
    stats: FlowStats,
}

impl OnOffSource {
    pub(crate) fn new(plan: OnOffPlan, now: Time, stack: &mut Stack) -> OnOffSource {
        let stream = Stream::new(plan.target, plan.port, plan.payload, stack);
        let mut random = Rand64::new(u128::from(plan.seed));
        let left = burst(&plan.on, &mut random);
        OnOffSource {
            plan,
            stream,
            random,
            left,
            next: Some(now),
            beginning: Beginning::default(),
            blocked: false,
            stats: FlowStats::default(),
        }
    }
}

fn burst(on: &Sizes, random: &mut Rand64) -> u64 {
    on.draw((random.rand_u64() >> 32) as u32).max(1)
}

impl App for OnOffSource {
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
            let most = self.stream.payload_max() as u64;
            let bytes = self.left.min(most);
            if self.stream.send(now, bytes as usize, stack) {
                self.stats.count_sent(now, bytes as usize);
            }
            self.left -= bytes;
            let mut pause = self.plan.interval;
            if self.left == 0 {
                self.stats.completed += 1;
                let off = self.plan.off.draw((self.random.rand_u64() >> 32) as u32);
                pause = pause + Span::from_ticks(off);
                self.left = burst(&self.plan.on, &mut self.random);
            }
            // Never nothing, or one instant would go on for ever.
            self.next = Some(next + pause.max(Span::from_ticks(1)));
        }
        false
    }

    fn deadline(&self) -> Option<Time> {
        self.next.filter(|_| !self.beginning.is_waiting() && !self.blocked)
    }

    fn stop(&mut self, now: Time, _stack: &mut Stack) {
        self.next = None;
        self.stats.done.get_or_insert(now);
    }

    fn stats(&self) -> &FlowStats {
        &self.stats
    }

    fn source_port(&self) -> Option<u16> {
        Some(self.stream.ports.0)
    }
}
