//! The transmit queues of a NIC: FIFO for a priority without congestion notification, else one
//! queue per flow, each at the rate of its reaction point (IEEE 802.1Q clause 31.2).
//!
//! A flow goes from one port of this host to one port of another host. Its frames carry its number
//! in a CN-TAG, by which a CNM identifies it. A flow without CNMs sends freely. A flow with CNMs
//! waits for its reaction point while others proceed. When a flow's queue is empty and its reaction
//! point is idle, the flow is removed.

use super::HostCn;
use axon_plane::qcn::RateLimiter;
use axon_wire::{Bytes, FrameBuf, MacAddr, Time};
use std::collections::{BTreeMap, VecDeque};

/// Preamble, FCS and gap in bytes, which a frame occupies on the wire in addition.
const OVERHEAD_BYTES: u64 = 24;

/// Queued frame.
#[derive(Debug)]
pub(super) struct Waiting {
    /// Arrival number of the frame at the NIC.
    pub(super) number: u64,
    /// UDP port of the socket to which the frame is charged.
    pub(super) socket: Option<u16>,
    pub(super) frame: FrameBuf,
    /// Frame length with all tags, in bytes.
    pub(super) bytes: u32,
}

/// MAC, source port and destination port of a flow; zeros if absent.
pub(super) type FlowKey = (MacAddr, u16, u16);

/// Flow under congestion notification.
#[derive(Debug)]
struct Flow {
    number: u16,
    frames: VecDeque<Waiting>,
    limiter: RateLimiter,
}

/// Frames of one priority.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// Frames without congestion notification.
    frames: VecDeque<Waiting>,
    /// Flows under congestion notification.
    flows: BTreeMap<FlowKey, Flow>,
}

/// Next frame to send of a priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) number: u64,
    pub(super) bytes: u32,
    flow: Option<FlowKey>,
}

impl Queue {
    pub(super) fn push(&mut self, waiting: Waiting) {
        self.frames.push_back(waiting);
    }

    /// Queues a frame of a flow. A new flow gets `number`.
    pub(super) fn push_to_flow(
        &mut self,
        key: FlowKey,
        waiting: Waiting,
        (cn, number): (&HostCn, u16),
    ) {
        let flow = self.flows.entry(key).or_insert_with(|| {
            let limiter = RateLimiter::new(cn.config, Bytes(0), cn.seed ^ u64::from(number));
            let limiter = limiter.expect("the NIC has checked its configuration");
            Flow { number, frames: VecDeque::new(), limiter }
        });
        flow.frames.push_back(waiting);
    }

    /// Returns whether any frame is queued.
    pub(super) fn holds_any(&self) -> bool {
        !self.frames.is_empty() || self.flows.values().any(|flow| !flow.frames.is_empty())
    }

    /// Returns the oldest frame that may be sent now.
    pub(super) fn head(&mut self, now: Time) -> Option<Head> {
        let plain = self.frames.front();
        let plain = plain.map(|next| Head { number: next.number, bytes: next.bytes, flow: None });
        let flows = self.flows.iter_mut().filter_map(|(&key, flow)| {
            let next = flow.frames.front()?;
            let ready = flow.limiter.ready_at(now) <= now;
            ready.then_some(Head { number: next.number, bytes: next.bytes, flow: Some(key) })
        });
        plain.into_iter().chain(flows).min_by_key(|head| head.number)
    }

    /// Takes the frame found by [`Queue::head`], and the number of its flow.
    pub(super) fn pop(&mut self, now: Time, head: Head) -> Option<(Waiting, Option<u16>)> {
        let Some(key) = head.flow else {
            return self.frames.pop_front().map(|waiting| (waiting, None));
        };
        let flow = self.flows.get_mut(&key)?;
        let waiting = flow.frames.pop_front()?;
        let number = flow.number;
        flow.limiter.sent(now, Bytes(u64::from(waiting.bytes) + OVERHEAD_BYTES));
        if flow.frames.is_empty() && flow.limiter.idle(now) {
            self.flows.remove(&key);
        }
        Some((waiting, Some(number)))
    }

    /// Returns the earliest time after `now` at which a waiting flow may send or its rate changes.
    pub(super) fn next_ready(&mut self, now: Time) -> Option<Time> {
        let waits = self.flows.values_mut().filter(|flow| !flow.frames.is_empty());
        let due = waits.flat_map(|flow| {
            let ready = flow.limiter.ready_at(now);
            [Some(ready), flow.limiter.deadline()]
        });
        due.flatten().filter(|&at| at > now).min()
    }

    /// Applies a CNM to the flow of this number; returns whether there is one.
    pub(super) fn notified(&mut self, now: Time, number: u16, feedback: u8) -> bool {
        let flow = self.flows.values_mut().find(|flow| flow.number == number);
        flow.map(|flow| flow.limiter.notified(now, feedback)).is_some()
    }

    /// Removes all flows and returns all frames.
    pub(super) fn clear(&mut self) -> impl Iterator<Item = FrameBuf> {
        let plain = std::mem::take(&mut self.frames);
        let flows = std::mem::take(&mut self.flows).into_values().flat_map(|flow| flow.frames);
        plain.into_iter().chain(flows).map(|waiting| waiting.frame)
    }

    /// Returns whether a flow has this number.
    pub(super) fn has_flow(&self, number: u16) -> bool {
        self.flows.values().any(|flow| flow.number == number)
    }

    /// Returns whether this flow exists.
    pub(super) fn knows(&self, key: &FlowKey) -> bool {
        self.flows.contains_key(key)
    }
}

/// Returns the flow of a frame: its destination, and its ports if it has any.
pub(super) fn key(destination: Option<MacAddr>, ports: Option<(u16, u16)>) -> FlowKey {
    let (source, target) = ports.unwrap_or_default();
    (destination.unwrap_or(MacAddr::BROADCAST), source, target)
}
