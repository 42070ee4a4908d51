//! Transactions of 1000 changes on full tables.

use crate::{Random, host, interfaces, mac, out, prefix, route, rules, tcam_changes};
use axon_pipeline::{Action, Change, MacKey, Sizes, Tables, Udlk, UdlkId};
use std::time::{Duration, Instant};

const CHANGES: usize = 1000;

/// Tables that are full: interfaces, MACs, addresses, prefixes, TCAM.
fn full() -> Tables {
    let mut tables = Tables::new(Sizes::default(), crate::PORTS, 0);
    let udlk: Udlk = rules::key();
    let rows = rules::KINDS[0].rows(4096, &mut Random(8));
    let mut all = interfaces();
    all.push(Change::Udlk(UdlkId(0), Some(udlk)));
    all.extend((0..32 * 1024).map(|index| mac_change(index, out(index))));
    all.extend((0..8192).map(|index| Change::Ipv4(host(index), Some(route(index)))));
    all.extend((0..6144).map(|index| Change::Prefix(prefix(index), Some(route(index)))));
    all.extend(tcam_changes(rows).into_iter().take(2048));
    tables.commit(&all).expect("they are full to the last entry");
    tables
}

fn mac_change(index: usize, action: Action) -> Change {
    Change::Mac(MacKey { bridge: 0, mac: mac(index) }, Some(action))
}

/// What one kind of transaction does, by its number: every one sets what the one before did not.
type Make = fn(round: usize, at: usize) -> Change;

const KINDS: [(&str, Make); 6] = [
    ("TCAM, other actions", |round, at| tcam(at, round, 0)),
    ("TCAM, other rules", |round, at| tcam(at, round, round)),
    ("MACs, other actions", |round, at| mac_change(at * 31, out(round))),
    ("prefixes, other actions", |round, at| Change::Prefix(prefix(at * 6), Some(route(round)))),
    // Every other change takes a prefix out, and the next puts one in its room.
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

/// An entry at index `at`: the rule of another place in every `shift`.
fn tcam(at: usize, round: usize, shift: usize) -> Change {
    thread_local!(static ROWS: Vec<axon_pipeline::expand::Pattern> =
        rules::KINDS[0].rows(4096, &mut Random(8)));
    let row = ROWS.with(|rows| rows[(at * 2 + shift) % 2048].clone());
    Change::Tcam((at * 2) as u16, Some(row.entry(UdlkId(0), out(round))))
}

/// Measures so many transactions of each kind.
pub fn measure(rounds: usize) {
    println!("\ntransactions of {CHANGES} changes on full tables: median and longest, in us");
    let full = full();
    for (name, make) in KINDS {
        let mut tables = full.clone();
        let mut times: Vec<Duration> = Vec::with_capacity(rounds);
        for round in 0..rounds {
            let changes: Vec<Change> = (0..CHANGES).map(|at| make(round, at)).collect();
            let start = Instant::now();
            tables.commit(&changes).expect("what fits");
            times.push(start.elapsed());
        }
        times.sort();
        let us = |time: Duration| time.as_secs_f64() * 1e6;
        println!("{name:<28} {:>8.0} {:>8.0}", us(times[rounds / 2]), us(times[rounds - 1]));
    }
}
