//! A 10 Gb/s port with a source per traffic class, for the tests of the schedule.

use axon_node::random::Random;
use axon_plane::schedule::{ClassSet, Schedule, ScheduleConfig};
use axon_wire::{Span, Time, TrafficClass};

/// Ticks per byte at 10 Gb/s.
pub const BYTE_TICKS: u64 = 80;
/// Preamble and gap, which are added to sizes; sizes include the FCS.
pub const GAP_BYTES: u32 = 20;

/// Size of a class's next frame, as a function of time.
pub type Sizes = Box<dyn FnMut(u64) -> u32>;

/// Frames that a class offers.
pub struct Source {
    pub sizes: Sizes,
    pub head: u32,
    /// Interval between arrivals of frames; 0 if one is always available.
    pub interval_ticks: u64,
    /// Arrival of its next frame.
    pub due: u64,
}

impl Source {
    pub fn new(mut sizes: impl FnMut(u64) -> u32 + 'static) -> Source {
        let head = sizes(0);
        Source { sizes: Box::new(sizes), head, interval_ticks: 0, due: 0 }
    }

    /// Offers frames of these sizes in rotation, at any time.
    pub fn of(sizes: &[u32]) -> Source {
        let (sizes, mut turn) = (sizes.to_vec(), 0);
        Source::new(move |_| {
            turn += 1;
            sizes[turn % sizes.len()]
        })
    }

    /// Offers frames of these sizes in random order, at any time.
    pub fn random(sizes: &[u32], seed: u64) -> Source {
        let (sizes, mut random) = (sizes.to_vec(), Random::new(seed));
        Source::new(move |_| sizes[random.next_u32() as usize % sizes.len()])
    }

    /// Offers frames of one size at a percentage of the link's time.
    pub fn offering(percent: u64, size: u32) -> Source {
        let interval_ticks = u64::from(size + GAP_BYTES) * BYTE_TICKS * 100 / percent;
        Source { interval_ticks, ..Source::of(&[size]) }
    }
}

pub struct Link {
    pub schedule: Schedule,
    pub sources: Vec<Source>,
    pub paused: ClassSet,
    pub ticks: u64,
    /// Bytes that each class has sent since [`Link::run`] began, FCS included.
    pub bytes: Vec<u64>,
    /// Bytes that each class has sent since [`Link::run`] began, with preamble and gap.
    pub wire_bytes: Vec<u64>,
}

impl Link {
    pub fn new(config: &ScheduleConfig, sources: Vec<Source>) -> Link {
        assert_eq!(config.classes.len(), sources.len());
        let mut schedule = Schedule::new(config).unwrap();
        schedule.adapt(Time::ZERO);
        let none = vec![0; sources.len()];
        let (bytes, wire_bytes) = (none.clone(), none);
        Link { schedule, sources, paused: ClassSet::EMPTY, ticks: 0, bytes, wire_bytes }
    }

    /// Sends one frame; returns its class, or `None` if no class may send now.
    pub fn send(&mut self) -> Option<usize> {
        let now = self.ticks;
        if self.schedule.deadline().is_some_and(|at| at.ticks() <= now) {
            self.schedule.adapt(Time::from_ticks(now));
        }
        let numbered = || TrafficClass::ALL.into_iter().zip(&self.sources);
        let waiting = numbered().filter(|(_, source)| source.due <= now);
        let waiting = waiting.map(|(class, _)| class).collect();
        let head = |class: TrafficClass| self.sources[class.index()].head;
        let chosen = self.schedule.next(waiting, self.paused, head)?;
        let class = chosen.index();
        let source = &mut self.sources[class];
        self.schedule.sent(chosen, source.head);
        self.bytes[class] += u64::from(source.head);
        self.wire_bytes[class] += u64::from(source.head + GAP_BYTES);
        self.ticks += u64::from(source.head + GAP_BYTES) * BYTE_TICKS;
        source.due += source.interval_ticks;
        source.head = (source.sizes)(self.ticks);
        Some(class)
    }

    /// Runs for `span`, and resets the counts first.
    pub fn run(&mut self, span: Span) {
        self.bytes.fill(0);
        self.wire_bytes.fill(0);
        let end = self.ticks + span.ticks();
        while self.ticks < end {
            if self.send().is_none() {
                let next = self.sources.iter().map(|source| source.due).min().unwrap();
                self.ticks = next.max(self.ticks + 1).min(end);
            }
        }
    }

    /// Returns each class's share of the used time of the wire in the last run, in percent.
    pub fn shares(&self) -> Vec<f64> {
        let all: u64 = self.wire_bytes.iter().sum();
        self.wire_bytes.iter().map(|&bytes| 100.0 * bytes as f64 / all as f64).collect()
    }
}
