//! Bursts of datagrams with pauses between them.
//!
//! The size of a burst and the pause after it are drawn from distributions; within a burst
//! datagrams leave at an interval, the last one shorter where the size asks for that. The
//! random numbers are the source's own: nothing else that happens changes them.

use super::FlowStats;
use super::stream::{Pattern, Source, Stream};
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

/// Bursts at work.
pub(crate) struct Bursts {
    interval: Span,
    on: Sizes,
    off: Sizes,
    random: Rand64,
    /// Bytes of the current burst that are still to be sent.
    left: u64,
}

impl Source<Bursts> {
    pub(crate) fn bursts(plan: OnOffPlan, now: Time, stack: &mut Stack) -> Source<Bursts> {
        let stream = Stream::new(plan.target, plan.port, plan.payload, stack);
        let OnOffPlan { interval, on, off, seed, .. } = plan;
        let mut random = Rand64::new(u128::from(seed));
        let left = burst(&on, &mut random);
        Source::new(Bursts { interval, on, off, random, left }, stream, Some(now))
    }
}

fn draw(sizes: &Sizes, random: &mut Rand64) -> u64 {
    sizes.draw((random.rand_u64() >> 32) as u32)
}

/// Bytes of a burst: never none.
fn burst(on: &Sizes, random: &mut Rand64) -> u64 {
    draw(on, random).max(1)
}

impl Pattern for Bursts {
    fn next(&mut self, payload_max: usize, stats: &mut FlowStats) -> (usize, Option<Span>) {
        let payload = self.left.min(payload_max as u64);
        self.left -= payload;
        let mut pause = self.interval;
        if self.left == 0 {
            stats.completed += 1;
            pause = pause + Span::from_ticks(draw(&self.off, &mut self.random));
            self.left = burst(&self.on, &mut self.random);
        }
        // Never nothing, or one instant would go on for ever.
        (payload as usize, Some(pause.max(Span::from_ticks(1))))
    }
}
