//! The trait of all routers.

use super::flow::Flow;
use super::loads::Loads;
use super::shortest::ShortestPaths;
use crate::controller::topology::{Graph, SwitchIndex};
use alloc::boxed::Box;
use alloc::vec::Vec;
use axon_node::Step;
use axon_wire::message::PortBytes;
use axon_wire::{Layer, Span};
use core::fmt::Debug;

/// A router that can be copied behind its trait, so that a whole controller can be.
pub trait Boxed {
    /// A copy with the same state.
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

/// Finds paths between switches.
///
/// The answers follow from the seed, the graph, the arguments and the calls before: the flows
/// placed and removed, and the measured load. The same calls in the same order give the same
/// answers on every machine. No answer depends on an earlier one, so a controller that restarts
/// with an empty state converges to good routes too. It keeps those that edges still have where
/// [`Router::take_over`] accepts them.
///
/// A path visits no switch twice.
pub trait Router: Boxed + Debug + Send + Sync {
    /// Replaces `path` with the links that `flow` should take; empty if both ends are the same
    /// switch. Returns whether there is a path, and leaves `path` empty otherwise. The flow does
    /// not count as placed yet.
    fn path(&mut self, graph: &Graph, flow: &Flow, path: &mut Vec<Step>) -> bool;

    /// The shortest paths of this graph, for control messages, which are no flows.
    fn shortest(&mut self) -> &mut ShortestPaths;

    /// The flows on each link, of a router that chooses paths by them; `None` otherwise.
    fn loads(&mut self) -> Option<&mut Loads> {
        None
    }

    /// Replaces `path` with the backup of `primary`, the present path of `flow`, if the router has
    /// one of its own; returns whether it has. Otherwise the most disjoint path is looked for
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

    /// A flow takes this path from now on.
    fn placed(&mut self, path: &[Step]) {
        if let Some(loads) = self.loads() {
            loads.add(path);
        }
    }

    /// A flow no longer takes this path.
    fn removed(&mut self, path: &[Step]) {
        if let Some(loads) = self.loads() {
            loads.remove(path);
        }
    }

    /// Whether the flow on `current`, which has just been [`Router::removed`], should move; its
    /// new path is then in `path`. Called in rounds for every flow: when links were added, and
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

    /// Handles a change of the graph. Returns whether paths that were allowed may now break a rule
    /// of the router, so that all paths in use have to be checked with [`Router::allows`].
    fn changed(&mut self, _graph: &Graph) -> bool {
        false
    }

    /// Whether a flow may take this path on this layer: always, where only its length matters.
    fn allows(&mut self, _graph: &Graph, _path: &[Step], _layer: Layer) -> bool {
        true
    }

    /// Whether a link between these switches leads up in the order of the router. A path that has
    /// gone down may not go up again; where the router has no order, every link leads up.
    fn climbs(&mut self, _graph: &Graph, _from: SwitchIndex, _to: SwitchIndex) -> bool {
        true
    }

    /// Whether a flow may stay on this path and layer, which an earlier incarnation of the
    /// controller has given it.
    fn take_over(&mut self, graph: &Graph, path: &[Step], layer: Layer) -> bool {
        self.allows(graph, path, layer)
    }

    /// A path that an edge has from an earlier incarnation of the controller, and that
    /// [`Router::take_over`] may refuse: frames are in flight on it until it is replaced.
    fn found(&mut self, _graph: &Graph, _path: &[Step], _layer: Layer) {}

    /// While frames may be in flight on paths that break a rule of the router, since it has
    /// changed: the number of that change, which grows. Meanwhile it gives out no path that closes
    /// a cycle of buffers with these, and may have none for a flow. `None` if there are no such
    /// frames.
    fn draining(&self) -> Option<u64> {
        None
    }

    /// No edge has a path any more that broke the rule when [`Router::draining`] gave its number,
    /// and the last frame on one has left the fabric.
    fn drained(&mut self) {}

    /// The layer for a flow on this path, which the router has just chosen or which is a shortest
    /// one; `None` if no layer allows it.
    fn layer(&mut self, graph: &Graph, path: &[Step]) -> Option<Layer> {
        self.allows(graph, path, Layer::ZERO).then_some(Layer::ZERO)
    }

    /// Whether the router looks at placed flows again: round by round until it has settled, and
    /// again after new flows or load reports.
    fn improves(&self) -> bool {
        false
    }

    /// Whether a round that moved `moved` of `flows` flows is the last: by default at most one in
    /// 64.
    fn settled(&self, moved: usize, flows: usize) -> bool {
        moved <= flows / 64
    }

    /// Begins a round with these flows, all of them placed.
    fn round(&mut self, _graph: &Graph, _flows: &[Flow]) {}

    /// The interval of load reports in heartbeats; `None` if the router needs none.
    fn measures(&self) -> Option<u32> {
        None
    }

    /// Enters a load report: the bytes that a switch sent out of each of these ports in this time.
    fn measured(&mut self, _graph: &Graph, _switch: SwitchIndex, _over: Span, _sent: &[PortBytes]) {
    }
}
