//! Congestion points and reaction points in a closed loop: N sources, one bottleneck queue.
//!
//! Each source has its own link and always something to send. A frame is half the loop's delay
//! on the way to the queue, a CNM the other half on the way back. The queue has no end: how
//! long it becomes is measured, nothing is lost.

use axon_plane::qcn::{CongestionPoint, CpConfig, RateLimiter, Rounding, RpConfig};
use axon_plane::random::Random;
use axon_wire::{Bytes, Rate, Span, Time};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

const RATE: Rate = Rate::gbps(10);
const FRAME_BYTES_MAX: u64 = 1_500;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Wake(usize),
    Arrive(usize, u64),
    Cnm(usize, u8),
    Sent,
}

#[derive(Clone, Copy, Debug)]
struct Setup {
    sources: usize,
    cp: CpConfig,
    rp: RpConfig,
    delay: Span,
    /// Frames have this to 1500 bytes, drawn evenly.
    frame_bytes_min: u64,
    seed: u64,
}

impl Setup {
    /// The MIB's defaults but for the set point. Links of sources have the bottleneck's rate,
    /// but a source alone a faster one, or it would never fill the queue.
    fn new(kilobytes: u64, sources: usize, delay_micros: u64) -> Setup {
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

struct Source {
    limiter: RateLimiter,
    link: Rate,
    link_free: Time,
    running: bool,
    delivered: u64,
    /// When it looks next; wakes at other times are out of date.
    wake: Time,
}

struct World {
    now: Time,
    events: BinaryHeap<Reverse<(Time, u64, Event)>>,
    sequence: u64,
    delay: Span,
    /// Of the bottleneck.
    rate: Rate,
    sources: Vec<Source>,
    point: CongestionPoint,
    /// Source and bytes of each frame.
    queue: VecDeque<(usize, u64)>,
    frame_bytes_min: u64,
    random: Random,
    queued: u64,
    busy: bool,
    /// Since the last look: byte ticks in the queue, bytes sent, the longest queue.
    area: u128,
    area_at: Time,
    begun: Time,
    longest: u64,
    cnms: u64,
}

/// What was seen since the last look.
#[derive(Debug)]
struct Seen {
    queue_mean: u64,
    queue_longest: u64,
    /// Of the bottleneck's rate.
    used: f64,
    /// Jain's index of what the running sources brought through.
    jain: f64,
    cnms: u64,
}

impl World {
    fn new(setup: Setup) -> World {
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

    fn run(&mut self, span: Span) {
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

    /// What has happened since the last look.
    fn look(&mut self) -> Seen {
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
    /// What is seen in `run` ms after `warm` ms.
    fn seen_after(&mut self, warm: u64, run: u64) -> Seen {
        self.run(Span::from_millis(warm));
        self.look();
        self.run(Span::from_millis(run));
        self.look()
    }
}

/// In thousandths of the set point.
fn relative(seen: &Seen, setup: &Setup) -> u64 {
    seen.queue_mean * 1_000 / setup.cp.set_point.0
}

#[test]
fn the_queue_is_held_within_a_tenth_of_its_set_point_with_the_defaults() {
    for kilobytes in [25, 50, 100, 200] {
        for sources in [1, 2, 8, 32] {
            for (delay, frame_bytes_min) in [(5, FRAME_BYTES_MAX), (50, 64)] {
                let setup = Setup { frame_bytes_min, ..Setup::new(kilobytes, sources, delay) };
                let seen = World::new(setup).seen_after(500, 250);
                let what = format!("{kilobytes} KB, {sources} sources, {delay} us: {seen:?}");
                assert!((900..=1_100).contains(&relative(&seen, &setup)), "{what}");
                assert!(seen.used > 0.999, "{what}");
                assert!(seen.jain > if sources < 32 { 0.95 } else { 0.85 }, "{what}");
                assert!(seen.cnms > 100, "{what}");
            }
        }
    }
}

/// A queue at rest is not told of before it is too long by one step of the feedback, which is
/// (2w + 1) / 63 of the set point if the rest of the division is dropped.
#[test]
fn what_a_long_queue_is_above_its_set_point_is_mostly_one_step_of_the_feedback() {
    for weight_log2 in 0..=3 {
        let mut setup = Setup::new(200, 4, 20);
        setup.cp.weight_log2 = weight_log2;
        let step = 1_000 * ((2 << weight_log2) + 1) / 63;
        let above = relative(&World::new(setup).seen_after(300, 200), &setup) - 1_000;
        assert!((step * 70 / 100..=step).contains(&above), "w 2^{weight_log2}: {above} of {step}");
    }
    for (rounding, range) in [(Rounding::Nearest, 1_015..=1_035), (Rounding::Up, 980..=1_000)] {
        let mut setup = Setup::new(200, 4, 20);
        setup.cp.readings.rounding = rounding;
        let relative = relative(&World::new(setup).seen_after(300, 200), &setup);
        assert!(range.contains(&relative), "{rounding:?}: {relative}");
    }
}

#[test]
fn when_half_of_the_sources_stop_the_others_have_the_whole_link_after_five_timers() {
    for sources in [2, 8, 32] {
        let setup = Setup::new(50, sources, 20);
        let mut world = World::new(setup);
        world.run(Span::from_millis(500));
        for source in &mut world.sources[..sources / 2] {
            source.running = false;
        }
        let early = world.seen_after(0, 50);
        assert!(early.used < 0.75, "{sources} sources: {early:?}");
        let late = world.seen_after(50, 200);
        assert!(late.used > 0.999, "{sources} sources: {late:?}");
        assert!(late.queue_longest < 100_000, "{sources} sources: {late:?}");
        if sources > 2 {
            assert!((900..=1_100).contains(&relative(&late, &setup)), "{late:?}");
        }
    }
}

/// The step test of paper 004, figure 11, with shorter steps. The reaction point's variables
/// are brought to the link of 1 Gb/s: as they are, a fifth of it as the bottleneck holds the
/// queue up to 17 % too long.
#[test]
fn one_source_follows_the_steps_of_the_link_and_the_queue_stays_at_its_set_point() {
    for kilobytes in [25, 50, 100, 200] {
        let mut setup = Setup::new(kilobytes, 1, 20);
        setup.rp = RpConfig::scaled_for_port(Rate::gbps(1));
        let mut world = World::new(setup);
        world.rate = Rate::gbps(1);
        world.run(Span::from_secs(1));
        for megabits in [200, 400, 600, 800] {
            world.rate = Rate::mbps(megabits);
            let step = world.seen_after(0, 4_000);
            let seen = world.seen_after(0, 2_000);
            let what = format!("{kilobytes} KB, {megabits} Mb/s: {step:?}, {seen:?}");
            assert!((900..=1_100).contains(&relative(&seen, &setup)), "{what}");
            assert!(seen.used > 0.999, "{what}");
            assert!(step.queue_longest < 5 * setup.cp.set_point.0, "{what}");
        }
        world.rate = Rate::gbps(1);
        assert!(world.seen_after(1_500, 500).used > 0.999);
    }
}

/// A name and what it changes of the defaults.
type Variant = (&'static str, fn(&mut Setup));

const VARIANTS: [Variant; 11] = [
    ("defaults", |_| {}),
    ("rounding to the nearest", |setup| setup.cp.readings.rounding = Rounding::Nearest),
    ("w = 1", |setup| setup.cp.weight_log2 = 0),
    ("w = 4", |setup| setup.cp.weight_log2 = 2),
    ("sample base 75 KB", |setup| setup.cp.sample_base = Bytes(75_000)),
    ("sample base 300 KB", |setup| setup.cp.sample_base = Bytes(300_000)),
    ("gain 1/64", |setup| setup.rp.gd_log2 = 6),
    ("gain 1/256", |setup| setup.rp.gd_log2 = 8),
    ("timer 1.5 ms", |setup| setup.rp.time_reset = Span::from_micros(1_500)),
    ("timer 0.3 ms", |setup| setup.rp.time_reset = Span::from_micros(300)),
    ("increase 50 and 500 Mb/s", |setup| {
        (setup.rp.ai_rate, setup.rp.hai_rate) = (Rate::mbps(50), Rate::mbps(500));
    }),
];

#[test]
#[ignore = "long; it prints the table in the documentation of axon_plane::qcn"]
fn whatever_is_changed_the_link_stays_used() {
    for (name, change) in VARIANTS {
        let mut jain = 0.0;
        print!("{name:25}");
        for kilobytes in [25, 100] {
            for sources in [1, 2, 8, 32] {
                let mut setup = Setup::new(kilobytes, sources, 20);
                change(&mut setup);
                let seen = World::new(setup).seen_after(1_000, 1_000);
                print!(" {:4}", (relative(&seen, &setup) + 5) / 10);
                assert!(
                    seen.used > 0.97,
                    "{name}, {kilobytes} KB, {sources} sources: {}",
                    seen.used
                );
                jain = seen.jain;
            }
        }
        println!(" {jain:.2}");
    }
}
