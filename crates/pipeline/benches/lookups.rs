//! Lookup rate of the tables on one core: `cargo bench -p axon-pipeline`.
//!
//! - `whole`: frames of 60 bytes through `Node::handle` of a pipeline (receive, parse, look up,
//!   rewrite, transmit) and its `TxDone`; `bare`: parse and `Tables::lookup` alone. All tables that
//!   a job is about are full, at the sizes of paper 004.
//! - the TCAM's method beside another one, on rule sets in the style of ClassBench;
//! - transactions of 1000 changes on full tables, and the gap between frames that each makes.
//!
//! Only the job is measured: frames are made fresh between the timed passes. For lookups the best
//! of many passes counts, since other work on the machine only ever adds time; for transactions the
//! median counts. Cycles come from a chain of dependent additions, so they are core cycles at the
//! current clock. Figures and bottlenecks: docs/pipeline.md, "Lookups".

extern crate alloc;

/// Items that the TCAM's file imports by their path in its own crate.
mod key {
    pub use axon_pipeline::{KEY_BYTES, KeyBytes};
}
mod rules;
// The tests of this module do not run here.
#[allow(dead_code, unused_imports)]
#[path = "../src/tables/tcam.rs"]
mod tcam;
mod transactions;
mod tuple_space;

use axon_node::{Action as Act, Input, Node};
use axon_pipeline::{Action, Change, Interface, MacKey, Modify, Parsed, Pipeline, PipelineConfig};
use axon_pipeline::{Prefix, Tables, Target, Udlk, UdlkId, expand};
use axon_wire::{FrameBuf, MacAddr, PortNo, Time};
use std::hint::black_box;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

const PORTS: u16 = 64;
const INGRESS: PortNo = PortNo(0);
/// Shortest Ethernet frame, in bytes without FCS.
const FRAME_BYTES: usize = 60;
const WORKING_SETS: [usize; 2] = [256, 16_384];
const KEY: UdlkId = UdlkId(0);

/// Small generator (PCG's multiplier), so that every run visits in the same order.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        ((self.0 >> 33) as usize) % bound
    }
}

/// Returns core cycles per second. Each round of the loop is an exclusive or and an addition that
/// depend on each other: two cycles, which no compiler or core can shorten.
fn cycles_per_second() -> f64 {
    const ROUNDS: u64 = 200_000;
    let best = (0..500).map(|_| {
        let start = Instant::now();
        let mut sum = black_box(1u64);
        for round in 0..ROUNDS {
            sum = (sum ^ round).wrapping_add(0x9e37_79b9);
        }
        black_box(sum);
        start.elapsed()
    });
    2.0 * ROUNDS as f64 / best.min().unwrap_or_default().as_secs_f64()
}

fn report(job: &str, frames: usize, best: Duration, hertz: f64) {
    let seconds = best.as_secs_f64() / frames as f64;
    println!(
        "{job:<38} {frames:>7} {:>8.1} {:>8.2} {:>8.1}",
        1e-6 / seconds,
        seconds * 1e9,
        seconds * hertz
    );
}

/// Returns the shortest of at least seven passes.
fn best_of(frames: usize, mut pass: impl FnMut() -> Duration) -> Duration {
    let passes = (6_000_000 / frames).clamp(7, 4000);
    (0..passes).map(|_| pass()).min().unwrap_or_default()
}

fn mac(index: usize) -> MacAddr {
    let [.., a, b, c, d] = (index as u64).to_be_bytes();
    MacAddr([2, 0, a, b, c, d])
}

/// Returns the address of a host of the exact table. Each is in another net, as in a fabric of
/// servers.
fn host(index: usize) -> Ipv4Addr {
    Ipv4Addr::from_bits(0x0a00_0000 + (index as u32).wrapping_mul(0x9e3b) % (1 << 24))
}

