//! Topologies: nodes and links, with one file per family of generators, and `placing` for the
//! placement of hosts.
//!
//! A generator returns a plan: nodes by index, links in order, no ports yet. `samples` has fabrics
//! with defaults throughout, for tests and benchmarks.

mod bcube;
mod dcell;
mod dragonfly;
mod fat_tree;
mod flattened_butterfly;
mod graph;
mod listed;
mod placing;
mod plan;
mod random;
mod random_links;
mod row;
mod samples;
mod torus;

use crate::error::Problem;
use crate::file::Topology;

pub(crate) use listed::{end, wire_change};
pub use plan::{HOSTS_MAX, SWITCHES_MAX};
pub(crate) use plan::{Plan, PlanEnd, PlanHost, WireChange};
pub use samples::{
    fat_tree, flattened_butterfly, line, random, random_links, ring, ring_with_chords, star, torus,
};

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
