//! Transactions of 1000 changes on full tables: their duration, and the gap between two frames that
//! they cause.

use crate::{FRAME_BYTES, INGRESS, PORTS, Random, STRANGER};
use crate::{frame, host, interfaces, mac, out, prefix, route, rules, tcam_changes};
use axon_node::{Action as Act, Input, Node};
use axon_pipeline::{
    Action, Change, MacKey, Pipeline, PipelineConfig, Sizes, Tables, Udlk, UdlkId,
};
use axon_wire::{FrameBuf, HopWidth, MacAddr, PortNo, Time};
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

const CHANGES: usize = 1000;
/// Frames before each transaction, and after it.
const FRAMES: usize = 1000;

/// Returns entries that fill the tables: interfaces, MACs, addresses, prefixes, TCAM.
fn full() -> Vec<Change> {
    let udlk: Udlk = rules::key();
    let rows = rules::KINDS[0].rows(4096, &mut Random(8));
    let mut all = interfaces();
    all.push(Change::Udlk(UdlkId(0), Some(udlk)));
    all.extend((0..32 * 1024).map(|index| mac_change(index, out(index))));
    all.extend((0..8192).map(|index| Change::Ipv4(host(index), Some(route(index)))));
    all.extend((0..6144).map(|index| Change::Prefix(prefix(index), Some(route(index)))));
    all.extend(tcam_changes(rows).into_iter().take(2048));
    all
}

fn mac_change(index: usize, action: Action) -> Change {
    Change::Mac(MacKey { bridge: 0, mac: mac(index) }, Some(action))
}

/// Change `at` of transaction number `round`. Each transaction sets other values than the one
/// before.
type Make = fn(round: usize, at: usize) -> Change;

const KINDS: [(&str, Make); 6] = [
    ("TCAM, other actions", |round, at| tcam(at, round, 0)),
    ("TCAM, other rules", |round, at| tcam(at, round, round)),
    ("MACs, other actions", |round, at| mac_change(at * 31, out(round))),
    ("prefixes, other actions", |round, at| Change::Prefix(prefix(at * 6), Some(route(round)))),
    // Even changes remove a prefix, odd ones add one in the freed room.
    ("prefixes, others", |round, at| {
        let (out_of, into) = ([0, 10_000][round % 2], [10_000, 0][round % 2]);
        match at % 2 {
            0 => Change::Prefix(prefix(out_of + at), None),
            _ => Change::Prefix(prefix(into + at - 1), Some(route(round))),
        }
    }),
    ("mixed", |round, at| match at % 4 {
        0 => tcam(at, round, round),
        1 => mac_change(at * 31, out(round)),
        2 => Change::Prefix(prefix(at * 6), Some(route(round))),
        _ => Change::Ipv4(host(at * 8), Some(route(round))),
    }),
];

/// Returns the entry at index `at`; its rule moves with `shift`.
fn tcam(at: usize, round: usize, shift: usize) -> Change {
    thread_local!(static ROWS: Vec<axon_pipeline::expand::Pattern> =
        rules::KINDS[0].rows(4096, &mut Random(8)));
    let row = ROWS.with(|rows| rows[(at * 2 + shift) % 2048].clone());
    Change::Tcam((at * 2) as u16, Some(row.entry(UdlkId(0), out(round))))
}

/// Measures `rounds` transactions of each kind.
pub fn measure(rounds: usize) {
    println!("\ntransactions of {CHANGES} changes on full tables: median and longest, in us");
    let mut full_tables = Tables::new(Sizes::default(), HopWidth::Eight, PORTS, 0);
    full_tables.commit(&full()).expect("they are full to the last entry");
    for (name, make) in KINDS {
        let mut tables = full_tables.clone();
        let mut times: Vec<Duration> = Vec::with_capacity(rounds);
        for round in 0..rounds {
            let changes = changes(make, round);
            let start = Instant::now();
            tables.commit(&changes).expect("what fits");
            times.push(start.elapsed());
        }
        println!("{name:<28}{}", median_and_longest(times));
    }
    println!(
        "\nthe longest gap between frames, of {FRAMES} before, of those around and of {FRAMES} \
         after such a transaction: median and longest, in us"
    );
    for (name, make) in KINDS {
        gaps(name, make, rounds);
    }
}

fn changes(make: Make, round: usize) -> Vec<Change> {
    (0..CHANGES).map(|at| make(round, at)).collect()
}

fn median_and_longest(mut times: Vec<Duration>) -> String {
    times.sort();
    let us = |time: Duration| time.as_secs_f64() * 1e6;
    format!(" {:>8.1} {:>8.1}", us(times[times.len() / 2]), us(times[times.len() - 1]))
}

/// Sends frames one by one through a pipeline with full tables, with a transaction between two of
/// them, on the same thread as in a switch. Changes are prepared before.
fn gaps(name: &str, make: Make, rounds: usize) {
    let mut traffic = Traffic::new();
    let mut longest = [const { Vec::new() }; 3];
    for round in 0..rounds {
        let changes = changes(make, round);
        traffic.last = Instant::now();
        longest[0].push(traffic.longest_gap(FRAMES));
        traffic.pipeline.commit(&changes).expect("what fits");
        longest[1].push(traffic.longest_gap(1));
        longest[2].push(traffic.longest_gap(FRAMES));
    }
    let [before, around, after] = longest.map(median_and_longest);
    println!("{name:<28}{before}{around}{after}");
}

/// Forwarding pipeline with full tables.
struct Traffic {
    pipeline: Pipeline,
    frame: Option<FrameBuf>,
    number: usize,
    out: Vec<Act>,
    /// Transmit time of the last frame.
    last: Instant,
}

impl Traffic {
    fn new() -> Traffic {
        let config = PipelineConfig::with_ports(PORTS, MacAddr([2; 6]));
        let mut pipeline = Pipeline::new(config);
        for port in (0..PORTS).map(PortNo) {
            pipeline.handle(Time::ZERO, Input::Link { port, up: true }, &mut Vec::new());
        }
        pipeline.commit(&full()).expect("they are full to the last entry");
        let frame = FrameBuf::new(&frame(STRANGER, Ipv4Addr::LOCALHOST));
        assert_eq!(frame.bytes().len(), FRAME_BYTES);
        Traffic { pipeline, frame: Some(frame), number: 0, out: Vec::new(), last: Instant::now() }
    }

    /// Sends `frames` frames. Returns the longest time between two, including the frame before
    /// them.
    fn longest_gap(&mut self, frames: usize) -> Duration {
        let (port, complete_at, intact) = (INGRESS, Time::ZERO, true);
        let mut longest = Duration::ZERO;
        for _ in 0..frames {
            let mut frame = self.frame.take().expect("the last frame has come back");
            self.number += 1;
            frame.bytes_mut()[..6].copy_from_slice(&mac(self.number * 77 % (32 * 1024)).0);
            let input = Input::Frame { port, frame, complete_at, intact };
            self.pipeline.handle(Time::ZERO, input, &mut self.out);
            let Some(Act::Transmit { port, frame, .. }) = self.out.pop() else {
                panic!("every frame is forwarded");
            };
            self.pipeline.handle(Time::ZERO, Input::TxDone { port }, &mut self.out);
            self.frame = Some(frame);
            let now = Instant::now();
            longest = longest.max(now - std::mem::replace(&mut self.last, now));
        }
        longest
    }
}
