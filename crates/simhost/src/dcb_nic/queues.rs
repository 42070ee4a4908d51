//! The queues of a NIC, one for each priority.

use super::HostCn;
use super::flows::{FlowKey, Head, Queue, Waiting};
use axon_wire::priority::{PRIORITIES, Priority};
use axon_wire::{FrameBuf, Time};

/// Queues of all priorities.
#[derive(Debug, Default)]
pub(super) struct Queues {
    queues: [Queue; PRIORITIES],
    /// Number of frames in all queues.
    waiting: usize,
    /// Total number of frames queued so far.
    count: u64,
    /// Number of the most recent new flow.
    last_flow: u16,
}

impl Queues {
    /// Returns the number of queued frames.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Queues a frame, which has `bytes` bytes with all tags, at its priority; with `flow`, among
    /// the frames of its flow.
    pub(super) fn put(
        &mut self,
        priority: Priority,
        (frame, bytes, socket): (FrameBuf, u32, Option<u16>),
        flow: Option<(FlowKey, &HostCn)>,
    ) {
        let waiting = Waiting { number: self.count, socket, frame, bytes };
        self.count += 1;
        self.waiting += 1;
        let Some((key, cn)) = flow else {
            return self.queues[priority.index()].push(waiting);
        };
        let new = self.new_flow(priority, &key);
        self.queues[priority.index()].push_to_flow(key, waiting, (cn, new));
    }

    /// Returns a number for a flow that may be new. It is never 0, which identifies no flow.
    fn new_flow(&mut self, priority: Priority, key: &FlowKey) -> u16 {
        let queue = &self.queues[priority.index()];
        if !queue.knows(key) {
            let next = |last: u16| if last == u16::MAX { 1 } else { last + 1 };
            self.last_flow = next(self.last_flow);
            while queue.has_flow(self.last_flow) {
                self.last_flow = next(self.last_flow);
            }
        }
        self.last_flow
    }

    /// Returns the oldest frame of a priority that may be sent now; `None` if none is queued.
    pub(super) fn head(&mut self, now: Time, priority: Priority) -> Option<Option<Head>> {
        let queue = &mut self.queues[priority.index()];
        queue.holds_any().then(|| queue.head(now))
    }

    /// Takes the frame found by [`Queues::head`], and the number of its flow.
    pub(super) fn pop(
        &mut self,
        now: Time,
        priority: Priority,
        head: Head,
    ) -> Option<(Waiting, Option<u16>)> {
        let taken = self.queues[priority.index()].pop(now, head)?;
        self.waiting -= 1;
        Some(taken)
    }

    /// Returns the earliest time after `now` at which a waiting flow may send or its rate changes.
    pub(super) fn next_ready(&mut self, now: Time) -> Option<Time> {
        self.queues.iter_mut().filter_map(|queue| queue.next_ready(now)).min()
    }

    /// Applies a CNM to a flow; returns whether it exists.
    pub(super) fn notified(
        &mut self,
        now: Time,
        (priority, flow): (Priority, u16),
        feedback: u8,
    ) -> bool {
        self.queues[priority.index()].notified(now, flow, feedback)
    }

    /// Removes all flows and returns all frames.
    pub(super) fn clear(&mut self) -> Vec<FrameBuf> {
        self.waiting = 0;
        self.queues.iter_mut().flat_map(Queue::clear).collect()
    }
}
