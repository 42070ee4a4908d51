//! Which way a flow goes.

use super::topology::{Graph, SwitchIndex};
use alloc::boxed::Box;
use alloc::vec::Vec;
use axon_wire::{MacAddr, NodeId, PortNo};
use core::fmt::Debug;

/// Paths longer than this are none: a route has to fit the 12-bit hop count of the header,
/// with a hop for the host port and one to spare.
const DISTANCE_MAX: u16 = 4_000;
const UNREACHABLE: u16 = u16::MAX;

/// One link of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The switch that is left.
    pub switch: SwitchIndex,
    /// The port it is left by.
    pub egress: PortNo,
}

/// Finds paths between switches. What it answers depends on the graph and its arguments
/// only, never on what was asked before, so that one graph has one set of routes.
pub trait Router: Debug + Send {
    /// Replaces `path` with the links from `from` to `to` for the flow that hashes to
    /// `flow`; no link at all where the two are the same. Says whether there is a path, and
    /// leaves `path` empty otherwise.
    fn path(
        &mut self,
        graph: &Graph,
        from: SwitchIndex,
        to: SwitchIndex,
        flow: u64,
        path: &mut Vec<Step>,
    ) -> bool;

    /// Links on the best path from `from` to `to`, if there is one. A flow whose path is
    /// longer is worth moving when links have come back.
    fn distance(&mut self, graph: &Graph, from: SwitchIndex, to: SwitchIndex) -> Option<usize>;
}

/// The routers there are, by the names that fabric files use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RouterKind {
    /// `shortest_path`: one shortest path per flow, of several equal ones by its hash.
    #[default]
    ShortestPath,
    /// `ecmp`: a shortest path drawn anew for each flow by a seeded random number.
    Ecmp,
    /// `spain`: greedy weighted shortest path, a link's weight the flows on it (paper 001
    /// §5.5).
    Spain,
    /// `hedera_gff`: Hedera's global first fit.
    HederaFirstFit,
    /// `hedera_sa`: Hedera's simulated annealing.
    HederaAnnealing,
    /// `congestion_aware`: by the load that links were measured to carry.
    CongestionAware,
    /// `balanced`: our own best spread of flows over links.
    Balanced,
}

impl RouterKind {
    /// All of them, in order.
    pub const ALL: [RouterKind; 7] = [
        RouterKind::ShortestPath,
        RouterKind::Ecmp,
        RouterKind::Spain,
        RouterKind::HederaFirstFit,
        RouterKind::HederaAnnealing,
        RouterKind::CongestionAware,
        RouterKind::Balanced,
    ];

    /// The name in fabric files and results.
    pub const fn name(self) -> &'static str {
        match self {
            RouterKind::ShortestPath => "shortest_path",
            RouterKind::Ecmp => "ecmp",
            RouterKind::Spain => "spain",
            RouterKind::HederaFirstFit => "hedera_gff",
            RouterKind::HederaAnnealing => "hedera_sa",
            RouterKind::CongestionAware => "congestion_aware",
            RouterKind::Balanced => "balanced",
        }
    }

    /// A router of this kind; `seed` feeds those that draw.
    pub fn build(self, _seed: u64) -> Box<dyn Router> {
        Box::<ShortestPaths>::default()
    }
}

/// The hash of the frames that one port of a switch sends to one host: they share one place
/// in its route memory, so they share a path.
pub fn flow_hash(node: NodeId, port: PortNo, destination: MacAddr) -> u64 {
    let mut word = [0; 8];
    word[..6].copy_from_slice(&destination.0);
    mix(mix(node.0 ^ (u64::from(port.0) << 48)) ^ u64::from_le_bytes(word))
}

