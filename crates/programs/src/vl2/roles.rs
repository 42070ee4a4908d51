//! Roles of switches in the network: edge and intermediate.

use crate::live::{FAR, Live};
use crate::site::Plan;
use crate::tree::Tree;
use alloc::vec::Vec;

/// Roles of the switches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Roles {
    /// Edge switches in order of their numbers.
    pub(super) edges: Vec<u32>,
    /// Intermediate switches. Every packet from one edge switch to another passes through one of
    /// them.
    pub(super) intermediates: Vec<u32>,
}

impl Roles {
    /// Returns the roles in a network of layers, or `None` for any other network.
    ///
    /// Switches with hosts are the edge. The others form layers by their distance from the edge,
    /// and the last layer is the middle. Every link joins two adjacent layers, and each switch in
    /// the middle has the same distance from every edge switch. In a fat tree, the positions
    /// determine the roles, even if some edge switches have no hosts.
    pub(super) fn of(plan: &Plan) -> Option<Roles> {
        if let Some(tree) = Tree::of(plan) {
            let core = 2 * tree.edges()..plan.nodes.len() as u32;
            return Some(Roles {
                edges: (0..tree.edges()).collect(),
                intermediates: core.collect(),
            });
        }
        let down = Default::default();
        let live = Live::new(plan, &down);
        let mut edges: Vec<u32> = plan.hosts.iter().map(|host| host.node).collect();
        edges.sort_unstable();
        edges.dedup();
        let layers = live.distances(edges.iter().copied());
        let middle = layers.iter().copied().max().filter(|&layer| layer > 0 && layer != FAR)?;
        let nodes = 0..plan.nodes.len() as u32;
        let intermediates: Vec<u32> =
            nodes.clone().filter(|&node| layers[node as usize] == middle).collect();
        let is_layered = nodes.flat_map(|node| live.neighbours(node).map(move |one| (node, one.1)));
        let mut is_layered =
            is_layered.map(|(a, b)| layers[a as usize].abs_diff(layers[b as usize]) == 1);
        let is_central = |&one: &u32| {
            let distances = live.distances([one]);
            edges.iter().all(|&edge| distances[edge as usize] == middle)
        };
        let is_whole = is_layered.all(|joined| joined) && intermediates.iter().all(is_central);
        is_whole.then_some(Roles { edges, intermediates })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plans;

    #[test]
    fn the_middle_of_a_clos_network_is_as_far_from_every_edge() {
        let roles = Roles::of(&plans::leaf_spine(4, 3)).unwrap();
        assert_eq!((roles.edges.len(), roles.intermediates), (4, [4, 5, 6].into()));
        let roles = Roles::of(&plans::fat_tree(4)).unwrap();
        assert_eq!((roles.edges.len(), roles.intermediates), (8, [16, 17, 18, 19].into()));
        let mut plan = plans::fat_tree(4);
        plan.shape = Default::default();
        assert_eq!(Roles::of(&plan), Roles::of(&plans::fat_tree(4)), "found without its shape");
        assert_eq!(Roles::of(&plans::ring(5)), None, "no middle");
    }
}
