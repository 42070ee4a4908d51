//! Which switches have still to acknowledge that they remove routes, after a change of the policy
//! or before a new order of the router.

use crate::stream::Stream;
use alloc::collections::BTreeMap;
use axon_wire::{Incarnation, NodeId};

/// Switches with removals on their streams.
#[derive(Debug, Default)]
pub(super) struct Revoked {
    /// The incarnation of the switch, and the number of the item behind the last removal.
    waits: BTreeMap<NodeId, (Incarnation, u64)>,
}

impl Revoked {
    /// Removals were just put on the streams to these switches.
    pub(super) fn enter(&mut self, switches: &[NodeId], streams: &BTreeMap<NodeId, Stream>) {
        self.waits.retain(|node, wait| waits(node, wait, streams));
        for node in switches {
            if let Some(stream) = streams.get(node) {
                self.waits.insert(*node, (stream.peer(), stream.end()));
            }
        }
    }

    /// The switches that have not acknowledged theirs. A new incarnation of a switch has none: it
    /// reports the routes that it still has, and they are decided about anew.
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
