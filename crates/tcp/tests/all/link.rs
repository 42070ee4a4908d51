//! Two ends and a link with a rate, a delay, a queue, and seeded faults.

use axon_tcp::{Config, Connection, Flags, Mark, Segment, Seq, Socket, State};
use axon_wire::{Bytes, Rate, Span, Time};
use std::collections::BTreeMap;

/// Bytes of headers around a segment that the rate counts.
const AROUND: u64 = 58;

/// Parameters of the link.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    pub rate: Rate,
    pub delay: Span,
    /// Maximum number of queued bytes; segments beyond it are dropped.
    pub queue: u64,
    /// Queue length in bytes above which ECN-capable segments are marked.
    pub mark_above: u64,
    /// Lost segments of a thousand.
    pub lost: u32,
    /// Duplicated segments of a thousand.
    pub doubled: u32,
    /// Segments of a thousand that are delayed by up to `hold`.
    pub held: u32,
    pub hold: Span,
}

pub const CLEAN: Link = Link {
    rate: Rate::gbps(1),
    delay: Span::from_micros(50),
    queue: u64::MAX,
    mark_above: u64::MAX,
    lost: 0,
    doubled: 0,
    held: 0,
    hold: Span::ZERO,
};

type DropIf = Box<dyn FnMut(usize, &Segment, u64) -> bool>;

/// The two ends; the first opens.
pub struct Pair {
    pub now: Time,
    pub ends: [Option<Socket>; 2],
    configs: [Config; 2],
    link: Link,
    free_at: [Time; 2],
    flight: BTreeMap<(Time, u64), (usize, Segment, Vec<u8>)>,
    number: u64,
    random: oorandom::Rand32,
    pub sent: u64,
    pub dropped: u64,
    /// Drops the segments it selects by sender, segment, and the segment's number from one on.
    pub drop_if: DropIf,
    pub reading: bool,
    /// Bytes that each end has read, if they are kept.
    pub kept: Option<[Vec<u8>; 2]>,
    /// True if an end closes once its peer has closed.
    pub closing: bool,
    pub trace: Vec<(Time, usize, Segment)>,
}

pub const FIRST: [Seq; 2] = [Seq(u32::MAX - 20_000), Seq(u32::MAX - 5)];

impl Pair {
    pub fn new(configs: [Config; 2], link: Link, seed: u64) -> Pair {
        let client = Connection::open(Time::ZERO, configs[0], FIRST[0]);
        Pair {
            now: Time::ZERO,
            ends: [Some(Socket::new(client)), None],
            configs,
            link,
            free_at: [Time::ZERO; 2],
            flight: BTreeMap::new(),
            number: 0,
            random: oorandom::Rand32::new(seed),
            sent: 0,
            dropped: 0,
            drop_if: Box::new(|_, _, _| false),
            reading: true,
            kept: None,
            closing: true,
            trace: Vec::new(),
        }
    }

    pub fn client(&mut self) -> &mut Connection {
        &mut self.ends[0].as_mut().unwrap().connection
    }

    pub fn server(&self) -> &Connection {
        &self.ends[1].as_ref().unwrap().connection
    }

    fn happens(&mut self, per_mille: u32) -> bool {
        per_mille > 0 && self.random.rand_range(0..1000) < per_mille
    }

    /// Puts a segment with its payload on the link.
    fn put(&mut self, from: usize, mut segment: Segment, payload: Vec<u8>) {
        self.number += 1;
        self.sent += 1;
        self.trace.push((self.now, from, segment));
        let bytes = u64::from(segment.bytes) + AROUND;
        let backlog = self.link.rate.bytes_in(self.free_at[from].since(self.now)).0;
        let full = backlog + bytes > self.link.queue;
        if full || self.happens(self.link.lost) || (self.drop_if)(from, &segment, self.sent) {
            self.dropped += 1;
            return;
        }
        if backlog > self.link.mark_above && segment.mark == Mark::Capable {
            segment.mark = Mark::Experienced;
        }
        self.free_at[from] =
            self.free_at[from].max(self.now) + self.link.rate.time_for(Bytes(bytes));
        let copies = 1 + u32::from(self.happens(self.link.doubled));
        for _ in 0..copies {
            let mut at = self.free_at[from] + self.link.delay;
            if self.happens(self.link.held) {
                let micros = (self.link.hold.as_nanos() / 1000) as u32;
                at += Span::from_micros(u64::from(self.random.rand_range(0..micros.max(1))));
            }
            self.number += 1;
            self.flight.insert((at, self.number), (1 - from, segment, payload.clone()));
        }
    }

