//! What waits at an egress port.

use crate::ports::FrameMeta;
use axon_node::PortKind;
use axon_wire::priority::Priority;

/// A frame that waits for the wire.
#[derive(Clone, Debug)]
pub struct Queued {
    /// The frame as it will leave.
    pub meta: FrameMeta,
    /// Its length in bytes.
    pub bytes: u32,
    /// The only kind of port that it may leave by; `None` for link-local frames.
    pub kind: Option<PortKind>,
    /// The priority group at its ingress whose memory it uses.
    pub group: Priority,
}
