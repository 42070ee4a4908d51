//! Telemetry of flow control at one port.

use super::text;
use alloc::vec::Vec;
use axon_wire::priority::{PRIORITIES, Priority, PrioritySet, TrafficClass};
use axon_wire::{Bytes, PortNo};
use serde::{Deserialize, Serialize};

/// PFC and PAUSE at one port (IEEE 802.1Q clause 36, 802.3 annex 31B).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowControl {
    /// The priorities that the peer has paused.
    #[serde(with = "text::priorities")]
    pub paused: PrioritySet,
    /// The priorities for which XOFF was sent to the peer and no XON since.
    #[serde(with = "text::priorities")]
    pub xoff: PrioritySet,
    /// PFC frames sent that contain a priority, XOFF and XON (`ieee8021PfcRequests`), by priority.
    pub requests: [u64; PRIORITIES],
    /// PFC frames received that contain a priority (`ieee8021PfcIndications`), by priority.
    pub indications: [u64; PRIORITIES],
    /// Bytes queued for the port, by traffic class and ingress port.
    pub queued: Vec<QueuedBytes>,
    /// Priority groups of this ingress port whose sender was sent XOFF.
    pub blocked: Vec<BlockedBuffer>,
}

/// Bytes of one traffic class from one ingress port that are queued for an egress port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuedBytes {
    /// The traffic class, 0 to 7.
    pub class: TrafficClass,
    /// The ingress port; [`PortNo::CONTROL`] for the node itself.
    pub ingress: PortNo,
    /// Bytes of frames that are queued now, without FCS.
    #[serde(rename = "queued_bytes")]
    pub bytes: Bytes,
}

/// Priority group of an ingress port, while its sender is paused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockedBuffer {
    /// The priority, 0 to 7.
    pub priority: Priority,
    /// Frames of the group that were queued and have left, since the start.
    pub left_frames: u64,
    /// Time for which no frame of the group has been queued or has left, in microseconds.
    pub blocked_us: u64,
    /// The queues with frames of the group; none if nothing is queued.
    pub queues: Vec<PausedQueue>,
}

/// Queue with frames of a blocked priority group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PausedQueue {
    /// The egress port of the queue.
    pub egress: PortNo,
    /// The priorities by which the peer has paused the queue; if none, the queue may send.
    #[serde(with = "text::priorities")]
    pub paused: PrioritySet,
}
