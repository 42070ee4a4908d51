//! Equal-cost multipath with random choice among equal paths.

use super::{Flow, Router, ShortestPaths, Step};
use crate::topology::Graph;
use alloc::vec::Vec;
use axon_node::random::Random;

/// Router that takes a random shortest path each time a flow is placed.
///
/// At each switch, the next link is drawn uniformly from those that lead nearer to the end.
/// [`ShortestPaths`] spreads flows in the same way, but always gives a flow the same path. Here a
/// flow that is placed again may get a different one.
#[derive(Clone, Debug)]
pub struct Ecmp {
    shortest: ShortestPaths,
    random: Random,
}

impl Ecmp {
    /// Creates a router with random numbers from `seed`.
    pub(crate) fn new(seed: u64) -> Ecmp {
        Ecmp { shortest: ShortestPaths::default(), random: Random::new(seed) }
    }
}

impl Router for Ecmp {
    fn path(&mut self, graph: &Graph, flow: &Flow, path: &mut Vec<Step>) -> bool {
        let drawn = self.random.next_u64();
        self.shortest.pick(graph, flow.from, flow.to, drawn, path)
    }

    fn shortest(&mut self) -> &mut ShortestPaths {
        &mut self.shortest
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{tell, torus};
    use super::*;
    use crate::topology::SwitchIndex;
    use alloc::collections::BTreeSet;

    #[test]
    fn every_shortest_path_is_drawn_and_a_seed_draws_the_same_again() {
        let mut graph = Graph::default();
        tell(&mut graph, 1, 25, &torus(5, 5));
        // The end is two rows and one column away. The three orders of the links are three paths.
        let flow = Flow { from: SwitchIndex(0), to: SwitchIndex(11), hash: 1, towards: 0 };
        let draw = |seed| {
            let mut router = Ecmp::new(seed);
            let mut path = Vec::new();
            let mut paths = Vec::new();
            for _ in 0..40 {
                assert!(router.path(&graph, &flow, &mut path));
                paths.push(path.iter().map(|step| step.egress.0).collect::<Vec<_>>());
            }
            paths
        };
        let paths = draw(1);
        assert_eq!(paths.iter().collect::<BTreeSet<_>>().len(), 3);
        assert!(paths.iter().all(|path| path.len() == 3));
        assert!(paths == draw(1) && paths != draw(2));
    }
}