/// The finaliser of splitmix64 (Steele et al., OOPSLA 2014): every bit of the result
/// depends on every bit of the argument.
fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// Shortest paths, every link counting one; equal ones are chosen by the hash of the flow.
///
/// For every destination there is a row: how many links each switch is away from it, found
/// by breadth-first search from the destination. A path follows the row downhill. Where
/// several edges lead down, the flow's hash mixed with the switch's identity picks one, so
/// all shortest paths are used, and a flow's path is the same whatever order the switches
/// were heard in.
///
/// A row outlives a change of the graph that does not touch it. It is right for a graph if
/// the destination has 0, no edge spans more than 1, and every switch at a finite distance
/// greater than 0 has a neighbour one nearer: no path is then shorter than its number and
/// one is as short. Only the switches whose edges changed can break that, so only they are
/// looked at; on a torus most rows survive most failures.
#[derive(Clone, Debug, Default)]
pub struct ShortestPaths {
    rows: Vec<Row>,
    queue: Vec<SwitchIndex>,
    /// How often a row was searched anew, and how often an old one was found still right.
    pub searches: u64,
    /// See `searches`.
    pub kept: u64,
}

#[derive(Clone, Debug, Default)]
struct Row {
    generation: u64,
    /// Empty until first used.
    distance: Vec<u16>,
}

impl ShortestPaths {
    /// Makes the row of `to` right for this graph.
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

/// Whether the distances at one switch fit those of its neighbours.
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

impl Router for ShortestPaths {
    fn path(
        &mut self,
        graph: &Graph,
        from: SwitchIndex,
        to: SwitchIndex,
        flow: u64,
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
                let random = mix(flow ^ graph.switch(at).life.node.0.rotate_left(32)) >> 32;
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

    fn distance(&mut self, graph: &Graph, from: SwitchIndex, to: SwitchIndex) -> Option<usize> {
        self.refresh(graph, to);
        let distance = self.rows[to.index()].distance[from.index()];
        (distance != UNREACHABLE).then_some(usize::from(distance))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_wire::message::{Peer, PortState, Role};
    use axon_wire::{Hops, Life};
    use proptest::prelude::*;

    /// The graph of these pairs of switches; switch `n` reaches `m` by port `m`.
    fn tell(graph: &mut Graph, version: u64, count: u64, pairs: &[(u64, u64)]) {
        for node in 0..count {
            let life = Life { node: NodeId(node), incarnation: 1 };
            let super::super::topology::Admission::Known(index) = graph.admit(life) else {
                panic!("one life only")
            };
            let ends = pairs.iter().flat_map(|&(a, b)| [(a, b), (b, a)]);
            let ports: Vec<_> = ends
                .filter(|&(here, _)| here == node)
                .map(|(_, there)| PortState {
                    port: PortNo(there as u16),
                    peer: Peer::Axon {
                        node: NodeId(there),
                        port: PortNo(node as u16),
                        role: Role::Switch,
                    },
                })
                .collect();
            graph.update(index, version, &ports, Hops::to_control());
        }
    }

    fn ring(count: u64) -> Vec<(u64, u64)> {
        (0..count).map(|node| (node, (node + 1) % count)).collect()
    }

    #[test]
    fn a_path_is_shortest_and_none_is_none() {
        let mut graph = Graph::default();
        tell(&mut graph, 1, 6, &ring(5));
        let mut router = ShortestPaths::default();
        let mut path = Vec::new();
        let (s, t) = (SwitchIndex(0), SwitchIndex(2));
        assert!(router.path(&graph, s, t, 7, &mut path));
        let ports: Vec<u16> = path.iter().map(|step| step.egress.0).collect();
        assert_eq!(ports, [1, 2]);
        assert!(router.path(&graph, s, s, 7, &mut path) && path.is_empty());
        assert!(!router.path(&graph, s, SwitchIndex(5), 7, &mut path) && path.is_empty());
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
                    let found = router.path(&graph, from, to, 3, &mut path);
                    prop_assert_eq!(found.then_some(path.len()), distance);
                }
            }
        }
    }
}