/// Returns a prefix of the full table: most have 24 bits, some are shorter and some longer.
fn prefix(index: usize) -> Prefix {
    let length = [24, 24, 24, 24, 16, 22, 28, 32][index % 8];
    let address = (0x2000_0000 + (index as u32) * 0x0003_1d00) | (index as u32 & 0xff);
    let mask = u32::MAX << (32 - length);
    Prefix { address: Ipv4Addr::from_bits(address & mask), length: length as u8 }
}

/// Returns as many interfaces as the paper's table holds.
fn interfaces() -> Vec<Change> {
    let interface = |number: u16| {
        let port = PortNo(1 + number % (PORTS - 1));
        let (destination, source) = (Some(mac(number.into())), Some(MacAddr([2; 6])));
        Change::Interface(number, Some(Interface { port, destination, source }))
    };
    (0..4096).map(interface).collect()
}

/// Returns the action that rewrites both MACs.
fn out(index: usize) -> Action {
    Action::from(Target::Interface((index % 4096) as u16))
}

/// Returns the action of a router.
fn route(index: usize) -> Action {
    out(index).with(Modify::DecrementTtl)
}

fn frame(destination: MacAddr, address: Ipv4Addr) -> Vec<u8> {
    let mut frame = vec![0; FRAME_BYTES];
    frame[..6].copy_from_slice(&destination.0);
    frame[12..15].copy_from_slice(&[8, 0, 0x45]);
    (frame[22], frame[23]) = (64, 17);
    frame[30..34].copy_from_slice(&address.octets());
    frame
}

/// Lookup job: its tables and its frames.
struct Job {
    name: String,
    changes: Vec<Change>,
    frames: Vec<Vec<u8>>,
}

const STRANGER: MacAddr = MacAddr([6; 6]);

fn exact_mac() -> Job {
    let keys = (0..32 * 1024).map(|index| (index, MacKey { bridge: 0, mac: mac(index) }));
    let change = |(index, key)| Change::Mac(key, Some(out(index)));
    let mut random = Random(1);
    let frames = (0..16_384).map(|_| frame(mac(random.below(32 * 1024)), Ipv4Addr::LOCALHOST));
    let name = "exact, 32,768 MACs".into();
    Job { name, changes: keys.map(change).collect(), frames: frames.collect() }
}

fn exact_ipv4() -> Job {
    let changes = (0..8192).map(|index| Change::Ipv4(host(index), Some(route(index))));
    let mut random = Random(2);
    let frames = (0..16_384).map(|_| frame(STRANGER, host(random.below(8192))));
    let name = "exact, 8192 addresses, TTL".into();
    Job { name, changes: changes.collect(), frames: frames.collect() }
}

fn longest_prefix() -> Job {
    let changes = (0..6144).map(|index| Change::Prefix(prefix(index), Some(route(index))));
    let mut random = Random(3);
    let frames = (0..16_384).map(|_| {
        let Prefix { address, length } = prefix(random.below(6144));
        let low = random.below(1 << 16) as u32 & !(u32::MAX << (32 - u32::from(length)));
        frame(STRANGER, Ipv4Addr::from_bits(address.to_bits() | low))
    });
    let name = "longest of 6144 prefixes, TTL".into();
    Job { name, changes: changes.collect(), frames: frames.collect() }
}

/// Returns the TCAM entries of these rules.
fn tcam_changes(rows: Vec<expand::Pattern>) -> Vec<Change> {
    let entry = |(index, row): (u16, expand::Pattern)| {
        Change::Tcam(index, Some(row.entry(KEY, out(index.into()))))
    };
    (0..).zip(rows).map(entry).collect()
}

fn ternary(name: &str, key: Udlk, rows: Vec<expand::Pattern>) -> Job {
    let mut random = Random(4);
    let keys = rules::keys(&rows, 16_384, &mut random);
    let frames = keys.iter().map(|key| {
        let mut frame = frame(STRANGER, Ipv4Addr::LOCALHOST);
        frame[26..38].copy_from_slice(key);
        frame
    });
    let name = format!("TCAM, {} of {name}", rows.len());
    let frames = frames.collect();
    let first = [Change::Udlk(KEY, Some(key)), Change::Miss(Some(out(0)))];
    Job { name, changes: first.into_iter().chain(tcam_changes(rows)).collect(), frames }
}

