//! State of one port of the reference: its kind, queues, routes and limits.

use super::limit::Limit;
use super::rules;
use crate::config::PlaneConfig;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use axon_node::{PortKind, PortVlans, RouteKey};
use axon_wire::header::HopWidth;
use axon_wire::vlan::VlanId;
use axon_wire::{FrameBuf, PortNo, Route};

/// One port.
#[derive(Clone, Debug)]
pub(super) struct Port {
    pub(super) kind: PortKind,
    pub(super) vlans: Option<PortVlans>,
    pub(super) up: bool,
    pub(super) busy: bool,
    /// Queues of link frames of the control plane, control messages, and all others, in this order.
    pub(super) queues: [VecDeque<Queued>; 3],
    pub(super) routes: BTreeMap<RouteKey, Route>,
    /// Keys of routes used since the last query.
    pub(super) used: BTreeSet<RouteKey>,
    pub(super) misses: Limit,
    pub(super) link_frames: Limit,
    pub(super) addressed: Limit,
    pub(super) errors: Limit,
    /// Bytes of headers between switches that its hosts have caused since they were last paused.
    pub(super) header_bytes: usize,
}

impl Port {
    pub(super) fn new(config: &PlaneConfig) -> Port {
        Port {
            kind: PortKind::Unknown,
            vlans: None,
            up: false,
            busy: false,
            queues: Default::default(),
            routes: BTreeMap::new(),
            used: BTreeSet::new(),
            misses: Limit::new(config.punt),
            link_frames: Limit::new(config.punt),
            addressed: Limit::new(config.addressed),
            errors: Limit::new(config.punt),
            header_bytes: 0,
        }
    }

    /// Returns the VLAN of a host's frame, none without VLANs at the port. `None` if not allowed.
    pub(super) fn vlan_of(&self, frame: &FrameBuf) -> Option<VlanId> {
        match &self.vlans {
            Some(vlans) => vlans.of_frame(frame.bytes()),
            None => Some(VlanId::NONE),
        }
    }

    pub(super) fn queued_frames(&self) -> u64 {
        self.queues.iter().map(|queue| queue.len() as u64).sum()
    }

    pub(super) fn queued_bytes(&self) -> u64 {
        self.queues.iter().map(bytes_of).sum()
    }
}

/// Returns the bytes of the frames in a queue.
pub(super) fn bytes_of(queue: &VecDeque<Queued>) -> u64 {
    queue.iter().map(|queued| queued.frame.bytes().len() as u64).sum()
}

/// Returns the queue of a port that a frame belongs to.
pub(super) fn queue_of(queued: &Queued, width: HopWidth) -> usize {
    match queued.kind {
        None => 0,
        Some(PortKind::Axon) if rules::is_control(queued.frame.bytes(), width) => 1,
        Some(_) => 2,
    }
}

#[derive(Clone, Debug)]
pub(super) struct Queued {
    pub(super) frame: FrameBuf,
    pub(super) ingress: PortNo,
    /// The kind of port that the frame was made for; `None` if it suits any.
    pub(super) kind: Option<PortKind>,
    /// Byte offset of the head of a probe in the frame, if it is one.
    pub(super) probe: Option<usize>,
}
