//! Small graphs for router tests.

use super::{Flow, Loads, Router, Step};
use crate::topology::{Admission, Graph, SwitchIndex};
use alloc::vec::Vec;
use axon_wire::message::{Peer, PortState, Role};
use axon_wire::{Hops, Incarnation, NodeId, PortNo, Time};
use proptest::prelude::*;

/// Sets the links in the graph to these pairs of switches. Switch `n` reaches `m` through port `m`.
pub(crate) fn tell(graph: &mut Graph, version: u64, count: u64, pairs: &[(u64, u64)]) {
    for node in 0..count {
        let incarnation = Incarnation { node: NodeId(node), number: 1 };
        let Admission::Known(index) = graph.admit(incarnation, Time::ZERO) else {
            panic!("one incarnation only")
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

pub(crate) fn ring(count: u64) -> Vec<(u64, u64)> {
    (0..count).map(|node| (node, (node + 1) % count)).collect()
}

/// Returns the links of a torus with `rows` rows and `columns` columns, both at least 3.
pub(crate) fn torus(rows: u64, columns: u64) -> Vec<(u64, u64)> {
    let at = |row: u64, column: u64| (row % rows) * columns + column % columns;
    let cells = (0..rows * columns).map(|n| (n / columns, n % columns));
    cells
        .flat_map(|(row, column)| {
            let here = at(row, column);
            [(here, at(row, column + 1)), (here, at(row + 1, column))]
        })
        .collect()
}

/// Returns the links of a fat tree of 4-port switches: four cores, then in each of four pods two
/// aggregation switches and two edge switches.
pub(crate) fn fat_tree() -> Vec<(u64, u64)> {
    let pods = (0..4).map(|pod| 4 + 4 * pod);
    pods.flat_map(|pod| {
        let up = (0..4).map(move |core| (core, pod + core / 2));
        up.chain((0..4).map(move |link| (pod + link / 2, pod + 2 + link % 2)))
    })
    .collect()
}

/// Removes a link, or restores it.
pub(crate) fn toggle(up: &mut Vec<(u64, u64)>, pair: (u64, u64)) {
    match up.iter().position(|&other| other == pair) {
        Some(at) => drop(up.remove(at)),
        None => up.push(pair),
    }
}

/// Generates a connected graph from a random tree and additional links.
pub(crate) fn connected() -> impl Strategy<Value = (u64, Vec<(u64, u64)>)> {
    (2..14_u64).prop_flat_map(|count| {
        let tree: Vec<_> =
            (1..count).map(|node| (0..node).prop_map(move |to| (to, node))).collect();
        let more = prop::collection::vec((0..count, 0..count), 0..14);
        (tree, more).prop_map(move |(tree, more)| {
            let mut pairs: Vec<(u64, u64)> = tree;
            let ordered = more.into_iter().map(|(a, b)| (a.min(b), a.max(b)));
            pairs.extend(ordered.filter(|(a, b)| a != b));
            pairs.sort_unstable();
            pairs.dedup();
            (count, pairs)
        })
    })
}

/// Returns the parts of a path that remain between failed links.
pub(crate) fn still_there(graph: &Graph, path: &[Step]) -> Vec<Vec<Step>> {
    let is_gone =
        |step: &Step| !graph.edges(step.switch).iter().any(|edge| edge.egress == step.egress);
    path.split(is_gone).map(<[Step]>::to_vec).collect()
}

/// Returns `times` flows from every switch to every other switch.
pub(crate) fn all_pairs(graph: &Graph, times: u64) -> Vec<Flow> {
    let count = graph.len() as u32;
    let pairs = (0..count * count).map(|n| (n / count, n % count)).filter(|(from, to)| from != to);
    let pairs: Vec<_> = pairs.collect();
    let flow = |(hash, &(from, to)): (u64, &(u32, u32))| Flow {
        from: SwitchIndex(from),
        to: SwitchIndex(to),
        hash: super::flow::mix(hash),
        towards: u64::from(to) * times + hash / pairs.len() as u64,
    };
    let all = (0..times).flat_map(|time| {
        let first = time * pairs.len() as u64;
        pairs.iter().enumerate().map(move |(at, pair)| (first + at as u64, pair))
    });
    all.map(flow).collect()
}

/// Places all flows, one after another, and returns their paths.
pub(crate) fn place(router: &mut dyn Router, graph: &Graph, flows: &[Flow]) -> Vec<Vec<Step>> {
    let place = |flow: &Flow| {
        let mut path = Vec::new();
        assert!(router.path(graph, flow, &mut path), "{flow:?} has no path");
        check(graph, flow, &path);
        router.placed(&path);
        path
    };
    flows.iter().map(place).collect()
}

/// Runs one round of improvements, as the controller does. Returns the number of moves.
pub(crate) fn improve(
    router: &mut dyn Router,
    graph: &Graph,
    flows: &[Flow],
    paths: &mut [Vec<Step>],
) -> usize {
    router.round(graph, flows);
    let mut moved = 0;
    for (flow, path) in flows.iter().zip(paths) {
        let mut better = Vec::new();
        router.removed(path);
        if router.better(graph, flow, path, &mut better) {
            check(graph, flow, &better);
            *path = better;
            moved += 1;
        }
        router.placed(path);
    }
    moved
}

/// Checks that a path leads over edges, from the flow's first switch to its last, and visits no
/// switch twice.
pub(crate) fn check(graph: &Graph, flow: &Flow, path: &[Step]) {
    let mut at = flow.from;
    let mut seen = alloc::collections::BTreeSet::from([at]);
    for step in path {
        assert_eq!(step.switch, at, "{flow:?}: {path:?}");
        let edge = graph.edges(at).iter().find(|edge| edge.egress == step.egress);
        at = edge.expect("an edge of the graph").to;
        assert!(seen.insert(at), "{flow:?} comes by {at:?} twice: {path:?}");
    }
    assert_eq!(at, flow.to, "{flow:?}: {path:?}");
}

/// Returns the number of flows on the fullest link, and the sum of the squares over all links.
pub(crate) fn spread(paths: &[Vec<Step>]) -> (u32, u64) {
    let mut loads = Loads::default();
    for path in paths {
        loads.add(path);
    }
    let each = || loads.each().map(|(_, flows)| flows);
    (each().max().unwrap_or(0), each().map(|flows| u64::from(flows).pow(2)).sum())
}
