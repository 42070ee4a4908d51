//! The trait of all routers.

use super::flow::Flow;
use super::shortest::ShortestPaths;
use crate::controller::topology::{Graph, SwitchIndex};
use alloc::vec::Vec;
use axon_node::Step;
use axon_wire::message::PortBytes;
use axon_wire::{Layer, Span};
use core::fmt::Debug;

/// Finds paths between switches.
///
/// What it answers follows from its seed, the graph, its arguments and what it was told
/// before: the flows that are placed and removed, and the load that was measured. The same
/// calls in the same order give the same answers, everywhere. No answer is needed to find a
/// later one, so a controller that starts again with nothing in memory converges to good
/// routes too, if not to the same ones.
///
/// A path never comes by a switch twice.
pub trait Router: Debug + Send {
    /// Replaces `path` with the links that `flow` should take; no link at all where both ends
    /// are the same switch. Says whether there is a path, and leaves `path` empty otherwise.
    /// The flow is not counted among those that are placed.
    fn path(&mut self, graph: &Graph, flow: &Flow, path: &mut Vec<Step>) -> bool;

    /// The shortest paths of this graph, for what is no flow: control messages. Kept with
    /// the router since most need them themselves.
    fn shortest(&mut self) -> &mut ShortestPaths;

    /// A flow takes this path from now on.
    fn placed(&mut self, _path: &[Step]) {}

    /// A flow takes this path no more.
    fn removed(&mut self, _path: &[Step]) {}

    /// Whether the flow that takes `current`, and has just been [`Router::removed`] from it,
    /// is worth meta; leaves its new path in `path` if so. Asked in rounds, of every flow:
    /// when links have come, and regularly if [`Router::improves`]. What is moved may be
    /// reordered, so it should gain by it.
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

    /// The graph has changed. Says whether paths that were allowed may break a rule of its own
    /// now, so that all those in use are to be shown to [`Router::allows`].
    fn changed(&mut self, _graph: &Graph) -> bool {
        false
    }

    /// Whether a flow may take this path on this layer: always, where only its length matters.
    fn allows(&mut self, _graph: &Graph, _path: &[Step], _layer: Layer) -> bool {
        true
    }

    /// The layer that a flow is to take this path on, the one that the router has just answered or
    /// a shortest; `None` if there is none that allows it.
    fn layer(&mut self, graph: &Graph, path: &[Step]) -> Option<Layer> {
        self.allows(graph, path, Layer::ZERO).then_some(Layer::ZERO)
    }

    /// Whether it wants to look again at placed flows, round by round until it has settled,
    /// and anew when flows have come or loads were measured.
    fn improves(&self) -> bool {
        false
    }

    /// Whether a round that moved so many of so many flows is the last: by default, if it
    /// moved one in 64 or fewer, for what more there is to gain is not worth the moves.
    fn settled(&self, moved: usize, flows: usize) -> bool {
        moved <= flows / 64
    }

    /// A round begins, and these are the flows, all placed.
    fn round(&mut self, _graph: &Graph, _flows: &[Flow]) {}

    /// How often it wants to know what each link carries, in heartbeats; never without.
    fn measures(&self) -> Option<u32> {
        None
    }

    /// A switch sent this many bytes out of each of these ports in this time.
    fn measured(&mut self, _graph: &Graph, _switch: SwitchIndex, _over: Span, _sent: &[PortBytes]) {
    }
}
