//! Links in service, and shortest paths over them.
//!
//! The distance between two nodes is the number of links on a shortest path. A node's port is on a
//! shortest path to another node if its neighbour is one link closer to that node.

use crate::site::{Neighbour, Plan};
use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;
use axon_wire::PortNo;

/// Distance to an unreachable node.
pub(crate) const FAR: u32 = u32::MAX;

/// Reported dead ports, each with the number of its node.
pub type Down = BTreeSet<(u32, PortNo)>;

/// Network without its dead links. A link is in service unless one of its ends is down.
#[derive(Clone, Copy, Debug)]
pub struct Live<'a> {
    plan: &'a Plan,
    down: &'a Down,
}

impl<'a> Live<'a> {
    /// Returns the plan without the links that have an end in `down`.
    pub(crate) fn new(plan: &'a Plan, down: &'a Down) -> Live<'a> {
        Live { plan, down }
    }

    /// Returns the links of a node that are in service, each as the node's port and the node at the
    /// other end. There are none for an unknown node.
    pub(crate) fn neighbours(self, node: u32) -> impl Iterator<Item = (PortNo, u32)> {
        let ports = self.plan.nodes.get(node as usize).map_or(&[][..], |node| &node.ports);
        (0..).map(PortNo).zip(ports).filter_map(move |(port, there)| match there.neighbour {
            Neighbour::Node(other, far) => {
                let is_down =
                    self.down.contains(&(node, port)) || self.down.contains(&(other, far));
                (!is_down).then_some((port, other))
            }
            _ => None,
        })
    }

    /// Returns, for each node, the distance in links from the nearest node in `from`, or [`FAR`].
    pub(crate) fn distances(self, from: impl IntoIterator<Item = u32>) -> Vec<u32> {
        let mut distances = alloc::vec![FAR; self.plan.nodes.len()];
        let mut next = VecDeque::new();
        for node in from {
            if let Some(distance) = distances.get_mut(node as usize) {
                *distance = 0;
                next.push_back(node);
            }
        }
        while let Some(node) = next.pop_front() {
            let further = distances[node as usize] + 1;
            for (_, other) in self.neighbours(node) {
                if distances[other as usize] == FAR {
                    distances[other as usize] = further;
                    next.push_back(other);
                }
            }
        }
        distances
    }

    /// Returns, in order, the ports of `node` that lead one link closer to the origin of
    /// `distances`.
    pub(crate) fn closer(self, node: u32, distances: &[u32]) -> Vec<PortNo> {
        let here = distances.get(node as usize).copied().unwrap_or(FAR);
        let closer = self.neighbours(node).filter(|(_, other)| distances[*other as usize] < here);
        closer.map(|(port, _)| port).collect()
    }
}

/// Shortest paths from one node to all others.
#[derive(Clone, Debug)]
pub struct Towards {
    own: Vec<u32>,
    by_port: Vec<(PortNo, Vec<u32>)>,
}

impl Towards {
    /// Computes the shortest paths from `node`.
    pub(crate) fn new(live: Live<'_>, node: u32) -> Towards {
        let neighbours = live.neighbours(node);
        let by_port = neighbours.map(|(port, other)| (port, live.distances([other]))).collect();
        Towards { own: live.distances([node]), by_port }
    }

    /// Returns the ports on shortest paths to `target`, in order. There are none to the node itself
    /// or to an unreachable node.
    pub(crate) fn ports(&self, target: u32) -> Vec<PortNo> {
        let own = self.distance(target);
        let closer = self.by_port.iter().filter(|(_, far)| far[target as usize] < own);
        closer.map(|(port, _)| *port).collect()
    }

    /// Returns the distance to `target` in links, or [`FAR`].
    pub(crate) fn distance(&self, target: u32) -> u32 {
        self.own.get(target as usize).copied().unwrap_or(FAR)
    }

    /// Returns whether a neighbour may reach `target` via this node.
    pub(crate) fn is_between(&self, target: u32) -> bool {
        let own = self.distance(target);
        own != FAR && self.by_port.iter().any(|(_, far)| far[target as usize] == own + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plans;

    #[test]
    fn a_link_counts_while_both_its_ends_are_up() {
        let plan = plans::ring(5);
        let mut down = Down::new();
        let ports = |down: &Down, target| Towards::new(Live::new(&plan, down), 0).ports(target);
        let (ahead, back) = (ports(&down, 1), ports(&down, 4));
        assert_eq!((ahead.len(), back.len()), (1, 1));
        assert_ne!(ahead, back);
        let Neighbour::Node(1, far) = plan.nodes[0].ports[ahead[0].index()].neighbour else {
            panic!("{plan:?}")
        };
        for end in [(0, ahead[0]), (1, far)] {
            down.insert(end);
            assert_eq!(ports(&down, 1), back, "the other way around");
            assert_eq!(Towards::new(Live::new(&plan, &down), 0).distance(1), 4);
            down.clear();
        }
        down.extend([(0, ahead[0]), (0, back[0])]);
        assert_eq!(ports(&down, 1), []);
        assert_eq!(Live::new(&plan, &down).distances([0])[1], FAR);
    }

    #[test]
    fn a_node_is_between_what_it_joins() {
        let plan = plans::ring(6);
        let down = Down::new();
        let towards = Towards::new(Live::new(&plan, &down), 0);
        assert!(towards.is_between(1) && towards.is_between(2));
        assert!(!towards.is_between(3), "opposite: neighbours are closer");
        assert_eq!(towards.ports(3).len(), 2);
    }
}
