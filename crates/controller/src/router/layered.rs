//! Shortest paths on several layers, none of which has a cycle of buffers.

use super::dependencies::ChannelDependencies;
use super::flow::mix;
use super::{Flow, Router, ShortestPaths, Step, UpDown};
use crate::topology::{Graph, SwitchIndex};
use alloc::vec::Vec;
use axon_wire::Layer;

/// Number of shortest paths drawn for a flow before it takes a longer one.
const DRAWS: u64 = 8;

/// Router that takes shortest paths and divides them among layers, so that in no layer the buffers
/// form a cycle.
///
/// Follows LASH (T. Skeie, O. Lysne and I. Theiss, IPDPS workshops 2002) and DFSSSP (J. Domke, T.
/// Hoefler and W. E. Nagel, IPDPS 2011), flow by flow. Each layer is a separate lossless priority,
/// so buffers in different layers never wait for each other.
///
/// Layer 0 has an order of the switches, and takes paths that never go up after they have gone down
/// ([`UpDown`]). Such a path exists between any two connected switches. Each further layer records
/// the channel dependencies of its paths, from one link to the next. It takes a path if that closes
/// no cycle among them (`ChannelDependencies`). A flow takes the first of the following paths that
/// exists:
///
/// 1. a shortest path, by its hash, on layer 0 if it follows the order there;
/// 2. the same path on the first further layer that accepts its dependencies;
/// 3. another shortest path in the same way, from eight that its hash draws;
/// 4. the shortest path that goes up and then down, on layer 0. Only this one may be longer than a
///    shortest path.
///
/// **Changes.** A dependency stays in its set when its paths are removed. So an accepted path forms
/// no cycle with any path accepted earlier, and old and new paths can carry frames at the same
/// time. Layer 0 has the guarantees of [`UpDown`]. When the graph changes while no flow is placed,
/// the sets of the further layers may be cleared as soon as the frames on earlier paths have left
/// ([`Router::drained`]). After a restart of the controller, the sets are filled with the paths
/// that it takes over. Until all edges have reported their paths, these may form a cycle with new
/// ones.
#[derive(Clone, Debug)]
pub struct Layered {
    up_down: UpDown,
    /// Channel dependencies in each layer, from layer 1 on.
    dependencies: Vec<ChannelDependencies>,
    /// Number of changes in the graph while no flow was placed.
    emptied: u64,
    /// True if the sets may be cleared when the frames have left.
    begins_anew: bool,
}

impl Layered {
    /// Creates a router for `layers` layers, 1 to 8. The value 0 counts as 1.
    pub(crate) fn new(layers: u8) -> Layered {
        let dependencies = (1..layers).map(|_| ChannelDependencies::default()).collect();
        Layered { up_down: UpDown::default(), dependencies, emptied: 0, begins_anew: false }
    }
}

impl Router for Layered {
    fn path(&mut self, graph: &Graph, flow: &Flow, path: &mut Vec<Step>) -> bool {
        for draw in 0..DRAWS {
            // The first draw is the path that other routers for shortest paths choose.
            let hash = if draw == 0 { flow.hash } else { mix(flow.hash ^ draw) };
            if !self.shortest().pick(graph, flow.from, flow.to, hash, path) {
                return false;
            }
            if self.up_down.admit(graph, path)
                || self.dependencies.iter_mut().any(|layer| layer.admit(path))
            {
                return true;
            }
        }
        self.up_down.path(graph, flow, path)
    }

    fn shortest(&mut self) -> &mut ShortestPaths {
        self.up_down.shortest()
    }

    fn placed(&mut self, path: &[Step]) {
        self.up_down.placed(path);
    }

    fn removed(&mut self, path: &[Step]) {
        self.up_down.removed(path);
    }

    fn changed(&mut self, graph: &Graph) -> bool {
        if self.up_down.is_idle() && self.dependencies.iter().any(|layer| !layer.is_empty()) {
            self.begins_anew = true;
            self.emptied += 1;
        }
        self.up_down.changed(graph)
    }

