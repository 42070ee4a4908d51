//! Cheapest paths for integer link costs, which the router provides.

use super::Step;
use super::distances::UNREACHABLE;
use crate::topology::{Edge, Graph, SwitchIndex};
use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use axon_wire::PortNo;
use core::cmp::Reverse;

/// Search for cheapest paths, with memory reused between searches.
///
/// Runs Dijkstra's algorithm (Numerische Mathematik 1, 1959) with a heap, starting at one switch
/// until the other is reached. Ties go to the path with fewer links, then to the lower index, so
/// that the result depends only on the graph and the costs.
///
/// The search may be bounded. A row then has the distance in links from each switch to the end, and
/// the search follows only switches that can reach the end with a total of `links_max` links. Most
/// of a large graph is then never visited. With costs that favour detours, the bound can hide a
/// path, because a switch stores only its cheapest path, which may have used up the links. The
/// caller then falls back to a shortest path.
#[derive(Clone, Debug, Default)]
pub struct Search {
    reached: Vec<Reached>,
    heap: BinaryHeap<Reverse<(u64, u16, SwitchIndex)>>,
    round: u32,
}

#[derive(Clone, Copy, Debug)]
struct Reached {
    /// Number of the current search, which marks the valid entries.
    round: u32,
    links: u16,
    cost: u64,
    from: SwitchIndex,
    egress: PortNo,
}

const NEVER: Reached =
    Reached { round: 0, links: 0, cost: 0, from: SwitchIndex(0), egress: PortNo(0) };

/// Bound on the length of the path in a search.
#[derive(Clone, Copy, Debug)]
pub struct Bound<'a> {
    /// Number of links on a shortest path from each switch to the end.
    pub row: &'a [u16],
    /// Maximum number of links on the path.
    pub links_max: u16,
}

impl Search {
    /// Replaces `path` with the cheapest path within the bound. Returns whether there is one. If
    /// there is none, leaves `path` empty. The cost of a path should fit in 64 bits, and costs are
    /// added with saturation.
    pub(crate) fn cheapest(
        &mut self,
        graph: &Graph,
        (from, to): (SwitchIndex, SwitchIndex),
        bound: Bound<'_>,
        cost: impl Fn(SwitchIndex, &Edge) -> u64,
        path: &mut Vec<Step>,
    ) -> bool {
        path.clear();
        if bound.row.get(from.index()).is_none_or(|&links| links == UNREACHABLE) {
            return false;
        }
        self.begin(graph.len(), from);
        while let Some(Reverse((cost_here, links_here, here))) = self.heap.pop() {
            if here == to {
                self.walk_back(from, to, path);
                return true;
            }
            let now = &self.reached[here.index()];
            if (now.cost, now.links) != (cost_here, links_here) {
                continue;
            }
            let links = links_here + 1;
            for edge in graph.edges(here) {
                let left = bound.row[edge.to.index()];
                if left.saturating_add(links) > bound.links_max {
                    continue;
                }
                let cost = cost_here.saturating_add(cost(here, edge));
                let there = &mut self.reached[edge.to.index()];
                if there.round != self.round || (cost, links) < (there.cost, there.links) {
                    let (round, egress) = (self.round, edge.egress);
                    *there = Reached { round, links, cost, from: here, egress };
                    self.heap.push(Reverse((cost, links, edge.to)));
                }
            }
        }
        false
    }

    fn begin(&mut self, switches: usize, from: SwitchIndex) {
        self.round = self.round.wrapping_add(1);
        if self.round == 0 || self.reached.len() != switches {
            self.reached.clear();
            self.reached.resize(switches, NEVER);
            self.round = 1;
        }
        self.heap.clear();
        self.reached[from.index()] = Reached { round: self.round, ..NEVER };
        self.heap.push(Reverse((0, 0, from)));
    }

    fn walk_back(&self, from: SwitchIndex, to: SwitchIndex, path: &mut Vec<Step>) {
        let mut at = to;
        while at != from {
            let reached = &self.reached[at.index()];
            path.push(Step { switch: reached.from, egress: reached.egress });
            at = reached.from;
        }
        path.reverse();
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ring, tell, torus};
    use super::super::{Flow, ShortestPaths, testing};
    use super::*;
    use proptest::prelude::*;

    fn graph(count: u64, pairs: &[(u64, u64)]) -> Graph {
        let mut graph = Graph::default();
        tell(&mut graph, 1, count, pairs);
        graph
    }

    #[test]
    fn the_cheap_way_round_is_taken_as_far_as_the_bound_allows() {
        let graph = graph(6, &ring(6));
        let (from, to) = (SwitchIndex(0), SwitchIndex(1));
        let cost = |at: SwitchIndex, edge: &Edge| {
            if at.0.min(edge.to.0) == 0 && at.0.max(edge.to.0) == 1 { 100 } else { 1 }
        };
        let mut shortest = ShortestPaths::default();
        let row = shortest.row(&graph, to);
        let (mut search, mut path) = (Search::default(), Vec::new());
        for (links_max, links) in [(5, 5), (4, 1)] {
            let bound = Bound { row, links_max };
            assert!(search.cheapest(&graph, (from, to), bound, cost, &mut path));
            assert_eq!(path.len(), links);
        }
        let bound = Bound { row, links_max: 0 };
        assert!(!search.cheapest(&graph, (from, to), bound, cost, &mut path));
        assert!(search.cheapest(&graph, (to, to), bound, cost, &mut path) && path.is_empty());
    }

    /// Runs the Bellman-Ford algorithm, for comparison.
    fn least(graph: &Graph, from: SwitchIndex, cost: impl Fn(&Edge) -> u64) -> Vec<u64> {
        let mut least = alloc::vec![u64::MAX; graph.len()];
        least[from.index()] = 0;
        for _ in 0..graph.len() {
            for at in 0..graph.len() {
                for edge in graph.edges(SwitchIndex(at as u32)) {
                    let there = least[at].saturating_add(cost(edge));
                    least[edge.to.index()] = least[edge.to.index()].min(there);
                }
            }
        }
        least
    }

    proptest! {
        #[test]
        fn nothing_is_cheaper_than_what_an_unbounded_search_finds(
            costs in prop::collection::vec(0..50_u64, 64),
            from in 0..12_u32,
            to in 0..12_u32,
        ) {
            let graph = graph(12, &torus(3, 4));
            let cost = |edge: &Edge| costs[(edge.egress.index() * 5 + edge.to.index()) % 64];
            let (from, to) = (SwitchIndex(from), SwitchIndex(to));
            let mut shortest = ShortestPaths::default();
            let bound = Bound { row: shortest.row(&graph, to), links_max: u16::MAX - 1 };
            let (mut search, mut path) = (Search::default(), Vec::new());
            prop_assert!(search.cheapest(&graph, (from, to), bound, |_, e| cost(e), &mut path));
            testing::check(&graph, &Flow { from, to, hash: 0, towards: 0 }, &path);
            let found: u64 = path
                .iter()
                .map(|step| {
                    let edges = graph.edges(step.switch);
                    cost(edges.iter().find(|edge| edge.egress == step.egress).unwrap())
                })
                .sum();
            prop_assert_eq!(found, least(&graph, from, cost)[to.index()]);
        }
    }
}
