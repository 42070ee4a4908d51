//! Which nodes there are and what is linked to what: one file per family of generators, and
//! `placing` for where their hosts are.
//!
//! A generator answers with a plan: nodes by index, links in order, no ports yet. The
//! free functions here give whole fabrics with every default, for tests and benchmarks.

mod bcube;
mod dcell;
mod dragonfly;
mod fat_tree;
mod flattened_butterfly;
mod graph;
mod listed;
mod placing;
mod random;
mod random_links;
mod row;
mod torus;

use crate::error::Problem;
use crate::file::{self, File, Topology};
use crate::model::Fabric;
use axon_wire::{MacAddr, PortNo, Rate, Span};
use std::net::Ipv4Addr;

pub(crate) use listed::{end, wire_change};

/// Switches that a fabric has at most.
pub const SWITCHES_MAX: usize = 10_000;
/// Hosts that a fabric has at most.
pub const HOSTS_MAX: usize = 100_000;

/// A topology before its ports are numbered.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// Names of the switches, in order.
    pub switches: Vec<String>,
    pub hosts: Vec<PlanHost>,
    pub links: Vec<PlanLink>,
}

/// A host to be.
#[derive(Debug)]
pub(crate) struct PlanHost {
    pub name: String,
    pub at: PlanEnd,
    pub ip: Option<Ipv4Addr>,
    pub mac: Option<MacAddr>,
    pub wire: WireChange,
    /// The key that asked for it.
    pub key: String,
}

/// A link to be.
#[derive(Debug)]
pub(crate) struct PlanLink {
    pub ends: [PlanEnd; 2],
    pub wire: WireChange,
    /// The key that asked for it.
    pub key: String,
}

/// A switch by index, with a port if one was asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlanEnd {
    pub switch: usize,
    pub port: Option<PortNo>,
}

/// Where one link differs from the others.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WireChange {
    pub rate: Option<Rate>,
    pub latency: Option<Span>,
    pub loss_ppm: Option<u32>,
    pub bit_errors_per_1e15: Option<u64>,
}

/// Expands a topology; `seed` is the fabric's.
pub(crate) fn expand(topology: &Topology, seed: u64) -> Result<Plan, Problem> {
    match topology {
        Topology::Line(row) => row::line(row, seed),
        Topology::Ring(row) => row::ring(row, seed),
        Topology::Star(row) => row::star(row, seed),
        Topology::Torus(torus) => torus::plan(torus, seed),
        Topology::FatTree(tree) => fat_tree::plan(tree, seed),
        Topology::FlattenedButterfly(flat) => flattened_butterfly::plan(flat, seed),
        Topology::Dragonfly(dragonfly) => dragonfly::plan(dragonfly, seed),
        Topology::Bcube(bcube) => bcube::plan(bcube, seed),
        Topology::Dcell(dcell) => dcell::plan(dcell, seed),
        Topology::Random(random) => random::plan(random, seed),
        Topology::RandomLinks(random) => random_links::plan(random, seed),
        Topology::Graph(graph) => graph::plan(graph, seed),
        Topology::Listed(listed) => listed::plan(listed),
    }
}

impl Plan {
    /// `switches` switches without links, `s1` first; `key` names who asked.
    fn with_switches(key: &str, switches: usize, least: usize) -> Result<Plan, Problem> {
        in_range(key, switches, least, SWITCHES_MAX)?;
        Ok(Plan {
            switches: (1..=switches).map(|number| format!("s{number}")).collect(),
            ..Plan::default()
        })
    }

    fn link(&mut self, key: &str, a: usize, b: usize) {
        self.links.push(PlanLink {
            ends: [a, b].map(|switch| PlanEnd { switch, port: None }),
            wire: WireChange::default(),
            key: key.into(),
        });
    }
}

/// Refuses a number outside `least..=most`.
fn in_range(key: &str, number: usize, least: usize, most: usize) -> Result<(), Problem> {
    if (least..=most).contains(&number) {
        return Ok(());
    }
    let expected = format!("{least} to {most}");
    Err(Problem::new(key, format!("{number} is out of range"), expected))
}

/// Refuses a fabric of more switches than there may be.
fn not_too_many(key: &str, switches: usize) -> Result<(), Problem> {
    if switches <= SWITCHES_MAX {
        return Ok(());
    }
    let what = match switches {
        usize::MAX => "it would have more switches than can be counted".into(),
        _ => format!("it would have {switches} switches"),
    };
    Err(Problem::new(key, what, format!("at most {SWITCHES_MAX}")))
}

fn with_defaults(name: &str, topology: Topology) -> Fabric {
    match crate::build(&File::new(name, topology)) {
        Ok(fabric) => fabric,
        Err(problem) => panic!("{problem}"),
    }
}

fn row(switches: usize, hosts_per_switch: usize) -> file::Row {
    file::Row { switches, hosts_per_switch: Some(hosts_per_switch), hosts: None }
}

/// A line of switches with every default.
///
/// # Panics
/// Like its fellows below, on sizes that a fabric file could not have: for tests and
/// benchmarks, not for input.
pub fn line(switches: usize, hosts_per_switch: usize) -> Fabric {
    with_defaults("line", Topology::Line(row(switches, hosts_per_switch)))
}

/// A ring of switches with every default. Panics like [`line()`].
pub fn ring(switches: usize, hosts_per_switch: usize) -> Fabric {
    with_defaults("ring", Topology::Ring(row(switches, hosts_per_switch)))
}

/// A star around `s1` with every default. Panics like [`line()`].
pub fn star(switches: usize, hosts_per_switch: usize) -> Fabric {
    with_defaults("star", Topology::Star(row(switches, hosts_per_switch)))
}

/// A torus with every default. Panics like [`line()`].
pub fn torus(rows: usize, cols: usize, hosts_per_switch: usize) -> Fabric {
    let hosts_per_switch = Some(hosts_per_switch);
    let torus = file::Torus { rows, cols, hosts_per_switch, hosts: None };
    with_defaults("torus", Topology::Torus(torus))
}

/// A fat tree of `k`-port switches with every default. Panics like [`line()`].
pub fn fat_tree(k: usize) -> Fabric {
    let tree = file::FatTree { k, hosts_per_edge: None, hosts: None };
    with_defaults("fat-tree", Topology::FatTree(tree))
}

/// A flattened butterfly, k hosts at each switch, with every default. Panics like [`line()`].
pub fn flattened_butterfly(k: usize, n: usize) -> Fabric {
    let flat = file::FlattenedButterfly { k, n, hosts_per_switch: None, hosts: None };
    with_defaults("flattened-butterfly", Topology::FlattenedButterfly(flat))
}

/// A connected random graph with every default. Panics like [`line()`].
pub fn random(switches: usize, degree: usize, hosts_per_switch: usize, seed: u64) -> Fabric {
    let hosts_per_switch = Some(hosts_per_switch);
    let seed = Some(seed);
    let random = file::Random { switches, degree, hosts_per_switch, hosts: None, seed };
    with_defaults("random", Topology::Random(random))
}

/// A random graph as paper 001 builds it, with every default. Panics like [`line()`].
pub fn random_links(
    switches: usize,
    average_degree: usize,
    hosts_per_switch: usize,
    seed: u64,
) -> Fabric {
    let random = file::RandomLinks {
        switches,
        average_degree,
        hosts_per_switch: Some(hosts_per_switch),
        hosts: None,
        seed: Some(seed),
    };
    with_defaults("random-links", Topology::RandomLinks(random))
}
