//! Congestion points and reaction points in a closed loop: N sources, one bottleneck queue.
//!
//! Each source has its own link and always something to send. A frame takes half the loop's delay
//! to the queue, a CNM the other half back. The queue is unbounded: its length is measured, and
//! nothing is lost.

#![allow(dead_code, reason = "the survey looks at less than the tests")]

use axon_node::random::Random;
use axon_plane::qcn::{CongestionPoint, CpConfig, RateLimiter, RpConfig};
use axon_wire::{Bytes, Rate, Span, Time};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Rate of the bottleneck.
pub const RATE: Rate = Rate::gbps(10);
/// Maximum frame size, by default.
pub const FRAME_BYTES_MAX: u64 = 1_500;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Wake(usize),
    Arrive(usize, u64),
    Cnm(usize, u8),
    Sent,
}

/// Parameters of a world.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    pub sources: usize,
    pub cp: CpConfig,
    pub rp: RpConfig,
    pub delay: Span,
    /// Minimum frame size; sizes are drawn evenly from it to 1500 bytes.
    pub frame_bytes_min: u64,
    pub seed: u64,
}

impl Setup {
    /// The MIB's defaults, except for the set point. Links of sources have the bottleneck's rate; a
    /// single source has a faster link, or it would never fill the queue.
    pub fn new(kilobytes: u64, sources: usize, delay_micros: u64) -> Setup {
        let link = if sources == 1 { Rate::gbps(40) } else { RATE };
        Setup {
            sources,
            cp: CpConfig { set_point: Bytes(kilobytes * 1_000), ..CpConfig::default() },
            rp: RpConfig::for_port(link),
            delay: Span::from_micros(delay_micros),
            frame_bytes_min: FRAME_BYTES_MAX,
            seed: 1,
        }
    }
}

/// A source behind a rate limiter.
pub struct Source {
    pub limiter: RateLimiter,
    pub link: Rate,
    pub link_free: Time,
    pub running: bool,
    pub delivered: u64,
    /// Time of its next wake-up; wakes at other times are stale.
    pub wake: Time,
}

/// Sources and their bottleneck.
pub struct World {
    pub now: Time,
    events: BinaryHeap<Reverse<(Time, u64, Event)>>,
    pub sequence: u64,
    pub delay: Span,
    /// Rate of the bottleneck.
    pub rate: Rate,
    pub sources: Vec<Source>,
    pub point: CongestionPoint,
    /// Source and size in bytes of each queued frame.
    pub queue: VecDeque<(usize, u64)>,
    pub frame_bytes_min: u64,
    pub random: Random,
    pub queued: u64,
    pub busy: bool,
    /// Since the last measurement: byte ticks in the queue, bytes sent, the longest queue.
    pub area: u128,
    pub area_at: Time,
    pub begun: Time,
    pub longest: u64,
    pub cnms: u64,
}

/// Measurements since the last call.
#[derive(Debug)]
pub struct Seen {
    pub queue_mean: u64,
    pub queue_longest: u64,
    /// Utilisation of the bottleneck's rate.
    pub used: f64,
    /// Jain's index of the running sources' throughput.
    pub jain: f64,
    pub cnms: u64,
}

impl World {
    pub fn new(setup: Setup) -> World {
        let point = CongestionPoint::new(setup.cp, setup.seed).unwrap();
        let sources = (0..setup.sources as u64).map(|index| Source {
            limiter: RateLimiter::new(setup.rp, Bytes(0), setup.seed << 8 | index).unwrap(),
            link: setup.rp.max_rate,
            link_free: Time::ZERO,
            running: true,
            delivered: 0,
            wake: Time::ZERO,
        });
        let mut world = World {
            now: Time::ZERO,
            events: BinaryHeap::new(),
            sequence: 0,
            delay: Span::from_ticks(setup.delay.ticks() / 2),
            rate: RATE,
            sources: sources.collect(),
            point,
            queue: VecDeque::new(),
            frame_bytes_min: setup.frame_bytes_min,
            random: Random::new(setup.seed),
            queued: 0,
            busy: false,
            area: 0,
            area_at: Time::ZERO,
            begun: Time::ZERO,
            longest: 0,
            cnms: 0,
        };
        for index in 0..setup.sources {
            world.push(Time::ZERO, Event::Wake(index));
        }
        world
    }

