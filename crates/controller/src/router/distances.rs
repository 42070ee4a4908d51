//! Shortest paths by the number of links.

use super::Step;
use super::flow::mix;
use crate::topology::{Graph, SwitchIndex};
use alloc::vec::Vec;

/// Maximum length of a path. A route has to fit the 12-bit hop count in the header, with one hop
/// for the host port and one to spare.
const DISTANCE_MAX: u16 = 4_000;
/// Distance of an unreachable switch.
pub(super) const UNREACHABLE: u16 = u16::MAX;

/// Shortest paths by number of links. The hash of the flow chooses among equal ones.
///
/// Each destination has a row with the distance to each switch in links, computed by breadth-first
/// search from the destination. A path follows decreasing distances. If several edges lead nearer,
/// the flow's hash, mixed with the switch's ID, selects one of them. So all shortest paths are
/// used, and a flow's path does not depend on the order in which the switches appeared.
///
/// A row stays valid across a change in the graph that does not affect it. It is correct for a
/// graph if the destination has distance 0, no edge spans a difference of more than 1, and every
/// switch at a finite distance greater than 0 has a neighbour that is nearer by one. No path is
/// then shorter than the distance, and one path is exactly as short. Only the switches whose edges
/// changed can violate that, so only they are checked. On a torus most rows survive most failures.
#[derive(Clone, Debug, Default)]
pub struct ShortestPaths {
    rows: Vec<Row>,
    queue: Vec<SwitchIndex>,
    /// Number of rows that were computed by a search.
    pub searches: u64,
    /// Number of old rows that were found to be still correct.
    pub kept: u64,
}

#[derive(Clone, Debug, Default)]
struct Row {
    generation: u64,
    /// Distances of the switches. The list is empty until it is first used.
    distance: Vec<u16>,
}

impl ShortestPaths {
    /// Updates the row for the destination `to` to match this graph.
    fn refresh(&mut self, graph: &Graph, to: SwitchIndex) {
        if self.rows.len() < graph.len() {
            self.rows.resize(graph.len(), Row::default());
        }
        let row = &mut self.rows[to.index()];
        if row.generation == graph.generation() && row.distance.len() == graph.len() {
            return;
        }
        let fresh = row.distance.is_empty();
        row.distance.resize(graph.len(), UNREACHABLE);
        let stands = !fresh
            && graph.touched_since(row.generation).is_some_and(|mut touched| {
                touched.all(|switch| consistent(graph, &row.distance, switch))
            });
        row.generation = graph.generation();
        if stands {
            self.kept += 1;
        } else {
            self.searches += 1;
            search(graph, to, &mut row.distance, &mut self.queue);
        }
    }
}

/// Returns whether the distance of one switch is consistent with those of its neighbours.
fn consistent(graph: &Graph, distance: &[u16], switch: SwitchIndex) -> bool {
    let here = distance[switch.index()];
    let mut nearer = false;
    for edge in graph.edges(switch) {
        let there = distance[edge.to.index()];
        if here.abs_diff(there) > 1 {
            return false;
        }
        nearer |= there < here;
    }
    nearer || here == 0 || here == UNREACHABLE
}

fn search(graph: &Graph, to: SwitchIndex, distance: &mut [u16], queue: &mut Vec<SwitchIndex>) {
    distance.fill(UNREACHABLE);
    distance[to.index()] = 0;
    queue.clear();
    queue.push(to);
    let mut next = 0;
    while let Some(&switch) = queue.get(next) {
        next += 1;
        let farther = distance[switch.index()] + 1;
        if farther > DISTANCE_MAX {
            break;
        }
        for edge in graph.edges(switch) {
            let there = &mut distance[edge.to.index()];
            if *there == UNREACHABLE {
                *there = farther;
                queue.push(edge.to);
            }
        }
    }
}

impl ShortestPaths {
    /// Replaces `distance` with the number of links from each switch to `to`. It is `UNREACHABLE`
    /// for a switch without a path.
    pub(crate) fn distances(&mut self, graph: &Graph, to: SwitchIndex, distance: &mut Vec<u16>) {
        self.refresh(graph, to);
        distance.clear();
        distance.extend_from_slice(&self.rows[to.index()].distance);
    }

