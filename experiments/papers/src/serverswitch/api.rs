//! The programming interface (004 §3.3.2 and §4.1), its rules, and the fabrics built on it.

use super::routing::{INDEXES, NEIGHBOURS, Routing};
use super::rules;
use crate::reproduce::{Context, Experiment, Outcome, Row, Table};
use anyhow::{Context as _, Result, bail};
use axon_fabric::model::Fabric;
use axon_pipeline::TableName;
use axon_programs::ProgramKind;
use axon_sim::{PingPlan, World};
use axon_wire::{Span, Time};
use std::path::Path;

/// Experiment `serverswitch/api`: the programming interface, its rules and the fabrics built on it.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "serverswitch/api",
    file: file!(),
    title: "The programming interface, its rules and the fabrics built on it",
    source: "004 §3.3.2, §4.1, §5.1 and appendix A",
    setup: "A pipeline with the default sizes and a frame that two entries of the TCAM, one of \
            MACs and one of prefixes match, each with an output of its own; entries go one by \
            one, the best first. Lookup keys \
            that are taken and that are not, registers, and a control program that sends on what \
            it receives. Tables of figure 6 for BCube_1 with 16 servers. Then every program that \
            ships, in the simulator: all pairs of hosts ping, with up to five requests each, on \
            the first of leaf and spine, a fat tree (k = 4), BCube (n = 4, k = 1) and DCell \
            (n = 4, k = 1) that it runs on.",
    run,
};

/// Entries of the tables in 004 §4.1.
const PAPER_SIZES: [(TableName, f64); 6] = [
    (TableName::Mac, 32_768.0),
    (TableName::Ipv4, 8192.0),
    (TableName::Mpls, 4096.0),
    (TableName::Prefix, 6144.0),
    (TableName::Tcam, 2048.0),
    (TableName::Interface, 4096.0),
];
/// Interval of the requests of a ping, and their maximum number.
const RETRY: Span = Span::from_secs(1);
const TRIES: u16 = 5;
/// Timeout of a program's start, and of a ping.
const LIMIT: Span = Span::from_secs(60);

fn run(context: &mut Context) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let pipeline = rules::pipeline();
    for (table, theirs) in PAPER_SIZES {
        let ours = f64::from(pipeline.tables().count(table).size);
        let row = Row::within(format!("entries of {table}"), theirs, ours, "", (theirs, 0.0));
        outcome.rows.push(row.by_construction());
    }
    outcome.rows.extend(rules::rows()?);
    let entries = Routing::new(64)?.entries() as f64;
    let theirs = f64::from(NEIGHBOURS) * f64::from(INDEXES);
    let name = "entries for index source routing, 6 addresses by 8 indexes";
    let row = Row::within(name, theirs, entries, "", (theirs, 0.0));
    outcome.rows.push(row.by_construction());
    let mut table =
        Table::new("programs", &["program", "topology", "pairs", "answered", "entries"]);
    for &kind in ProgramKind::ALL {
        context.step(format!("program {kind}"))?;
        let run = all_pairs(kind, context.seed)?;
        let (pairs, answered) = (run.pairs as f64, run.answered as f64);
        let name = format!("{kind}: pairs of hosts that ping");
        outcome.rows.push(Row::within(name, pairs, answered, "", (pairs, 0.0)));
        let topology = run.topology.into();
        let row = vec![kind.name().into(), topology, pairs.into(), answered.into()];
        table.push(row.into_iter().chain([(run.entries as f64).into()]).collect());
    }
    outcome.tables.push(table);
    outcome.note(
        "The paper lists its interface and its rules without figures; each row is one rule. The \
         entries for index source routing are by construction: they are written one for each \
         address and index. That all pairs ping is what its appendix says of the other fabrics in \
         words. Entries in the table are the most of any switch, over all tables but interfaces.",
    );
    Ok(outcome)
}

/// Results of the pings of all pairs.
struct Pairs {
    topology: &'static str,
    pairs: usize,
    answered: usize,
    /// Entries of the switch that has most.
    entries: u32,
}

/// Topologies, the smallest first.
const TOPOLOGIES: [(&str, &str); 4] = [
    (
        "leaf and spine",
        "listed: {switches: [s1, s2, s3, s4, s5], hosts: {h1: s1, h2: s1, h3: s2, h4: s3}, \
         links: [[s1, s4], [s1, s5], [s2, s4], [s2, s5], [s3, s4], [s3, s5]]}",
    ),
    ("fat tree, k = 4", "fat_tree: {k: 4}"),
    ("BCube, n = 4, k = 1", "bcube: {n: 4, k: 1}"),
    ("DCell, n = 4, k = 1", "dcell: {n: 4, k: 1}"),
];

/// Returns the first of the topologies that the program supports.
fn suitable(kind: ProgramKind) -> Result<(&'static str, Fabric)> {
    let parsed = TOPOLOGIES.iter().map(|&(name, topology)| {
        let text = format!("name: api\ntopology: {{{topology}}}\nprogram: {kind}\n");
        Ok((name, axon_fabric::parse(Path::new("api.yaml"), &text)?))
    });
    let parsed: Vec<Result<_>> = parsed.collect();
    parsed.into_iter().find_map(Result::ok).with_context(|| format!("no topology suits {kind}"))
}

fn all_pairs(kind: ProgramKind, seed: u64) -> Result<Pairs> {
    let (topology, fabric) = suitable(kind)?;
    let mut world = World::new(&fabric, seed);
    if !world.run_until_true(Time::ZERO + LIMIT, World::is_ready) {
        bail!("{kind}: {}", world.unready().unwrap_or_default());
    }
    let hosts = fabric.hosts.len();
    let mut pings = Vec::new();
    for from in 0..hosts {
        for to in (0..hosts).filter(|&to| to != from) {
            let target = world.address(to).context("every host has an address")?;
            pings.push(
                world.ping(from, PingPlan::until_reply(target, RETRY, TRIES)).context("power")?,
            );
        }
    }
    world.run_for(RETRY * u64::from(TRIES + 1));
    let answered = |ping: &_| world.ping_stats(*ping).is_some_and(|stats| stats.received > 0);
    let answered = pings.iter().filter(|ping| answered(ping)).count();
    let entries = |switch| {
        let node = world.nodes().program(switch)?;
        let counts = node.pipeline().tables().counts().into_iter();
        Some(counts.filter(|of| of.table != TableName::Interface).map(|of| of.entries).sum())
    };
    let entries = (0..fabric.switches.len()).filter_map(entries).max().unwrap_or(0);
    Ok(Pairs { topology, pairs: pings.len(), answered, entries })
}