    fn allows(&mut self, graph: &Graph, path: &[Step], layer: Layer) -> bool {
        match layer.index().checked_sub(1) {
            None => self.up_down.allows(graph, path, layer),
            Some(further) => {
                self.dependencies.get(further).is_some_and(|layer| layer.include(path))
            }
        }
    }

    fn climbs(&mut self, graph: &Graph, from: SwitchIndex, to: SwitchIndex) -> bool {
        self.up_down.climbs(graph, from, to)
    }

    fn take_over(&mut self, graph: &Graph, path: &[Step], layer: Layer) -> bool {
        match layer.index().checked_sub(1) {
            None => self.up_down.allows(graph, path, layer),
            Some(further) => {
                self.dependencies.get_mut(further).is_some_and(|layer| layer.admit(path))
            }
        }
    }

    fn layer(&mut self, graph: &Graph, path: &[Step]) -> Option<Layer> {
        if self.up_down.admit(graph, path) {
            return Some(Layer::ZERO);
        }
        let mut layers = (1..=self.dependencies.len() as u8).filter_map(Layer::new);
        layers.find(|&layer| self.allows(graph, path, layer))
    }

    fn found(&mut self, graph: &Graph, path: &[Step], layer: Layer) {
        match layer.index().checked_sub(1) {
            None => self.up_down.found(graph, path, layer),
            Some(further) => {
                if let Some(layer) = self.dependencies.get_mut(further) {
                    layer.admit(path);
                }
            }
        }
    }

    fn draining(&self) -> Option<u64> {
        let layer_0 = self.up_down.draining();
        let waits = self.begins_anew || layer_0.is_some();
        waits.then(|| self.emptied + layer_0.unwrap_or_default())
    }

