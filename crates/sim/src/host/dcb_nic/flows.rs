//! The queues of a NIC: of frames in their order where a priority is not under congestion
//! notification, else of flows, each at the rate of its reaction point (IEEE 802.1Q clause
//! 31.2).
//!
//! In plain English: a flow is what goes from one port of this host to one port of one other
//! host. Its frames carry its number in a CN-TAG, by which a CNM finds it again. A flow that
//! has had no CNM sends as it likes; one that has had waits until its reaction point lets it,
//! and others go on meanwhile. When the queue of a flow is empty and its reaction point is at
//! rest, it is forgotten.

use super::HostCn;
use axon_plane::qcn::RateLimiter;
use axon_wire::{Bytes, FrameBuf, MacAddr, Time};
use std::collections::{BTreeMap, VecDeque};

/// Preamble, FCS and gap: a frame costs a flow its time on the wire.
const OVERHEAD_BYTES: u64 = 24;

/// A frame that waits.
#[derive(Debug)]
pub(super) struct Waiting {
    /// Counts frames in the order in which they came to the NIC.
    pub(super) number: u64,
    /// The socket that it is charged to, by its UDP port.
    pub(super) socket: Option<u16>,
    pub(super) frame: FrameBuf,
    /// Its length with all the tags that it leaves with.
    pub(super) bytes: u32,
}

/// Where a flow goes: MAC, source port and destination port; zeros where there is none.
pub(super) type FlowKey = (MacAddr, u16, u16);

/// A flow.
#[derive(Debug)]
struct Flow {
    number: u16,
    frames: VecDeque<Waiting>,
    limiter: RateLimiter,
}

/// The frames of one priority.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// Without congestion notification.
    frames: VecDeque<Waiting>,
    /// With it.
    flows: BTreeMap<FlowKey, Flow>,
}

/// What may leave next of a priority.
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

    /// The same for a flow; one that is new gets `number`.
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

    /// Whether any frame waits.
    pub(super) fn holds_any(&self) -> bool {
        !self.frames.is_empty() || self.flows.values().any(|flow| !flow.frames.is_empty())
    }

    /// The oldest frame that may leave now.
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

    /// Takes what [`Queue::head`] has named, and the number of its flow.
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

    /// When a flow that waits may send, or its rate changes, at the earliest after `now`.
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

    /// Forgets all flows and gives back all frames.
    pub(super) fn clear(&mut self) -> impl Iterator<Item = FrameBuf> {
        let plain = std::mem::take(&mut self.frames);
        let flows = std::mem::take(&mut self.flows).into_values().flat_map(|flow| flow.frames);
        plain.into_iter().chain(flows).map(|waiting| waiting.frame)
    }

    /// Whether a flow has this number.
    pub(super) fn has_flow(&self, number: u16) -> bool {
        self.flows.values().any(|flow| flow.number == number)
    }

    /// Whether there is such a flow.
    pub(super) fn knows(&self, key: &FlowKey) -> bool {
        self.flows.contains_key(key)
    }
}

/// The flow of a frame: its destination, and its ports if it has any.
pub(super) fn key(destination: Option<MacAddr>, ports: Option<(u16, u16)>) -> FlowKey {
    let (source, target) = ports.unwrap_or_default();
    (destination.unwrap_or(MacAddr::BROADCAST), source, target)
}
