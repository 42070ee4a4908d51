//! Greedy weighted shortest paths. The cost of a link grows with its number of flows.

use super::search::{Bound, Search};
use super::{Flow, Loads, Router, ShortestPaths, Step};
use crate::topology::{Edge, Graph, SwitchIndex};
use alloc::vec::Vec;

/// Weight of a flow on a link, relative to that of an additional link, in [`Weighted::spain`].
const LARGE: u64 = 1 << 20;
/// Maximum number of links that [`Weighted::balanced`] may add to a shortest path.
const DETOUR_MAX: u16 = 2;

/// Gives each flow the path that is cheapest when the flow is placed.
///
/// `Weighted::spain` follows paper 001 §5.5. The weight of a link is its number of flows times a
/// large number, plus one. A flow that has been placed never moves. Paths may have any length, so
/// the first flows in an empty fabric take long detours over empty links.
///
/// `Weighted::balanced` is our own, with three differences:
///
/// - The weight is the square of the number of flows, plus one. The sum of the weights on a path is
///   then the amount that the flow adds to the sum, over all links, of 1² + 2² + ... + flows². A
///   full link counts much more than two half full ones, which keeps the maximum down.
/// - A path is at most two links longer than a shortest one. This bounds the detour of each flow,
///   and also the search, which visits only switches between the two ends.
/// - In rounds, each flow is removed and placed again. It moves if the new path costs less by 1/64,
///   or if it costs less at all and has fewer links. Every move lowers that sum over all links, so
///   the rounds end. This also improves the paths of the first flows, which were placed before the
///   later ones were known.
#[derive(Clone, Debug)]
pub struct Weighted {
    rule: Rule,
    shortest: ShortestPaths,
    search: Search,
    loads: Loads,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    Spain,
    Balanced,
}

impl Rule {
    const fn cost(self, flows: u32) -> u64 {
        let flows = flows as u64;
        match self {
            Rule::Spain => flows * LARGE + 1,
            Rule::Balanced => flows * flows + 1,
        }
    }

    /// Returns the minimum gain of a move, as a divisor of the current cost.
    const fn gain_part(self) -> u64 {
        match self {
            Rule::Spain => 8,
            Rule::Balanced => 64,
        }
    }
}

impl Weighted {
    /// Creates the router that the paper describes.
    pub(crate) fn spain() -> Weighted {
        Weighted::new(Rule::Spain)
    }

    /// Creates the balanced router.
    pub(crate) fn balanced() -> Weighted {
        Weighted::new(Rule::Balanced)
    }

    fn new(rule: Rule) -> Weighted {
        let (shortest, search, loads) = Default::default();
        Weighted { rule, shortest, search, loads }
    }

    fn cost(&self, path: &[Step]) -> u64 {
        path.iter().map(|step| self.rule.cost(self.loads.get(step.switch, step.egress))).sum()
    }
}

impl Router for Weighted {
    fn path(&mut self, graph: &Graph, flow: &Flow, path: &mut Vec<Step>) -> bool {
        let Weighted { rule, shortest, search, loads } = self;
        let row = shortest.row(graph, flow.to);
        let links_max = match rule {
            Rule::Spain => super::distances::UNREACHABLE - 1,
            Rule::Balanced => row[flow.from.index()].saturating_add(DETOUR_MAX),
        };
        let cost = |at: SwitchIndex, edge: &Edge| rule.cost(loads.get(at, edge.egress));
        let ends = (flow.from, flow.to);
        search.cheapest(graph, ends, Bound { row, links_max }, cost, path)
            || shortest.pick(graph, flow.from, flow.to, flow.hash, path)
    }

    fn shortest(&mut self) -> &mut ShortestPaths {
        &mut self.shortest
    }

    fn loads(&mut self) -> Option<&mut Loads> {
        Some(&mut self.loads)
    }

    fn better(
        &mut self,
        graph: &Graph,
        flow: &Flow,
        current: &[Step],
        path: &mut Vec<Step>,
    ) -> bool {
        if !self.path(graph, flow, path) {
            return false;
        }
        let (before, after) = (self.cost(current), self.cost(path));
        let gains = before.saturating_sub(after) >= before / self.rule.gain_part();
        after < before && (gains || path.len() < current.len())
    }

    fn improves(&self) -> bool {
        self.rule == Rule::Balanced
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{all_pairs, improve, place, spread, tell, torus};
    use super::*;

    fn graph() -> Graph {
        let mut graph = Graph::default();
        tell(&mut graph, 1, 40, &torus(4, 10));
        graph
    }

    #[test]
    fn the_second_flow_avoids_the_links_of_the_first_even_by_a_detour() {
        let graph = graph();
        let flow = Flow { from: SwitchIndex(0), to: SwitchIndex(1), hash: 0, towards: 0 };
        let mut router = Weighted::spain();
        let paths = place(&mut router, &graph, &[flow, flow]);
        assert_eq!((paths[0].len(), paths[1].len()), (1, 3));
        assert_eq!(spread(&paths).0, 1);
    }

    #[test]
    fn spain_spreads_better_than_hashing_and_balanced_better_than_spain() {
        let graph = graph();
        let flows = all_pairs(&graph, 4);
        let hashed = spread(&place(&mut ShortestPaths::default(), &graph, &flows));
        let spain = spread(&place(&mut Weighted::spain(), &graph, &flows));
        let mut router = Weighted::balanced();
        let mut paths = place(&mut router, &graph, &flows);
        let mut rounds = 0;
        while improve(&mut router, &graph, &flows, &mut paths) > 0 {
            rounds += 1;
            assert!(rounds < 50, "rounds must come to an end");
        }
        let balanced = spread(&paths);
        assert!(spain.0 < hashed.0, "{spain:?} {hashed:?}");
        assert!(balanced.0 <= spain.0 && balanced.1 < spain.1, "{balanced:?} {spain:?}");
    }

    #[test]
    fn balanced_adds_two_links_at_most() {
        let graph = graph();
        let flow = Flow { from: SwitchIndex(0), to: SwitchIndex(1), hash: 0, towards: 0 };
        let paths = place(&mut Weighted::balanced(), &graph, &[flow; 60]);
        assert!(paths.iter().all(|path| path.len() == 1 || path.len() == 3));
        assert!(paths.iter().any(|path| path.len() == 3));
    }

    #[test]
    fn what_the_books_say_is_what_is_placed() {
        let graph = graph();
        let flows = all_pairs(&graph, 1);
        let mut router = Weighted::balanced();
        let mut paths = place(&mut router, &graph, &flows);
        improve(&mut router, &graph, &flows, &mut paths);
        let mut fresh = Loads::default();
        paths.iter().for_each(|path| fresh.add(path));
        for (step, flows) in fresh.each() {
            assert_eq!(router.loads.get(step.switch, step.egress), flows);
        }
        assert_eq!(router.loads.total(), fresh.total());
    }
}