    fn drained(&mut self) {
        self.up_down.drained();
        if core::mem::take(&mut self.begins_anew) && self.up_down.is_idle() {
            self.dependencies.fill_with(ChannelDependencies::default);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{
        all_pairs, check, connected, fat_tree, place as place_all, ring, spread, still_there, tell,
        toggle, torus,
    };
    use super::*;
    use axon_prove::{Dependencies, Verdict};
    use axon_wire::Priority;
    use proptest::prelude::*;

    type Placed = Option<(Vec<Step>, Layer)>;

    fn graph(count: u64, pairs: &[(u64, u64)]) -> Graph {
        let mut graph = Graph::default();
        tell(&mut graph, 1, count, pairs);
        graph
    }

    /// Places a flow as the controller does.
    fn place(router: &mut Layered, graph: &Graph, flow: &Flow) -> Placed {
        let mut path = Vec::new();
        if !router.path(graph, flow, &mut path) {
            return None;
        }
        check(graph, flow, &path);
        router.placed(&path);
        let layer = router.layer(graph, &path).expect("a path that it has given has a layer");
        let least = router.shortest().distance(graph, flow.from, flow.to);
        assert!(layer == Layer::ZERO || least == Some(path.len()), "{flow:?}: {path:?}");
        Some((path, layer))
    }

    fn is_free<'a>(placed: impl IntoIterator<Item = &'a (Vec<Step>, Layer)>) -> bool {
        let mut all = Dependencies::default();
        for (flow, (path, layer)) in placed.into_iter().enumerate() {
            all.add(flow as u32, Priority::from_low_bits(layer.value()), path.iter().copied());
        }
        matches!(all.verdict(), Verdict::Free(_))
    }

    #[test]
    fn with_further_layers_fewer_paths_are_longer_than_need_be_and_none_has_a_cycle() {
        let cases = [
            (4, ring(4)),
            (9, ring(9)),
            (16, torus(4, 4)),
            (25, torus(5, 5)),
            (80, torus(8, 10)),
            (20, fat_tree()),
        ];
        let stretch = cases.map(|(count, pairs)| {
            let graph = graph(count, &pairs);
            let flows = all_pairs(&graph, 10);
            let shortest = place_all(&mut ShortestPaths::default(), &graph, &flows);
            [2, 3].map(|layers| {
                let mut router = Layered::new(layers);
                let placed = flows.iter().filter_map(|flow| place(&mut router, &graph, flow));
                let placed: Vec<_> = placed.collect();
                assert_eq!(placed.len(), flows.len());
                assert!(is_free(&placed), "{count} switches, {layers} layers");
                let paths: Vec<Vec<Step>> = placed.into_iter().map(|(path, _)| path).collect();
                let links = |paths: &[Vec<Step>]| paths.iter().map(Vec::len).sum::<usize>();
                let fullest = spread(&paths).0 * 100 / spread(&shortest).0;
                (links(&paths) * 1_000 / links(&shortest), fullest)
            })
        });
        // With two layers and with three: the links of all paths in thousandths of those of
        // shortest paths, and the load on the fullest link in hundredths.
        let wanted = [
            [(1_000, 100), (1_000, 100)],
            [(1_000, 100), (1_000, 100)],
            [(1_000, 117), (1_000, 106)],
            [(1_011, 144), (1_000, 100)],
            [(1_041, 259), (1_013, 198)],
            [(1_006, 106), (1_000, 100)],
        ];
        assert_eq!(stretch, wanted);
    }

    /// Reroutes, as the controller does, flows that have lost a link, and flows that a new order
    /// forbids.
    fn reroute(router: &mut Layered, graph: &Graph, flows: &[Flow], placed: &mut [Placed]) {
        let renewed = router.changed(graph);
        for (flow, kept) in flows.iter().zip(placed) {
            let edge =
                |step: &Step| graph.edges(step.switch).iter().any(|e| e.egress == step.egress);
            let stands = kept.as_ref().is_some_and(|(path, layer)| {
                path.iter().all(edge) && (!renewed || router.allows(graph, path, *layer))
            });
            if !stands {
                if let Some((path, _)) = kept.take() {
                    router.removed(&path);
                }
                *kept = place(router, graph, flow);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        #[test]
        fn whatever_fails_all_reach_all_and_old_and_new_paths_have_no_cycle_on_any_layer(
            (count, pairs) in connected(),
            layers in 1..5_u8,
            toggles in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        ) {
            let mut graph = graph(count, &pairs);
            let mut router = Layered::new(layers);
            let flows = all_pairs(&graph, 2);
            let mut placed: Vec<Placed> = alloc::vec![None; flows.len()];
            reroute(&mut router, &graph, &flows, &mut placed);
            prop_assert!(placed.iter().all(Option::is_some));
            // All paths ever in use. On layer 0, only those under the current order.
            let mut ever: Vec<(Vec<Step>, Layer)> = placed.iter().flatten().cloned().collect();
            let mut up = pairs.clone();
            for (version, choice) in toggles.iter().enumerate() {
                toggle(&mut up, pairs[choice.index(pairs.len())]);
                tell(&mut graph, version as u64 + 2, count, &up);
                let before = (router.up_down.orders(), router.up_down.mends());
                reroute(&mut router, &graph, &flows, &mut placed);
                // Frames on a failed link are gone by the time it returns.
                if (router.up_down.orders(), router.up_down.mends()) > before {
                    let parts = |(path, layer): &(Vec<Step>, Layer)| {
                        let (parts, layer) = (still_there(&graph, path), *layer);
                        parts.into_iter().map(move |part| (part, layer))
                    };
                    ever = ever.iter().flat_map(parts).collect();
                }
                ever.extend(placed.iter().flatten().cloned());
                prop_assert!(is_free(&ever), "old and new");
                if router.draining().is_some() {
                    router.drained();
                    ever = placed.iter().flatten().cloned().collect();
                    reroute(&mut router, &graph, &flows, &mut placed);
                }
                for (flow, placed) in flows.iter().zip(&placed) {
                    let reached = router.shortest().distance(&graph, flow.from, flow.to).is_some();
                    prop_assert_eq!(placed.is_some(), reached, "{:?}", flow);
                }
                ever.extend(placed.iter().flatten().cloned());
                prop_assert!(is_free(&ever));
            }
        }
    }
}
