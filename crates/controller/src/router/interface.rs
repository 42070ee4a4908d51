//! The trait of all routers.

use super::flow::Flow;
use super::loads::Loads;
use super::shortest::ShortestPaths;
use crate::topology::{Graph, SwitchIndex};
use alloc::boxed::Box;
use alloc::vec::Vec;
use axon_node::Step;
use axon_wire::message::PortBytes;
use axon_wire::{Layer, Span};
use core::fmt::Debug;

/// A router that can be cloned behind its trait, so that a whole controller can be.
pub trait Boxed {
    /// Returns a copy with the same state.
    fn boxed(&self) -> Box<dyn Router>;
}

impl<T: Router + Clone + 'static> Boxed for T {
    fn boxed(&self) -> Box<dyn Router> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn Router> {
    fn clone(&self) -> Box<dyn Router> {
        self.as_ref().boxed()
    }
}

/// Computes paths between switches.
///
/// The results depend on the seed, the graph, the arguments and the calls before: the flows placed
/// and removed, and the measured load. The same calls in the same order give the same results on
/// every machine. Results do not depend on earlier results, so a controller that restarts with an
/// empty state converges to good routes too. It keeps the routes in the tables of edges that
/// [`Router::take_over`] accepts.
///
/// A path visits no switch twice.
pub trait Router: Boxed + Debug + Send + Sync {
    /// Replaces `path` with the links that `flow` should take; empty if both ends are the same
    /// switch. Returns whether there is a path, and leaves `path` empty otherwise. The flow does
    /// not count as placed yet.
    fn path(&mut self, graph: &Graph, flow: &Flow, path: &mut Vec<Step>) -> bool;

    /// Returns the shortest paths of this graph, for control messages, which are no flows.
    fn shortest(&mut self) -> &mut ShortestPaths;

    /// Returns the flows on each link, for a router that chooses paths by them; `None` otherwise.
    fn loads(&mut self) -> Option<&mut Loads> {
        None
    }

    /// Replaces `path` with the backup of `primary`, the current path of `flow`, if the router
    /// computes its own; returns whether it does. Otherwise the most disjoint path is used
    /// ([`Detour`](super::Detour)).
    fn backup(
        &mut self,
        _graph: &Graph,
        _flow: &Flow,
        _primary: &[Step],
        _path: &mut Vec<Step>,
    ) -> bool {
        false
    }

    /// Records that a flow takes this path from now on.
    fn placed(&mut self, path: &[Step]) {
        if let Some(loads) = self.loads() {
            loads.add(path);
        }
    }

    /// Records that a flow no longer takes this path.
    fn removed(&mut self, path: &[Step]) {
        if let Some(loads) = self.loads() {
            loads.remove(path);
        }
    }

    /// Returns whether the flow on `current`, which has just been [`Router::removed`], should move;
    /// its new path is then in `path`. Called in rounds for every flow: when links were added, and
    /// regularly if [`Router::improves`]. A move may reorder frames, so it should gain something.
    fn better(
        &mut self,
        graph: &Graph,
        flow: &Flow,
        current: &[Step],
        path: &mut Vec<Step>,
    ) -> bool {
        let distance = self.shortest().distance(graph, flow.from, flow.to);
        distance.is_some_and(|distance| distance < current.len())
            && self.path(graph, flow, path)
            && path.len() < current.len()
    }

    /// Handles a change of the graph. Returns whether allowed paths may now violate a rule of the
    /// router, so that all paths in use must be checked with [`Router::allows`].
    fn changed(&mut self, _graph: &Graph) -> bool {
        false
    }

    /// Returns whether a flow may take this path on this layer; always true for a router without a
    /// rule.
    fn allows(&mut self, _graph: &Graph, _path: &[Step], _layer: Layer) -> bool {
        true
    }

    /// Returns whether a link between these switches leads up in the order of the router. A path
    /// that has gone down may not go up again. For a router without an order, every link leads up.
    fn climbs(&mut self, _graph: &Graph, _from: SwitchIndex, _to: SwitchIndex) -> bool {
        true
    }

    /// Returns whether a flow may keep this path and layer of an earlier incarnation of the
    /// controller.
    fn take_over(&mut self, graph: &Graph, path: &[Step], layer: Layer) -> bool {
        self.allows(graph, path, layer)
    }

    /// Registers a path that an edge has from an earlier incarnation of the controller, and that
    /// [`Router::take_over`] may refuse: frames are in flight on it until it is replaced.
    fn found(&mut self, _graph: &Graph, _path: &[Step], _layer: Layer) {}

    /// Returns the number of the router's last change of its rule while frames may be in flight on
    /// paths that violate the new rule. The number grows. Meanwhile the router returns no path that
    /// closes a cycle of buffers with these, and may have none for a flow. `None` if there are no
    /// such frames.
    fn draining(&self) -> Option<u64> {
        None
    }

    /// Records that no edge has a path any more that violated the rule when [`Router::draining`]
    /// returned its number, and that the last frame on one has left the fabric.
    fn drained(&mut self) {}

    /// Returns the layer for a flow on this path, which the router has just chosen or which is a
    /// shortest one; `None` if no layer allows it.
    fn layer(&mut self, graph: &Graph, path: &[Step]) -> Option<Layer> {
        self.allows(graph, path, Layer::ZERO).then_some(Layer::ZERO)
    }

    /// Returns whether the router reconsiders placed flows: in rounds until it has settled, and
    /// again after new flows or load reports.
    fn improves(&self) -> bool {
        false
    }

    /// Returns whether a round that moved `moved` of `flows` flows is the last: by default at most
    /// one in 64.
    fn settled(&self, moved: usize, flows: usize) -> bool {
        moved <= flows / 64
    }

    /// Begins a round with these flows, all of them placed.
    fn round(&mut self, _graph: &Graph, _flows: &[Flow]) {}

    /// Returns the interval of load reports in heartbeats; `None` if the router needs none.
    fn measures(&self) -> Option<u32> {
        None
    }

    /// Records a load report: the bytes that a switch sent out of each of these ports in this time.
    fn measured(&mut self, _graph: &Graph, _switch: SwitchIndex, _over: Span, _sent: &[PortBytes]) {
    }
}
