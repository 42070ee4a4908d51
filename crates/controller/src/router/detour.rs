//! Paths for backup routes, as disjoint from the primary path as the graph allows.

use super::flow::mix;
use super::{Flow, Router, Step};
use crate::topology::{Edge, Graph, SwitchIndex};
use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use axon_wire::PortNo;
use core::cmp::Reverse;

/// Phase of a path that has not gone down yet and may go up.
const CLIMBING: usize = 0;
/// Phase of a path that has gone down and may not go up again.
const DESCENDING: usize = 1;

/// Cost of a link. It exceeds the total jitter of a path.
const LINK: u64 = 1 << 12;
/// Cost of a switch on the primary path. It exceeds the cost of all links on a path.
const SHARED_SWITCH: u64 = 1 << 28;
/// Cost of a link on the primary path, in either direction. It exceeds the cost of all switches on
/// a path.
const SHARED_LINK: u64 = 1 << 44;
/// Maximum jitter of a link's cost. It depends on the flow's hash, so that the backups of many
/// flows use different paths.
const JITTER: u64 = 1 << 4;

/// Search for backup paths, with memory reused between searches.
///
/// Runs Dijkstra's algorithm (Numerische Mathematik 1, 1959) from one end to the other. The
/// cheapest path shares the fewest links with the primary path. Among such paths, it shares the
/// fewest switches between the two ends, and among these it is the shortest. If the graph has a
/// path that shares no link with the primary path, the result is such a path.
///
/// The path satisfies the router's rule that a path which has gone down in its order never goes up
/// again ([`Router::climbs`]). So each switch has a state in each of two phases. A path of least
/// cost never visits a switch twice, because the part between the two visits could be left out.
///
/// Usually, a shortest path avoids the whole primary path. So the first search uses the distances
/// from the other end to exclude every switch that is on no such path. If it fails, a full search
/// follows. No path as cheap as the result is excluded, so the result is the same as that of the
/// full search.
#[derive(Clone, Debug, Default)]
pub struct Detour {
    reached: Vec<[Reached; 2]>,
    heap: BinaryHeap<Reverse<(u64, SwitchIndex, usize)>>,
    round: u32,
    /// Both ends of each link on the primary path.
    ends: Vec<(SwitchIndex, PortNo)>,
    /// Minimum number of links from each switch to the end of the path.
    distance: Vec<u16>,
}

#[derive(Clone, Copy, Debug)]
struct Reached {
    /// Number of the current search, which marks the valid entries.
    round: u32,
    cost: u64,
    from: (SwitchIndex, usize),
    egress: PortNo,
}

const NEVER: Reached =
    Reached { round: 0, cost: 0, from: (SwitchIndex(0), CLIMBING), egress: PortNo(0) };

impl Detour {
    /// Replaces `path` with the best backup of `primary`, the current path of `flow`. Returns
    /// whether there is a backup that avoids at least one link of the primary path. Otherwise,
    /// leaves `path` empty.
    pub(crate) fn find(
        &mut self,
        graph: &Graph,
        flow: &Flow,
        primary: &[Step],
        router: &mut dyn Router,
        path: &mut Vec<Step>,
    ) -> bool {
        path.clear();
        if primary.is_empty() {
            return false;
        }
        router.shortest().distances(graph, flow.to, &mut self.distance);
        let links = u64::from(self.distance[flow.from.index()]);
        let nothing_shared = links * (LINK + JITTER - 1);
        if !self.search(graph, flow, primary, (router, nothing_shared), path) {
            self.search(graph, flow, primary, (router, u64::MAX), path);
        }
        if primary.iter().all(|step| path.contains(step)) {
            path.clear();
        }
        !path.is_empty()
    }

    /// Appends the path of least cost if its cost is at most `most`. Returns whether it is.
    fn search(
        &mut self,
        graph: &Graph,
        flow: &Flow,
        primary: &[Step],
        (router, most): (&mut dyn Router, u64),
        path: &mut Vec<Step>,
    ) -> bool {
        self.begin(graph, flow.from, primary);
        while let Some(Reverse((cost_here, here, phase))) = self.heap.pop() {
            if here == flow.to {
                self.walk_back(flow.from, (here, phase), path);
                return true;
            }
            if self.reached[here.index()][phase].cost != cost_here {
                continue;
            }
            for edge in graph.edges(here) {
                let left = u64::from(self.distance[edge.to.index()]) * LINK;
                if cost_here + LINK + left > most {
                    continue;
                }
                let climbs = router.climbs(graph, here, edge.to);
                if climbs && phase == DESCENDING {
                    continue;
                }
                let after = if climbs { phase } else { DESCENDING };
                let cost = cost_here + self.cost(flow, primary, here, edge);
                let there = &mut self.reached[edge.to.index()][after];
                if cost + left <= most && (there.round != self.round || cost < there.cost) {
                    let (round, egress) = (self.round, edge.egress);
                    *there = Reached { round, cost, from: (here, phase), egress };
                    self.heap.push(Reverse((cost, edge.to, after)));
                }
            }
        }
        false
    }

