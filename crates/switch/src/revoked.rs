//! Switches that have yet to acknowledge route removals, after a change of the policy or before a
//! new order of the router.

use alloc::collections::BTreeMap;
use axon_link::stream::Stream;
use axon_wire::{Incarnation, NodeId};

/// Switches with unacknowledged removals.
#[derive(Debug, Default)]
pub(super) struct Revoked {
    /// Incarnation of each switch, and the number of the item after its last removal.
    waits: BTreeMap<NodeId, (Incarnation, u64)>,
}

impl Revoked {
    /// Records that removals were put on the streams to these switches.
    pub(super) fn enter(&mut self, switches: &[NodeId], streams: &BTreeMap<NodeId, Stream>) {
        self.waits.retain(|node, wait| waits(node, wait, streams));
        for node in switches {
            if let Some(stream) = streams.get(node) {
                self.waits.insert(*node, (stream.peer(), stream.end()));
            }
        }
    }

    /// Returns the switches that have not acknowledged their removals. A switch with a new
    /// incarnation is not among them: it reports its routes, which are decided again.
    pub(super) fn outstanding(
        &self,
        streams: &BTreeMap<NodeId, Stream>,
    ) -> impl Iterator<Item = NodeId> {
        self.waits.iter().filter(|(node, wait)| waits(node, wait, streams)).map(|(&node, _)| node)
    }
}

fn waits(
    node: &NodeId,
    (peer, end): &(Incarnation, u64),
    streams: &BTreeMap<NodeId, Stream>,
) -> bool {
    let stream = streams.get(node).filter(|stream| stream.peer() == *peer);
    stream.is_some_and(|stream| !stream.is_acknowledged(*end))
}
