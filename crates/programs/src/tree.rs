//! Positions of nodes in a fat tree, by number (M. Al-Fares et al., SIGCOMM 2008, §3.2).

use crate::site::{Plan, Shape};

/// Number of links on the direct way down from a core switch to an edge switch.
pub(crate) const DOWN: u32 = 2;

/// Fat tree of `k`-port switches: edge switches by pod, then aggregation switches by pod, then the
/// core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tree {
    half: u32,
}

/// Position of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Switch with hosts.
    Edge {
        /// Pod, 0 to `k - 1`.
        pod: u32,
        /// Position in the pod, 0 to `k / 2 - 1`.
        position: u32,
    },
    /// Switch between edge and core.
    Aggregation {
        /// Pod, 0 to `k - 1`.
        pod: u32,
        /// Position in the pod, 0 to `k / 2 - 1`.
        position: u32,
    },
    /// Core switch.
    Core,
}

impl Tree {
    /// Returns the fat tree that a network forms, or `None` if it forms none or has a host that is
    /// not at the edge.
    pub(crate) fn of(plan: &Plan) -> Option<Tree> {
        let Shape::FatTree { k } = plan.shape else { return None };
        let tree = Tree { half: k / 2 };
        let nodes = 2 * tree.edges() + tree.half * tree.half;
        let is_whole = k >= 2 && k.is_multiple_of(2) && plan.nodes.len() == nodes as usize;
        let at_edge = plan.hosts.iter().all(|host| host.node < tree.edges());
        (is_whole && at_edge).then_some(tree)
    }

    /// Returns the number of edge switches, which are the first nodes.
    pub(crate) const fn edges(self) -> u32 {
        2 * self.half * self.half
    }

    /// Returns the position of a node.
    pub(crate) const fn place(self, node: u32) -> Place {
        let edges = self.edges();
        let above = node % edges;
        let (pod, position) = (above / self.half, above % self.half);
        match node / edges {
            0 => Place::Edge { pod, position },
            1 => Place::Aggregation { pod, position },
            _ => Place::Core,
        }
    }

    /// Returns the pod of an edge or aggregation switch.
    pub(crate) const fn pod(self, node: u32) -> u32 {
        node % self.edges() / self.half
    }

    /// Returns the number of edge switches in a pod, which is also the number of aggregation
    /// switches: `k / 2`.
    pub(crate) const fn half(self) -> u32 {
        self.half
    }
}