fn jobs() -> Vec<Job> {
    let mut jobs = vec![exact_mac(), exact_ipv4(), longest_prefix()];
    for kind in rules::KINDS {
        let rows = kind.rows(2048, &mut Random(5));
        jobs.push(ternary(kind.name, rules::key(), rows));
    }
    jobs
}

/// Sends every frame of `pool` through the pipeline in bursts, as a driver would, and collects the
/// frames to transmit.
fn through(
    pipeline: &mut Pipeline,
    pool: &mut Vec<FrameBuf>,
    done: &mut Vec<FrameBuf>,
    out: &mut Vec<Act>,
) {
    const BURST: usize = 32;
    let (port, complete_at, intact) = (INGRESS, Time::ZERO, true);
    let mut frames = pool.drain(..);
    loop {
        for frame in frames.by_ref().take(BURST) {
            let input = Input::Frame { port, frame, complete_at, intact };
            pipeline.handle(Time::ZERO, input, out);
            if let Some(Act::Transmit { port, .. }) = out.last() {
                let port = *port;
                pipeline.handle(Time::ZERO, Input::TxDone { port }, out);
            }
        }
        if out.is_empty() {
            return;
        }
        for action in out.drain(..) {
            match action {
                Act::Transmit { frame, .. } => done.push(frame),
                other => panic!("every frame is forwarded, but: {other:?}"),
            }
        }
    }
}

fn whole(job: &Job, frames: usize, hertz: f64) {
    let mut pipeline = Pipeline::new(PipelineConfig::with_ports(PORTS, MacAddr([2; 6])));
    for port in (0..PORTS).map(PortNo) {
        pipeline.handle(Time::ZERO, Input::Link { port, up: true }, &mut Vec::new());
    }
    pipeline.commit(&interfaces()).expect("room for all interfaces");
    pipeline.commit(&job.changes).expect("room for all entries");
    let mut pool: Vec<FrameBuf> =
        job.frames[..frames].iter().map(|frame| FrameBuf::with_headroom(0, frame)).collect();
    let mut done = Vec::with_capacity(frames);
    let mut out = Vec::with_capacity(64);
    let best = best_of(frames, || {
        for (frame, fresh) in pool.iter_mut().zip(&job.frames) {
            frame.bytes_mut().copy_from_slice(fresh);
        }
        let start = Instant::now();
        through(&mut pipeline, &mut pool, &mut done, &mut out);
        let time = start.elapsed();
        std::mem::swap(&mut pool, &mut done);
        time
    });
    report(&format!("whole: {}", job.name), frames, best, hertz);
}

fn bare(job: &Job, frames: usize, hertz: f64) {
    let config = PipelineConfig::with_ports(PORTS, MacAddr([2; 6]));
    let mut tables = Tables::new(config.sizes, config.hop_width, PORTS, 0);
    tables.commit(&interfaces()).expect("room for all interfaces");
    tables.commit(&job.changes).expect("room for all entries");
    let best = best_of(frames, || {
        let start = Instant::now();
        for frame in &job.frames[..frames] {
            let verdict = tables.lookup(frame, &Parsed::ethernet(frame), INGRESS, 0);
            black_box(verdict.action);
        }
        start.elapsed()
    });
    report(&format!("bare: {}", job.name), frames, best, hertz);
}