    fn begin(&mut self, graph: &Graph, from: SwitchIndex, primary: &[Step]) {
        self.round = self.round.wrapping_add(1);
        if self.round == 0 || self.reached.len() != graph.len() {
            self.reached.clear();
            self.reached.resize(graph.len(), [NEVER; 2]);
            self.round = 1;
        }
        self.ends.clear();
        for step in primary {
            self.ends.push((step.switch, step.egress));
            let far = graph.edge(step.switch, step.egress);
            self.ends.extend(far.map(|edge| (edge.to, edge.ingress)));
        }
        self.heap.clear();
        self.reached[from.index()][CLIMBING] = Reached { round: self.round, ..NEVER };
        self.heap.push(Reverse((0, from, CLIMBING)));
    }

    fn cost(&self, flow: &Flow, primary: &[Step], here: SwitchIndex, edge: &Edge) -> u64 {
        let link = (u64::from(here.0) << 16) ^ u64::from(edge.egress.0);
        let mut cost = LINK + mix(flow.hash ^ mix(link)) % JITTER;
        if self.ends.contains(&(here, edge.egress)) {
            cost += SHARED_LINK;
        }
        if primary.iter().skip(1).any(|step| step.switch == edge.to) {
            cost += SHARED_SWITCH;
        }
        cost
    }

