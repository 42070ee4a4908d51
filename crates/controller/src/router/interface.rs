//! The trait that all routers implement.

use super::distances::ShortestPaths;
use super::flow::Flow;
use super::loads::Loads;
use crate::topology::{Graph, SwitchIndex};
use alloc::boxed::Box;
use alloc::vec::Vec;
use axon_node::Step;
use axon_wire::message::PortBytes;
use axon_wire::{Layer, Span};
use core::fmt::Debug;

/// Router that can be cloned behind its trait, so that a whole controller can be cloned.
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
/// The results depend on the seed, the graph, the arguments, and the earlier calls that placed or
/// removed flows or reported load. The same calls in the same order give the same results on every
/// machine. Results do not depend on earlier results, so a controller that restarts with an empty
/// state converges to good routes too. It keeps those routes in the tables of edges that
/// [`Router::take_over`] accepts.
///
/// A path never visits a switch twice.
pub trait Router: Boxed + Debug + Send + Sync {
    /// Replaces `path` with the links that `flow` should take. There are none if both ends are the
    /// same switch. Returns whether there is a path. If there is none, leaves `path` empty. The
    /// flow does not count as placed yet.
    fn path(&mut self, graph: &Graph, flow: &Flow, path: &mut Vec<Step>) -> bool;

    /// Returns the shortest paths in this graph, for control messages, which do not count as flows.
    fn shortest(&mut self) -> &mut ShortestPaths;

    /// Returns the flows on each link if the router chooses paths by them, otherwise `None`.
    fn loads(&mut self) -> Option<&mut Loads> {
        None
    }

    /// Replaces `path` with the backup for `primary`, the current path of `flow`, if the router
    /// computes its own backups. Returns whether it does. Otherwise, the most disjoint path is used
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

    /// Returns whether the flow on `current`, which has just been [`Router::removed`], should move.
    /// Its new path is then in `path`. Rounds call this for every flow. There are rounds when links
    /// were added, and regularly if [`Router::improves`]. A move may reorder frames, so it should
    /// gain something.
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

    /// Handles a change in the graph. Returns whether paths that were allowed may now violate a
    /// rule of the router, so that all paths in use must be checked with [`Router::allows`].
    fn changed(&mut self, _graph: &Graph) -> bool {
        false
    }

    /// Returns whether a flow may take this path on this layer. It is always true for a router
    /// without a rule.
    fn allows(&mut self, _graph: &Graph, _path: &[Step], _layer: Layer) -> bool {
        true
    }

    /// Returns whether a link between these switches leads up in the order of the router. A path
    /// that has gone down may not go up again. In a router without an order, every link leads up.
    fn climbs(&mut self, _graph: &Graph, _from: SwitchIndex, _to: SwitchIndex) -> bool {
        true
    }

    /// Returns whether a flow may keep this path and layer, which come from an earlier incarnation
    /// of the controller.
    fn take_over(&mut self, graph: &Graph, path: &[Step], layer: Layer) -> bool {
        self.allows(graph, path, layer)
    }

    /// Registers a path that an edge has from an earlier incarnation of the controller. Frames are
    /// in flight on it until it is replaced, even if [`Router::take_over`] refuses it.
    fn found(&mut self, _graph: &Graph, _path: &[Step], _layer: Layer) {}

    /// Returns the number of the router's last rule change, if frames may still be in flight on
    /// paths that violate the new rule. Otherwise returns `None`. The number grows with each
    /// change. While there are such frames, the router returns no path that closes a cycle of
    /// buffers with these paths, and it may have no path for a flow.
    fn draining(&self) -> Option<u64> {
        None
    }

    /// Records that draining is complete. No edge has any of the paths that violated the rule when
    /// [`Router::draining`] returned its number, and the last frame on such a path has left the
    /// fabric.
    fn drained(&mut self) {}

    /// Returns the layer for a flow on this path, or `None` if no layer allows the path. The router
    /// has just chosen the path, or it is a shortest one.
    fn layer(&mut self, graph: &Graph, path: &[Step]) -> Option<Layer> {
        self.allows(graph, path, Layer::ZERO).then_some(Layer::ZERO)
    }

    /// Returns whether the router reconsiders placed flows. It does so in rounds until it has
    /// settled, and again after new flows or load reports.
    fn improves(&self) -> bool {
        false
    }

    /// Returns whether a round that moved `moved` of `flows` flows is the last one. By default, it
    /// is if at most one flow in 64 has moved.
    fn settled(&self, moved: usize, flows: usize) -> bool {
        moved <= flows / 64
    }

    /// Begins a round with these flows, which are all placed.
    fn round(&mut self, _graph: &Graph, _flows: &[Flow]) {}

    /// Returns the interval between load reports in heartbeats, or `None` if the router needs no
    /// reports.
    fn measures(&self) -> Option<u32> {
        None
    }

    /// Records a load report: the number of bytes that a switch has sent through each of these
    /// ports during this time.
    fn measured(&mut self, _graph: &Graph, _switch: SwitchIndex, _over: Span, _sent: &[PortBytes]) {
    }
}
