//! Order of switches that defines which links lead up.

use crate::topology::{Graph, SwitchIndex};
use alloc::vec::Vec;

/// Rank of a switch that is not in the order.
const NO_RANK: u32 = u32::MAX;
/// Level of a switch that a search has not reached.
const NO_LEVEL: u32 = u32::MAX;
/// Number of switches tried as roots in a component. In larger components, they are spread evenly
/// over the IDs.
const ROOTS_MAX: usize = 128;

/// Total order of the switches. Every switch has a unique rank, and a link leads up if it leads to
/// the lower rank.
///
/// **Any order is free of cycles.** Along links up, the rank only falls, and along links down, it
/// only grows. If no route goes up after it has gone down, a cycle of waiting buffers would have to
/// go up all the way or down all the way, and yet return to the rank where it began. So there is no
/// cycle, for any order and any number of routes.
///
/// **An order must also connect** any two switches. It does so if each component of the graph has
/// only one switch without a link up, because a path can then climb to it from any switch and
/// descend from it to any other. [`Order::serves`] checks that.
///
/// **A new order** numbers the switches of each component breadth first from a root, and within one
/// level by ID. The root is found by trial. A turn (from one link to the next) is forbidden at a
/// switch if it leads from one neighbour above the switch to another, so a switch with `n` links up
/// forbids `n * (n - 1)` turns. The root that forbids the fewest turns is chosen. Ties go to the
/// root with the fewest levels, then to the lowest ID. In a fat tree, the root is then an edge
/// switch, not a core switch. All core switches are on one level, none of them is a common
/// bottleneck, and all shortest paths between edge switches are allowed.
#[derive(Clone, Debug, Default)]
pub struct Order {
    rank: Vec<u32>,
    levels: Vec<u32>,
    queue: Vec<SwitchIndex>,
}

impl Order {
    /// Returns the rank of a switch.
    pub(crate) fn rank(&self, switch: SwitchIndex) -> u32 {
        self.rank.get(switch.index()).copied().unwrap_or(NO_RANK)
    }

    /// Returns whether a link from `from` to `to` leads up. Two switches without a rank, which
    /// exist only between calls to [`Order::extend`], are compared by index.
    #[inline]
    pub(crate) fn is_up(&self, from: SwitchIndex, to: SwitchIndex) -> bool {
        (self.rank(to), to) < (self.rank(from), from)
    }

    /// Returns whether any two switches that the graph connects have a path in this order.
    pub(crate) fn serves(&mut self, graph: &Graph) -> bool {
        let alone = |at: SwitchIndex| !graph.edges(at).iter().any(|e| self.is_up(at, e.to));
        let tops = (0..graph.len() as u32).filter(|&at| alone(SwitchIndex(at))).count();
        let mut components = 0;
        self.levels.clear();
        self.levels.resize(graph.len(), NO_LEVEL);
        for at in (0..graph.len() as u32).map(SwitchIndex) {
            if self.levels[at.index()] == NO_LEVEL {
                components += 1;
                search(graph, at, &mut self.levels, &mut self.queue);
            }
        }
        tops == components
    }

    /// Creates the order with these switches, top first.
    pub(crate) fn from_top(switches: &[SwitchIndex]) -> Order {
        let mut rank = alloc::vec![NO_RANK; switches.len()];
        for (place, at) in switches.iter().enumerate() {
            rank[at.index()] = place as u32;
        }
        Order { rank, ..Order::default() }
    }

    /// Returns the switches without a link up in a component that has more than one of them, lowest
    /// first. Returns none if there is no such component.
    pub(crate) fn rival_tops(&mut self, graph: &Graph) -> Vec<SwitchIndex> {
        self.levels.clear();
        self.levels.resize(graph.len(), NO_LEVEL);
        for at in (0..graph.len() as u32).map(SwitchIndex) {
            if self.levels[at.index()] != NO_LEVEL {
                continue;
            }
            search(graph, at, &mut self.levels, &mut self.queue);
            let is_top = |at: &SwitchIndex| !graph.edges(*at).iter().any(|e| self.is_up(*at, e.to));
            let mut tops: Vec<_> = self.queue.iter().copied().filter(is_top).collect();
            if tops.len() > 1 {
                tops.sort_unstable_by_key(|&at| core::cmp::Reverse(self.rank(at)));
                return tops;
            }
        }
        Vec::new()
    }

    /// Gives new switches a rank below all others, starting with those next to known switches. The
    /// links of other switches keep their direction.
    pub(crate) fn extend(&mut self, graph: &Graph) {
        let mut next = self.rank.iter().filter(|&&rank| rank != NO_RANK).max().map_or(0, |r| r + 1);
        self.rank.resize(graph.len(), NO_RANK);
        let known = |&at: &SwitchIndex| self.rank[at.index()] != NO_RANK;
        let mut queue: Vec<_> = (0..graph.len() as u32).map(SwitchIndex).filter(known).collect();
        let mut at = 0;
        let mut unknown = 0;
        loop {
            while let Some(&here) = queue.get(at) {
                at += 1;
                for edge in graph.edges(here) {
                    if self.rank[edge.to.index()] == NO_RANK {
                        self.rank[edge.to.index()] = next;
                        next += 1;
                        queue.push(edge.to);
                    }
                }
            }
            while self.rank.get(unknown).is_some_and(|&rank| rank != NO_RANK) {
                unknown += 1;
            }
            let Some(rank) = self.rank.get_mut(unknown) else { break };
            *rank = next;
            next += 1;
            queue.push(SwitchIndex(unknown as u32));
        }
    }

