//! Compact entries for edge switches that a switch below the core reaches via only some of its
//! uplinks.
//!
//! Where links have failed, the edge switches in a pod mostly have one uplink in common. Then one
//! entry for the pod is sufficient, with one more for each edge switch that uses another uplink.

use crate::live::Towards;
use crate::tree::Tree;
use alloc::vec::Vec;
use axon_wire::PortNo;

/// Scope of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All addresses in a pod, including those that belong to no edge switch.
    Pod(u32),
    /// The addresses of one edge switch.
    Edge(u32),
}

/// Returns the entries that take precedence over those that use all of `up`, with their ports, for
/// the edge switches selected by `is_up`. The entry with the lowest precedence comes first.
///
/// A pod gets an entry only if that saves some, and if the entry leads up or drops. Otherwise,
/// packets to addresses of no edge switch would come back from below.
pub(crate) fn exceptions(
    tree: Tree,
    towards: &Towards,
    up: &[PortNo],
    is_up: impl Fn(u32) -> bool,
) -> Vec<(Part, Vec<PortNo>)> {
    let mut found = Vec::new();
    for pod in 0..2 * tree.half() {
        let edges = pod * tree.half()..(pod + 1) * tree.half();
        let ways: Vec<(u32, Vec<PortNo>)> =
            edges.filter(|&edge| is_up(edge)).map(|edge| (edge, towards.ports(edge))).collect();
        let count = |way: &[PortNo]| ways.iter().filter(|(_, other)| other == way).count();
        let upward = ways.iter().map(|(_, way)| way);
        let upward = upward.filter(|way| way.iter().all(|port| up.contains(port)));
        let common = upward.max_by_key(|way| count(way));
        let usual = match common {
            Some(common) if count(common) > count(up) + 1 => {
                found.push((Part::Pod(pod), common.clone()));
                &common[..]
            }
            _ => up,
        };
        let others = ways.iter().filter(|(_, way)| way != usual);
        found.extend(others.map(|(edge, way)| (Part::Edge(*edge), way.clone())));
    }
    found
}

#[cfg(test)]
mod tests {
    use crate::fat_tree::FatTree;
    use crate::live::{Down, Live};
    use crate::planned::Design;
    use crate::plans;
    use crate::portland::PortLand;
    use crate::site::{Neighbour, Plan, Site};
    use alloc::sync::Arc;
    use axon_pipeline::{Change, Sizes};
    use axon_wire::PortNo;

    const K: u32 = 48;
    const HALF: u32 = K / 2;
    const EDGES: u32 = K * HALF;

    /// Returns the port of a node that leads to another one.
    fn port(plan: &Plan, node: u32, to: u32) -> (u32, PortNo) {
        let ports = &plan.nodes[node as usize].ports;
        let leads = |neighbour| matches!(neighbour, Neighbour::Node(other, _) if other == to);
        let at = ports.iter().position(|port| leads(port.neighbour)).unwrap();
        (node, PortNo(at as u16))
    }

    /// Asserts that a node's entries fit into its TCAM without these links.
    fn assert_fits(plan: &Arc<Plan>, design: &dyn Design, node: u32, down: &Down, what: &str) {
        let site = Site { plan: plan.clone(), node, seed: 0 };
        let entries = design.entries(&site, Live::new(plan, down));
        let tcam = entries.iter().filter(|change| matches!(change, Change::Tcam(..))).count();
        assert!(tcam <= Sizes::default().tcam as usize, "{what}: {tcam}");
    }

    #[test]
    fn the_tcam_of_the_largest_fat_tree_of_the_paper_holds_several_failures() {
        let plan = Arc::new(plans::structural(K));
        let fat_tree = FatTree::of(&plan).unwrap();
        let portland = PortLand::of(&plan).unwrap();
        // Three core switches have lost one pod each, so all its edge switches have one path fewer.
        let core = |number: u32, pod: u32| port(&plan, 2 * EDGES + number, EDGES + pod * HALF);
        let down = Down::from([core(0, 5), core(1, 6), core(2, 7)]);
        assert_fits(&plan, &fat_tree, EDGES, &down, "core links");
        // In each pod except the first, one aggregation switch has lost two edge switches.
        let edge = |pod: u32, at: u32| port(&plan, EDGES + pod * HALF, pod * HALF + at);
        let down: Down = (1..K).flat_map(|pod| [edge(pod, 3), edge(pod, 4)]).collect();
        assert_fits(&plan, &fat_tree, 0, &down, "edge links");
        // The first aggregation switch in each of four pods has lost the core.
        let cores = (4..8).flat_map(|pod| (0..HALF).map(move |number| (pod, number)));
        let down: Down = cores.map(|(pod, number)| core(number, pod)).collect();
        assert_fits(&plan, &portland, 0, &down, "aggregation switches");
    }
}
