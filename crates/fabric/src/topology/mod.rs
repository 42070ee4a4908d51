//! Topologies: nodes and links, with one file per family of generators, and `placing` for the
//! placement of hosts.
//!
//! A generator returns a plan: nodes by index, links in order, no ports yet.

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
mod torus;

use crate::error::Problem;
use crate::file::Topology;

pub(crate) use listed::end;
pub use plan::{HOSTS_MAX, SWITCHES_MAX};
pub(crate) use plan::{Plan, PlanEnd, PlanHost};

/// Expands a topology; `seed` is the fabric's.
pub(crate) fn expand(topology: &Topology, seed: u64) -> Result<Plan, Problem> {
    let (key, plan) = match topology {
        Topology::Line(row) => ("topology.line", row::line(row, seed)),
        Topology::Ring(row) => ("topology.ring", row::ring(row, seed)),
        Topology::Star(row) => ("topology.star", row::star(row, seed)),
        Topology::Torus(torus) => ("topology.torus", torus::plan(torus, seed)),
        Topology::FatTree(tree) => ("topology.fat_tree", fat_tree::plan(tree, seed)),
        Topology::FlattenedButterfly(flat) => {
            ("topology.flattened_butterfly", flattened_butterfly::plan(flat, seed))
        }
        Topology::Dragonfly(dragonfly) => ("topology.dragonfly", dragonfly::plan(dragonfly, seed)),
        Topology::Bcube(bcube) => ("topology.bcube", bcube::plan(bcube, seed)),
        Topology::Dcell(dcell) => ("topology.dcell", dcell::plan(dcell, seed)),
        Topology::Random(random) => ("topology.random", random::plan(random, seed)),
        Topology::RandomLinks(random) => {
            ("topology.random_links", random_links::plan(random, seed))
        }
        Topology::Graph(graph) => ("topology.graph", graph::plan(graph, seed)),
        Topology::Listed(listed) => ("topology.listed", listed::plan(listed)),
    };
    Ok(Plan { key, ..plan? })
}