    /// Takes the segments that both ends send now.
    pub fn pump(&mut self) {
        for from in 0..2 {
            let mut burst = 0;
            while let Some(end) = &mut self.ends[from] {
                let Some(segment) = end.connection.poll_transmit(self.now) else { break };
                let payload = end.payload(&segment);
                self.put(from, segment, payload);
                burst += 1;
                assert!(burst < 100_000, "a burst without end");
            }
        }
    }

    fn deliver(&mut self, to: usize, segment: &Segment, payload: &[u8]) {
        match &mut self.ends[to] {
            Some(end) if !end.connection.is_closed() => {
                end.on_segment(self.now, segment, payload.into());
            }
            None if segment.flags.has(Flags::SYN) => {
                let (config, first) = (self.configs[to], FIRST[to]);
                let accepted = Connection::accept(self.now, config, first, segment);
                self.ends[to] = accepted.map(Socket::new);
            }
            _ => {
                if let Some(reset) = Connection::refuse(segment) {
                    self.put(to, reset, Vec::new());
                }
            }
        }
        if let Some(end) = self.ends[to].as_mut().filter(|_| self.reading || to == 0) {
            match &mut self.kept {
                Some(kept) => end.read(u64::MAX, &mut kept[to]),
                None => end.skip(u64::MAX).0,
            };
            if end.connection.is_finished() && self.closing {
                end.connection.close();
            }
        }
    }

    /// Time of the next event.
    fn next(&self) -> Option<Time> {
        let arrival = self.flight.first_key_value().map(|(&(at, _), _)| at);
        let timers = self.ends.iter().flatten().filter_map(|end| end.connection.deadline());
        let timers = timers.inspect(|&at| assert!(at > self.now, "a timer at {at:?} was due"));
        timers.chain(arrival).min()
    }

    /// Advances to the next event; returns `false` if there is none.
    pub fn step(&mut self) -> bool {
        self.pump();
        let Some(next) = self.next() else { return false };
        self.now = next.max(self.now);
        while let Some(entry) = self.flight.first_entry().filter(|e| e.key().0 <= self.now) {
            let (to, segment, payload) = entry.remove();
            self.deliver(to, &segment, &payload);
        }
        true
    }

    /// Runs until `done`, until no event remains, or for a maximum number of steps.
    pub fn run_until(&mut self, mut done: impl FnMut(&Pair) -> bool) {
        let mut steps = 0;
        while !done(self) {
            steps += 1;
            assert!(steps < 3_000_000, "no end in sight at {:?}: {:?}", self.now, self.ends);
            if !self.step() {
                return;
            }
        }
    }

    pub fn run_for(&mut self, span: Span) {
        let end = self.now + span;
        self.pump();
        while self.next().is_some_and(|at| at <= end) {
            self.step();
            self.pump();
        }
        self.now = end;
    }

    /// Runs until both ends are closed.
    pub fn run(&mut self) {
        let closed =
            |end: &Option<Socket>| end.as_ref().is_none_or(|end| end.connection.is_closed());
        self.run_until(|pair| pair.ends.iter().all(closed));
    }

    pub fn established(configs: [Config; 2], link: Link) -> Pair {
        let mut pair = Pair::new(configs, link, 1);
        let open = |end: &Option<Socket>| {
            end.as_ref().is_some_and(|end| end.connection.state() == State::Established)
        };
        pair.run_until(|pair| pair.ends.iter().all(open));
        pair
    }

    /// Returns the data segments of the first end, with their times.
    pub fn data(&self) -> Vec<(Time, Segment)> {
        let of = self.trace.iter().filter(|(_, from, segment)| *from == 0 && segment.bytes > 0);
        of.map(|&(at, _, segment)| (at, segment)).collect()
    }
}