    /// Replaces `path` with the links on a shortest path, which `hash` selects. There are none if
    /// the two ends are the same. Returns whether there is a path. If there is none, leaves `path`
    /// empty.
    pub fn pick(
        &mut self,
        graph: &Graph,
        from: SwitchIndex,
        to: SwitchIndex,
        hash: u64,
        path: &mut Vec<Step>,
    ) -> bool {
        path.clear();
        self.refresh(graph, to);
        let distance = &self.rows[to.index()].distance;
        let mut left = distance[from.index()];
        if left == UNREACHABLE {
            return false;
        }
        let mut at = from;
        while left > 0 {
            left -= 1;
            let edges = graph.edges(at);
            let down = || edges.iter().filter(|edge| distance[edge.to.index()] == left);
            let choices = down().count() as u64;
            let pick = if choices > 1 {
                let random = mix(hash ^ graph.switch(at).incarnation.node.0.rotate_left(32)) >> 32;
                ((random * choices) >> 32) as usize
            } else {
                0
            };
            let Some(edge) = down().nth(pick) else {
                debug_assert!(false, "a row always leads down");
                path.clear();
                return false;
            };
            path.push(Step { switch: at, egress: edge.egress });
            at = edge.to;
        }
        true
    }

    /// Returns the number of links on a shortest path from `from` to `to`, if there is one.
    pub(crate) fn distance(
        &mut self,
        graph: &Graph,
        from: SwitchIndex,
        to: SwitchIndex,
    ) -> Option<usize> {
        let distance = self.row(graph, to)[from.index()];
        (distance != UNREACHABLE).then_some(usize::from(distance))
    }

    /// Returns the number of links from each switch to `to`. It is [`UNREACHABLE`] for a switch
    /// without a path.
    pub(super) fn row(&mut self, graph: &Graph, to: SwitchIndex) -> &[u16] {
        self.refresh(graph, to);
        &self.rows[to.index()].distance
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ring, tell};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_path_is_shortest_and_none_is_none() {
        let mut graph = Graph::default();
        tell(&mut graph, 1, 6, &ring(5));
        let mut router = ShortestPaths::default();
        let mut path = Vec::new();
        let (s, t) = (SwitchIndex(0), SwitchIndex(2));
        assert!(router.pick(&graph, s, t, 7, &mut path));
        let ports: Vec<u16> = path.iter().map(|step| step.egress.0).collect();
        assert_eq!(ports, [1, 2]);
        assert!(router.pick(&graph, s, s, 7, &mut path) && path.is_empty());
        assert!(!router.pick(&graph, s, SwitchIndex(5), 7, &mut path) && path.is_empty());
    }

    #[test]
    fn a_row_that_a_failure_does_not_touch_is_kept() {
        let mut graph = Graph::default();
        let mut pairs = ring(8);
        pairs.extend([(0, 2), (0, 3)]);
        tell(&mut graph, 1, 8, &pairs);
        let mut router = ShortestPaths::default();
        for to in 0..8 {
            router.distance(&graph, SwitchIndex(0), SwitchIndex(to));
        }
        tell(&mut graph, 2, 8, &pairs[..9]);
        for to in 0..8 {
            router.distance(&graph, SwitchIndex(0), SwitchIndex(to));
        }
        assert_eq!(router.searches + router.kept, 16);
        assert!(router.kept >= 2, "{router:?}");
    }

    proptest! {
        #[test]
        fn rows_kept_through_changes_are_those_of_a_fresh_search(
            graphs in prop::collection::vec(
                prop::collection::btree_set((0..9_u64, 0..9_u64), 0..16), 1..8),
        ) {
            let mut graph = Graph::default();
            let mut router = ShortestPaths::default();
            for (version, pairs) in graphs.iter().enumerate() {
                let pairs: Vec<_> = pairs.iter().copied().filter(|(a, b)| a < b).collect();
                tell(&mut graph, version as u64, 9, &pairs);
                let mut fresh = ShortestPaths::default();
                for (from, to) in (0..81).map(|n| (SwitchIndex(n / 9), SwitchIndex(n % 9))) {
                    let distance = router.distance(&graph, from, to);
                    prop_assert_eq!(distance, fresh.distance(&graph, from, to));
                    let mut path = Vec::new();
                    let found = router.pick(&graph, from, to, 3, &mut path);
                    prop_assert_eq!(found.then_some(path.len()), distance);
                }
            }
        }
    }
}
