//! Queue entries of an egress port.

use crate::ports::FrameMeta;
use axon_node::PortKind;
use axon_wire::priority::Priority;

/// A queued frame.
#[derive(Clone, Debug)]
pub struct Queued {
    /// The frame as it will leave.
    pub meta: FrameMeta,
    /// The length of the frame in bytes.
    pub bytes: u32,
    /// The only kind of port that the frame may leave by; `None` for link-local frames.
    pub kind: Option<PortKind>,
    /// The priority group at its ingress whose memory the frame uses.
    pub group: Priority,
}