    /// Makes a new order. With `keep_roots`, the top switch of each component stays its root, so
    /// that most links keep their direction.
    pub(crate) fn renew(&mut self, graph: &Graph, keep_roots: bool) {
        let old = core::mem::take(&mut self.rank);
        self.rank.resize(graph.len(), NO_RANK);
        self.levels.clear();
        self.levels.resize(graph.len(), NO_LEVEL);
        let mut next = 0;
        for at in (0..graph.len() as u32).map(SwitchIndex) {
            if self.levels[at.index()] != NO_LEVEL {
                continue;
            }
            search(graph, at, &mut self.levels, &mut self.queue);
            let mut component = self.queue.clone();
            component.sort_unstable_by_key(|&at| graph.switch(at).incarnation.node);
            let ranked = component.iter().filter_map(|&at| {
                old.get(at.index()).filter(|&&rank| rank != NO_RANK).map(|&rank| (rank, at))
            });
            let root = match ranked.min() {
                Some((_, highest)) if keep_roots => highest,
                _ => self.best_root(graph, &component),
            };
            self.level_from(graph, root, &component);
            let levels = &self.levels;
            component.sort_by_key(|at| levels[at.index()]);
            for at in component {
                self.rank[at.index()] = next;
                next += 1;
            }
        }
    }

    fn level_from(&mut self, graph: &Graph, root: SwitchIndex, component: &[SwitchIndex]) {
        component.iter().for_each(|at| self.levels[at.index()] = NO_LEVEL);
        search(graph, root, &mut self.levels, &mut self.queue);
    }

    /// Returns the root that forbids the fewest turns, among those that are tried.
    fn best_root(&mut self, graph: &Graph, component: &[SwitchIndex]) -> SwitchIndex {
        let tried = component.len().min(ROOTS_MAX);
        let candidates = (0..tried).map(|number| component[number * component.len() / tried]);
        let mut best = (u64::MAX, u32::MAX, component[0]);
        for root in candidates {
            self.level_from(graph, root, component);
            let levels = &self.levels;
            let place = |at: SwitchIndex| (levels[at.index()], graph.switch(at).incarnation.node);
            let forbids = |&at: &SwitchIndex| {
                let up = graph.edges(at).iter().filter(|edge| place(edge.to) < place(at)).count();
                (up * up.saturating_sub(1)) as u64
            };
            let turns = component.iter().map(forbids).sum();
            let depth = self.queue.last().map_or(0, |at| levels[at.index()]);
            if (turns, depth) < (best.0, best.1) {
                best = (turns, depth, root);
            }
        }
        best.2
    }
}

/// Searches breadth first from `root`. Stores the distance in links to each switch that was not
/// reached earlier. `queue` then has these switches in order of discovery.
fn search(graph: &Graph, root: SwitchIndex, levels: &mut [u32], queue: &mut Vec<SwitchIndex>) {
    queue.clear();
    queue.push(root);
    levels[root.index()] = 0;
    let mut next = 0;
    while let Some(&here) = queue.get(next) {
        next += 1;
        let level = levels[here.index()] + 1;
        for edge in graph.edges(here) {
            if levels[edge.to.index()] == NO_LEVEL {
                levels[edge.to.index()] = level;
                queue.push(edge.to);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{fat_tree, ring, tell};
    use super::*;

    fn graph(count: u64, pairs: &[(u64, u64)]) -> Graph {
        let mut graph = Graph::default();
        tell(&mut graph, 1, count, pairs);
        graph
    }

    #[test]
    fn the_root_of_a_fat_tree_is_at_its_edge() {
        // Four cores first, then in each pod two aggregation switches and two edge switches.
        let graph = graph(20, &fat_tree());
        let mut order = Order::default();
        order.renew(&graph, false);
        let root = (0..20).map(SwitchIndex).min_by_key(|&at| order.rank(at)).unwrap();
        assert_eq!((root.0 - 4) % 4, 2, "{root:?} is not at the edge");
        assert!(order.serves(&graph));
    }

    #[test]
    fn an_order_stands_until_a_switch_loses_its_last_way_up() {
        let mut graph = graph(6, &ring(6));
        let mut order = Order::default();
        order.renew(&graph, false);
        let before = order.rank.clone();
        // Root is 0, and the levels are 0 1 2 3 2 1. Switch 3 is the lowest and has two links up.
        tell(&mut graph, 2, 6, &ring(6)[..3]);
        assert!(order.serves(&graph), "switches 4 and 5 are alone, and roots of their own");
        let mut whole = Graph::default();
        let cut: Vec<_> = ring(6).into_iter().filter(|&pair| pair != (2, 3)).collect();
        tell(&mut whole, 1, 6, &cut);
        assert!(order.serves(&whole));
        let cut: Vec<_> = ring(6).into_iter().filter(|&pair| pair != (0, 1)).collect();
        tell(&mut whole, 2, 6, &cut);
        assert!(!order.serves(&whole), "switch 1 has no way up");
        order.renew(&whole, true);
        assert!(order.serves(&whole));
        assert_eq!((order.rank[0], before[0]), (0, 0), "the root stays");
    }

    #[test]
    fn new_switches_come_below_all_others_and_turn_no_link() {
        let mut graph = graph(4, &ring(4));
        let mut order = Order::default();
        order.renew(&graph, false);
        let before = order.rank.clone();
        tell(&mut graph, 2, 7, &[(0, 1), (1, 2), (2, 3), (3, 0), (2, 6), (6, 5), (5, 4)]);
        order.extend(&graph);
        assert_eq!(order.rank[..4], before);
        assert_eq!(order.rank[4..], [6, 5, 4], "by their way from what was known");
        assert!(order.serves(&graph));
    }
}
