//! Bursts of datagrams with pauses between them.
//!
//! Burst sizes and pauses are drawn from distributions. Within a burst, datagrams leave at a fixed
//! interval; the last is shorter if the burst size requires it. Each source has its own random
//! numbers, which no other activity changes.

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
    /// Target address.
    pub target: Ipv4Addr,
    /// Target port.
    pub port: u16,
    /// Datagram payload in bytes, limited to the MTU.
    pub payload: usize,
    /// Interval between datagrams of a burst.
    pub interval: Span,
    /// Burst payload, in bytes.
    pub on: Sizes,
    /// Pause from the end of a burst (one interval after its last datagram) to the next, in ticks
    /// of 10 ps.
    pub off: Sizes,
    /// Seed of the random numbers.
    pub seed: u64,
}

/// Running burst source.
pub(crate) struct Bursts {
    interval: Span,
    on: Sizes,
    off: Sizes,
    random: Rand64,
    /// Bytes of the current burst still to be sent.
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

/// Returns the size of a burst, at least 1 byte.
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
        // At least one tick, so that time advances.
        (payload as usize, Some(pause.max(Span::from_ticks(1))))
    }
}