/// Compares lookups, memory and updates of both methods on the same rules and keys.
fn methods(name: &str, rows: &[expand::Pattern], hertz: f64) {
    let at = rules::at_its_place;
    let keys = rules::keys(rows, 4096, &mut Random(7));
    let keys: Vec<_> = keys.iter().map(|key| at(key)).collect();
    let masked: Vec<rules::Row> = rows.iter().map(|row| (at(&row.value), at(&row.mask))).collect();
    let (mut bits, mut tuples) = (tcam::Tcam::new(12), tuple_space::TupleSpace::default());
    for (index, (value, mask)) in (0..).zip(&masked) {
        bits.set(index, &value[..12], &mask[..12], true);
        tuples.set(index, value, mask);
    }
    for key in &keys {
        assert_eq!(bits.lookup(key), tuples.lookup(key), "both methods agree");
    }
    let lookups = |lookup: &dyn Fn(&axon_pipeline::KeyBytes) -> Option<u16>| {
        let time = best_of(16 * keys.len(), || {
            let start = Instant::now();
            for key in &keys {
                black_box(lookup(key));
            }
            start.elapsed()
        });
        time.as_secs_f64() / keys.len() as f64
    };
    let by_bits = lookups(&|key| bits.lookup(key));
    let by_tuples = lookups(&|key| tuples.lookup(key));
    let updates = |update: &mut dyn FnMut(u16, &rules::Row)| {
        let time = best_of(64 * masked.len(), || {
            let start = Instant::now();
            (0..).zip(&masked).for_each(|(index, row)| update(index, row));
            start.elapsed()
        });
        time.as_secs_f64() / masked.len() as f64
    };
    let bits_update = updates(&mut |index, (value, mask)| {
        bits.clear(index, &value[..12], &mask[..12]);
        bits.set(index, &value[..12], &mask[..12], true);
    });
    let tuples_update = updates(&mut |index, (value, mask)| {
        tuples.clear(index, value, mask);
        tuples.set(index, value, mask);
    });
    // For each 512 entries: a line for each value of each half of 12 bytes, and one more.
    let bits_bytes = rows.len().div_ceil(512) * (12 * 2 * 16 * 64 + 64 + 2);
    println!(
        "{:<12} {:>5} | {:>7.1} {:>7.0} {:>7.0} {:>7.0} | {:>7.1} {:>7.0} {:>7.0} {:>7.0} {:>6}",
        name,
        masked.len(),
        1e-6 / by_bits,
        by_bits * hertz,
        bits_bytes as f64 / 1024.0,
        bits_update * 1e9,
        1e-6 / by_tuples,
        by_tuples * hertz,
        tuples.bytes() as f64 / 1024.0,
        tuples_update * 1e9,
        tuples.tuples(),
    );
}

fn main() {
    // `cargo test --benches` only tests that the benchmark runs.
    let quick = std::env::args().any(|argument| argument == "--test");
    // Arguments: a part, and for lookups a job: `cargo bench -p axon-pipeline -- lookups TCAM`.
    let words = std::env::args().skip(1).filter(|argument| !argument.starts_with('-'));
    let words: Vec<String> = words.collect();
    let has = |index: usize, name: &str| words.get(index).is_none_or(|word| name.contains(word));
    let hertz = cycles_per_second();
    println!("one core at {:.2} GHz, {FRAME_BYTES} byte frames", hertz / 1e9);
    if has(0, "lookups") {
        println!("{:<38} {:>7} {:>8} {:>8} {:>8}", "job", "frames", "Mpps", "ns", "cycles");
        for job in jobs().iter().filter(|job| has(1, &job.name)) {
            for frames in WORKING_SETS.into_iter().take(if quick { 1 } else { 2 }) {
                whole(job, frames, hertz);
                bare(job, frames, hertz);
            }
        }
    }
    if has(0, "methods") {
        println!("\nTCAM methods: bit vectors | tuple space");
        println!("rules, entries | M/s, cycles, KiB, ns per update | the same, and masks");
        for kind in rules::KINDS {
            for count in [128, 512, 2048].into_iter().take(if quick { 1 } else { 3 }) {
                methods(kind.name, &kind.rows(count, &mut Random(6)), hertz);
            }
        }
        methods("index route", &rules::index_routing(8, 3), hertz);
        methods("index route", &rules::index_routing(16, 8), hertz);
    }
    if has(0, "transactions") {
        transactions::measure(if quick { 1 } else { 31 });
    }
}