    fn walk_back(&self, from: SwitchIndex, to: (SwitchIndex, usize), path: &mut Vec<Step>) {
        let (mut at, mut phase) = to;
        while at != from {
            let reached = &self.reached[at.index()][phase];
            path.push(Step { switch: reached.from.0, egress: reached.egress });
            (at, phase) = reached.from;
        }
        path.reverse();
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{all_pairs, check, connected, place, ring, tell, torus};
    use super::super::{Layered, ShortestPaths, UpDown};
    use super::*;
    use alloc::collections::BTreeSet;
    use axon_prove::{Dependencies, Verdict};
    use axon_wire::Priority;
    use proptest::prelude::*;

    fn graph(count: u64, pairs: &[(u64, u64)]) -> Graph {
        let mut graph = Graph::default();
        tell(&mut graph, 1, count, pairs);
        graph
    }

    /// Returns the links on a path, regardless of their direction.
    fn links(graph: &Graph, path: &[Step]) -> BTreeSet<(SwitchIndex, SwitchIndex)> {
        let ends = |step: &Step| {
            let to = graph.edge(step.switch, step.egress).expect("a link").to;
            (step.switch.min(to), step.switch.max(to))
        };
        path.iter().map(ends).collect()
    }

    /// Returns whether a graph without these links still connects two switches. The search is
    /// independent of the code under test.
    fn joined(
        graph: &Graph,
        without: &BTreeSet<(SwitchIndex, SwitchIndex)>,
        from: SwitchIndex,
        to: SwitchIndex,
    ) -> bool {
        let (mut seen, mut next) = (BTreeSet::from([from]), alloc::vec![from]);
        while let Some(here) = next.pop() {
            for edge in graph.edges(here) {
                let link = (here.min(edge.to), here.max(edge.to));
                if !without.contains(&link) && seen.insert(edge.to) {
                    next.push(edge.to);
                }
            }
        }
        seen.contains(&to)
    }

    /// Returns the result of a search that excludes no switch.
    fn whole_search(
        detour: &mut Detour,
        graph: &Graph,
        (flow, primary): (&Flow, &[Step]),
        router: &mut dyn Router,
    ) -> Vec<Step> {
        let mut path = Vec::new();
        detour.search(graph, flow, primary, (router, u64::MAX), &mut path);
        path
    }

    #[test]
    fn the_backup_of_a_ring_is_the_other_way_round_and_a_line_has_none() {
        let graph = graph(5, &ring(5));
        let flow = all_pairs(&graph, 1)[0];
        let mut router = ShortestPaths::default();
        let mut primary = Vec::new();
        assert!(router.path(&graph, &flow, &mut primary));
        let (mut detour, mut path) = (Detour::default(), Vec::new());
        assert!(detour.find(&graph, &flow, &primary, &mut router, &mut path));
        check(&graph, &flow, &path);
        assert_eq!(path.len(), 5 - primary.len());
        let line = self::graph(3, &[(0, 1), (1, 2)]);
        for flow in all_pairs(&line, 1) {
            assert!(router.path(&line, &flow, &mut primary));
            assert!(!detour.find(&line, &flow, &primary, &mut router, &mut path));
        }
    }

    #[test]
    fn of_two_disjoint_backups_the_one_past_other_switches_is_taken_though_it_is_longer() {
        // The primary path is 0-1-2. The path 0-3-1-4-2 shares switch 1 with it, and 0-5-6-7-8-2
        // shares none.
        let pairs = [(0, 1), (1, 2), (0, 3), (3, 1), (1, 4), (4, 2)];
        let far = [(0, 5), (5, 6), (6, 7), (7, 8), (8, 2)];
        let (near, both) = (graph(9, &pairs), graph(9, &[&pairs[..], &far[..]].concat()));
        for (graph, wanted) in [(near, 4), (both, 5)] {
            let flows = all_pairs(&graph, 1);
            let ends = (SwitchIndex(0), SwitchIndex(2));
            let flow = flows.iter().find(|flow| (flow.from, flow.to) == ends).unwrap();
            let (mut router, mut primary) = (ShortestPaths::default(), Vec::new());
            assert!(router.path(&graph, flow, &mut primary) && primary.len() == 2);
            let mut path = Vec::new();
            assert!(Detour::default().find(&graph, flow, &primary, &mut router, &mut path));
            check(&graph, flow, &path);
            assert_eq!(path.len(), wanted);
        }
    }

    #[test]
    fn backups_of_many_flows_between_two_switches_take_different_paths() {
        let graph = graph(16, &torus(4, 4));
        let ends = (SwitchIndex(0), SwitchIndex(10));
        let mut router = ShortestPaths::default();
        let (mut detour, mut found) = (Detour::default(), BTreeSet::new());
        for hash in 0..32 {
            let flow = Flow { from: ends.0, to: ends.1, hash: mix(hash), towards: 1 };
            let (mut primary, mut path) = (Vec::new(), Vec::new());
            assert!(router.path(&graph, &flow, &mut primary));
            assert!(detour.find(&graph, &flow, &primary, &mut router, &mut path));
            found.insert(path);
        }
        assert!(found.len() > 2, "{}", found.len());
    }

    proptest! {
        #[test]
        fn a_backup_avoids_every_link_where_the_graph_allows(
            (count, pairs) in connected(),
        ) {
            let graph = graph(count, &pairs);
            let (mut router, mut detour) = (ShortestPaths::default(), Detour::default());
            let (mut primary, mut path) = (Vec::new(), Vec::new());
            for flow in all_pairs(&graph, 1) {
                prop_assert!(router.path(&graph, &flow, &mut primary));
                let found = detour.find(&graph, &flow, &primary, &mut router, &mut path);
                let taken = links(&graph, &primary);
                let apart = joined(&graph, &taken, flow.from, flow.to);
                prop_assert!(found || !apart);
                if found {
                    check(&graph, &flow, &path);
                    let whole = whole_search(&mut detour, &graph, (&flow, &primary), &mut router);
                    prop_assert_eq!(&path, &whole);
                    let shared = links(&graph, &path).intersection(&taken).count();
                    prop_assert_eq!(shared == 0, apart);
                    prop_assert!(shared < primary.len());
                }
            }
        }

        #[test]
        fn primaries_and_backups_together_have_no_cycle_where_the_router_has_an_order(
            (count, pairs) in connected(),
            layers in 0..3_u8,
        ) {
            let graph = graph(count, &pairs);
            let mut up_down = UpDown::default();
            let mut layered = Layered::new(layers.max(2));
            let router: &mut dyn Router =
                if layers == 0 { &mut up_down } else { &mut layered };
            let flows = all_pairs(&graph, 3);
            let primaries = place(router, &graph, &flows);
            let (mut detour, mut all) = (Detour::default(), Dependencies::default());
            let mut path = Vec::new();
            for (at, (flow, primary)) in flows.iter().zip(&primaries).enumerate() {
                let mut add = |router: &mut dyn Router, path: &[Step]| {
                    let layer = router.layer(&graph, path).expect("a lawful path");
                    let priority = Priority::from_low_bits(layer.value());
                    all.add(at as u32, priority, path.iter().copied());
                };
                add(router, primary);
                if detour.find(&graph, flow, primary, router, &mut path) {
                    check(&graph, flow, &path);
                    add(router, &path);
                    let whole = whole_search(&mut detour, &graph, (flow, primary), router);
                    prop_assert_eq!(&path, &whole);
                }
            }
            prop_assert!(matches!(all.verdict(), Verdict::Free(_)));
        }
    }
}