    fn push(&mut self, time: Time, event: Event) {
        self.sequence += 1;
        self.events.push(Reverse((time, self.sequence, event)));
    }

    pub fn run(&mut self, span: Span) {
        let end = self.now + span;
        while let Some(Reverse((time, _, event))) = self.events.peek().copied() {
            if time > end {
                break;
            }
            self.events.pop();
            self.now = time;
            self.handle(event);
        }
        self.now = end;
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Wake(index) if self.sources[index].wake == self.now => self.wake(index),
            Event::Wake(_) => {}
            Event::Arrive(index, bytes) => self.arrive(index, bytes),
            Event::Cnm(index, qntz_fb) => {
                self.sources[index].limiter.notified(self.now, qntz_fb);
                self.wake(index);
            }
            Event::Sent => self.transmit(),
        }
    }

    fn wake(&mut self, index: usize) {
        let now = self.now;
        let source = &mut self.sources[index];
        if !source.running {
            return;
        }
        let mut arrival = None;
        if source.limiter.ready_at(now).max(source.link_free) <= now {
            let sizes = FRAME_BYTES_MAX + 1 - self.frame_bytes_min;
            let bytes = self.frame_bytes_min + self.random.next_u64() % sizes;
            source.limiter.sent(now, Bytes(bytes));
            source.link_free = now + source.link.time_for(Bytes(bytes));
            arrival = Some((source.link_free + self.delay, bytes));
        }
        let ready = source.limiter.ready_at(now).max(source.link_free);
        source.wake = source.limiter.deadline().map_or(ready, |timer| timer.min(ready));
        let wake = source.wake;
        self.push(wake, Event::Wake(index));
        if let Some((arrival, bytes)) = arrival {
            self.push(arrival, Event::Arrive(index, bytes));
        }
    }

    fn arrive(&mut self, index: usize, bytes: u64) {
        self.measure();
        self.queue.push_back((index, bytes));
        self.queued += bytes;
        self.longest = self.longest.max(self.queued);
        if let Some(feedback) = self.point.enqueued(Bytes(bytes), Bytes(self.queued)) {
            self.cnms += 1;
            self.push(self.now + self.delay, Event::Cnm(index, feedback.qntz_fb));
        }
        if !self.busy {
            self.transmit();
        }
    }

    fn transmit(&mut self) {
        self.measure();
        self.busy = false;
        if let Some((index, bytes)) = self.queue.pop_front() {
            self.queued -= bytes;
            self.sources[index].delivered += bytes;
            self.busy = true;
            self.push(self.now + self.rate.time_for(Bytes(bytes)), Event::Sent);
        }
    }

    fn measure(&mut self) {
        let ticks = u128::from(self.now.since(self.area_at).ticks());
        self.area += ticks * u128::from(self.queued);
        self.area_at = self.now;
    }

    /// Returns the measurements since the last call.
    pub fn look(&mut self) -> Seen {
        self.measure();
        let span = self.now.since(self.begun);
        let ticks = u128::from(span.ticks().max(1));
        let mean = (self.area / ticks) as u64;
        let rates: Vec<f64> = self
            .sources
            .iter()
            .filter(|source| source.running)
            .map(|source| source.delivered as f64)
            .collect();
        let sum: f64 = rates.iter().sum();
        let squares: f64 = rates.iter().map(|rate| rate * rate).sum();
        let all: u64 = self.sources.iter().map(|source| source.delivered).sum();
        let seen = Seen {
            queue_mean: mean,
            queue_longest: self.longest,
            used: all as f64 / self.rate.bytes_in(span).0 as f64,
            jain: sum * sum / (rates.len() as f64 * squares),
            cnms: self.cnms,
        };
        (self.area, self.longest, self.cnms, self.begun) = (0, 0, 0, self.now);
        self.sources.iter_mut().for_each(|source| source.delivered = 0);
        seen
    }
}

impl World {
    /// Measures `run` ms after `warm` ms.
    pub fn seen_after(&mut self, warm: u64, run: u64) -> Seen {
        self.run(Span::from_millis(warm));
        self.look();
        self.run(Span::from_millis(run));
        self.look()
    }
}

/// Queue length in thousandths of the set point.
pub fn relative(seen: &Seen, setup: &Setup) -> u64 {
    seen.queue_mean * 1_000 / setup.cp.set_point.0
}
