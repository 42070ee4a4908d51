//! Shortest paths with fixed tie-breaking, as in textbooks and in the papers' simulators.

use super::{Flow, Router, ShortestPaths, Step};
use crate::topology::{Graph, SwitchIndex};
use alloc::vec::Vec;
use axon_wire::PortNo;

/// One tree of shortest paths from every switch, with ties broken by switch ID.
///
/// Runs a breadth-first search from the source. The neighbours of a switch are visited in order of
/// ID, and among equally near predecessors the last one found is kept (like Dijkstra's algorithm
/// with replacement of equal labels). The flow's hash is not used, so all flows between two
/// switches share one path, and all paths are biased in the same direction. On a torus, some rings
/// get half as much load again as others. This router serves for comparison, because paper 001 §5.5
/// seems to have used such paths.
#[derive(Clone, Debug, Default)]
pub struct FixedTies {
    trees: Vec<Tree>,
    shortest: ShortestPaths,
}

#[derive(Clone, Debug, Default)]
struct Tree {
    generation: u64,
    /// Last link on the path to each switch, and the distance in links. `None` if there is no path.
    last: Vec<Option<(Step, u16)>>,
}

impl Tree {
    fn grow(&mut self, graph: &Graph, root: SwitchIndex) {
        self.last.clear();
        self.last.resize(graph.len(), None);
        let mut queue = Vec::from([root]);
        let mut next = 0;
        let distance = |last: &[Option<(Step, u16)>], at: SwitchIndex| {
            if at == root { Some(0) } else { last[at.index()].map(|(_, links)| links) }
        };
        while let Some(&at) = queue.get(next) {
            next += 1;
            let Some(here) = distance(&self.last, at) else { continue };
            let mut edges: Vec<_> = graph.edges(at).to_vec();
            edges.sort_by_key(|edge| (graph.switch(edge.to).incarnation.node, edge.egress));
            for edge in edges {
                let before = distance(&self.last, edge.to);
                if before.is_some_and(|before| before != here + 1) {
                    continue;
                }
                let step = Step { switch: at, egress: edge.egress };
                self.last[edge.to.index()] = Some((step, here + 1));
                if before.is_none() {
                    queue.push(edge.to);
                }
            }
        }
        self.generation = graph.generation();
    }
}

impl Router for FixedTies {
    fn path(&mut self, graph: &Graph, flow: &Flow, path: &mut Vec<Step>) -> bool {
        path.clear();
        if self.trees.len() < graph.len() {
            self.trees.resize(graph.len(), Tree::default());
        }
        let tree = &mut self.trees[flow.from.index()];
        if tree.generation != graph.generation() || tree.last.len() != graph.len() {
            tree.grow(graph, flow.from);
        }
        let mut at = flow.to;
        while at != flow.from {
            let Some((step, _)) = tree.last[at.index()] else {
                path.clear();
                return false;
            };
            path.push(Step { switch: step.switch, egress: PortNo(step.egress.0) });
            at = step.switch;
        }
        path.reverse();
        true
    }

    fn shortest(&mut self) -> &mut ShortestPaths {
        &mut self.shortest
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{all_pairs, check, tell, torus};
    use super::*;

    #[test]
    fn paths_are_shortest_and_those_of_one_source_form_a_tree() {
        let mut graph = Graph::default();
        tell(&mut graph, 1, 20, &torus(4, 5));
        let mut router = FixedTies::default();
        let mut last = alloc::collections::BTreeMap::new();
        for flow in all_pairs(&graph, 1) {
            let mut path = Vec::new();
            assert!(router.path(&graph, &flow, &mut path));
            check(&graph, &flow, &path);
            let distance = router.shortest().distance(&graph, flow.from, flow.to);
            assert_eq!(distance, Some(path.len()));
            // All paths through a switch reach it over the same link.
            for pair in path.windows(2) {
                let known = last.entry((flow.from, pair[1].switch)).or_insert(pair[0]);
                assert_eq!(*known, pair[0]);
            }
        }
    }
}
