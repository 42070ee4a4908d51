//! Global first fit (Hedera §4.3).

use super::super::flow::mix;
use super::super::{Flow, Loads, Router, ShortestPaths, Step};
use super::CANDIDATES;
use crate::topology::Graph;
use alloc::vec::Vec;

/// Gives a flow the first candidate path that has room for it on every link.
///
/// A link has room while it carries fewer flows than the limit. If no candidate has room, the flow
/// takes the one whose fullest link has the fewest flows, and the limit grows by 1/16, but at least
/// by one. So the limit settles at the load in the fabric.
///
/// In a round, the limit is 15/16 of the load on the fullest link, and flows over a link at or
/// above it move to the first candidate with room. A flow that moves leaves a link above the limit
/// for links below it. So the list of link loads, in descending order, decreases lexicographically,
/// and the rounds end.
#[derive(Clone, Debug, Default)]
pub struct FirstFit {
    shortest: ShortestPaths,
    loads: Loads,
    limit: u32,
    spare: Vec<Step>,
}

impl FirstFit {
    /// Stores the first candidate with room in `path`. If there is none, stores the least full
    /// candidate and returns false.
    fn fit(&mut self, graph: &Graph, flow: &Flow, path: &mut Vec<Step>) -> bool {
        let mut least = u32::MAX;
        for candidate in 0..CANDIDATES {
            let hash = if candidate == 0 { flow.hash } else { mix(flow.hash ^ candidate) };
            if !self.shortest.pick(graph, flow.from, flow.to, hash, &mut self.spare) {
                path.clear();
                return false;
            }
            let fullest = self.loads.fullest(&self.spare);
            if fullest < least {
                least = fullest;
                core::mem::swap(path, &mut self.spare);
            }
            if least < self.limit {
                return true;
            }
        }
        false
    }
}

impl Router for FirstFit {
    fn path(&mut self, graph: &Graph, flow: &Flow, path: &mut Vec<Step>) -> bool {
        self.limit = self.limit.max(1);
        if self.shortest.distance(graph, flow.from, flow.to).is_none() {
            path.clear();
            return false;
        }
        if !self.fit(graph, flow, path) {
            self.limit += 1 + self.limit / 16;
        }
        true
    }

    fn shortest(&mut self) -> &mut ShortestPaths {
        &mut self.shortest
    }

    fn loads(&mut self) -> Option<&mut Loads> {
        Some(&mut self.loads)
    }

    fn better(
        &mut self,
        graph: &Graph,
        flow: &Flow,
        current: &[Step],
        path: &mut Vec<Step>,
    ) -> bool {
        let distance = self.shortest.distance(graph, flow.from, flow.to);
        let shorter = distance.is_some_and(|distance| distance < current.len());
        let full = self.loads.fullest(current) >= self.limit;
        if !(shorter || full) {
            return false;
        }
        let fits = self.fit(graph, flow, path);
        fits || shorter
    }

    fn improves(&self) -> bool {
        true
    }

    /// The limit decreases slowly, so a round with few moves is not the last.
    fn settled(&self, moved: usize, _flows: usize) -> bool {
        moved == 0
    }

    fn round(&mut self, _graph: &Graph, _flows: &[Flow]) {
        let fullest = self.loads.each().map(|(_, flows)| flows).max().unwrap_or(0);
        self.limit = (fullest - fullest.div_ceil(16)).max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{all_pairs, improve, place, spread, tell, torus};
    use super::*;
    use crate::topology::SwitchIndex;

    #[test]
    fn flows_that_fit_side_by_side_get_links_of_their_own() {
        let mut graph = Graph::default();
        // Four switches between two others make four paths with two links each.
        let ways: Vec<(u64, u64)> = (2..6).flat_map(|by| [(0, by), (by, 1)]).collect();
        tell(&mut graph, 1, 6, &ways);
        let flow = Flow { from: SwitchIndex(0), to: SwitchIndex(1), hash: 9, towards: 0 };
        let paths = place(&mut FirstFit::default(), &graph, &[flow; 4]);
        assert_eq!(spread(&paths).0, 1);
        let paths = place(&mut FirstFit::default(), &graph, &[flow; 5]);
        assert_eq!(spread(&paths).0, 2);
    }

    #[test]
    fn rounds_come_to_an_end_with_a_lower_maximum() {
        let mut graph = Graph::default();
        tell(&mut graph, 1, 40, &torus(4, 10));
        let flows = all_pairs(&graph, 3);
        let hashed = spread(&place(&mut ShortestPaths::default(), &graph, &flows));
        let mut router = FirstFit::default();
        let mut paths = place(&mut router, &graph, &flows);
        let mut rounds = 0;
        while improve(&mut router, &graph, &flows, &mut paths) > 0 {
            rounds += 1;
            assert!(rounds < 100, "rounds must come to an end");
        }
        assert!(spread(&paths).0 < hashed.0, "{:?} {hashed:?}", spread(&paths));
    }
}
