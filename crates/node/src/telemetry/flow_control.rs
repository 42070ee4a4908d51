//! What flow control does at one port.

use super::text;
use alloc::vec::Vec;
use axon_wire::priority::{PRIORITIES, Priority, PrioritySet, TrafficClass};
use axon_wire::{Bytes, PortNo};
use serde::{Deserialize, Serialize};

/// PFC and PAUSE at one port (IEEE 802.1Q clause 36, 802.3 annex 31B).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowControl {
    /// The priorities that its peer has paused.
    #[serde(with = "text::priorities")]
    pub paused: PrioritySet,
    /// The priorities for which its peer was sent XOFF and no XON since.
    #[serde(with = "text::priorities")]
    pub xoff: PrioritySet,
    /// PFC frames sent that name a priority, XOFF and XON (`ieee8021PfcRequests`), by priority.
    pub requests: [u64; PRIORITIES],
    /// The same of frames received (`ieee8021PfcIndications`), by priority.
    pub indications: [u64; PRIORITIES],
    /// What is queued for the port, by traffic class and the port it came in by.
    pub queued: Vec<QueuedBytes>,
    /// Buffers of what came in by this port whose sender was sent XOFF.
    pub blocked: Vec<BlockedBuffer>,
}

/// Bytes of one traffic class that came in by one port and are queued for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuedBytes {
    /// The traffic class, 0 to 7.
    pub class: TrafficClass,
    /// The port that they came in by; [`PortNo::CONTROL`] for the node itself.
    pub ingress: PortNo,
    /// Bytes of frames that are queued now, without FCS.
    #[serde(rename = "queued_bytes")]
    pub bytes: Bytes,
}

/// What came in by a port with one priority, while its sender is to pause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockedBuffer {
    /// The priority, 0 to 7.
    pub priority: Priority,
    /// Frames of it that were queued and have left, since the start.
    pub left_frames: u64,
    /// For how long no frame of it has been queued or has left, in microseconds.
    pub blocked_us: u64,
    /// The queues that its frames are in; none if nothing is queued.
    pub queues: Vec<PausedQueue>,
}

/// A queue that frames of a blocked buffer are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PausedQueue {
    /// The port that it is for.
    pub egress: PortNo,
    /// The priorities by which its peer has paused it; if none, it may send.
    #[serde(with = "text::priorities")]
    pub paused: PrioritySet,
}
