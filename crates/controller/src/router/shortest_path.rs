//! Router `shortest_path`: one shortest path per flow, chosen among equal ones by the flow's hash.

use super::{Flow, Router, ShortestPaths, Step};
use crate::topology::Graph;
use alloc::vec::Vec;

impl Router for ShortestPaths {
    fn path(&mut self, graph: &Graph, flow: &Flow, path: &mut Vec<Step>) -> bool {
        self.pick(graph, flow.from, flow.to, flow.hash, path)
    }

    fn shortest(&mut self) -> &mut ShortestPaths {
        self
    }
}
