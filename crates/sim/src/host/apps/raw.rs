//! Sends frames as they are, whatever is in them: a hostile host, or a broken one.
//!
//! The frames go round and round, one after the other at an interval, past the host's stack: no
//! address is filled in, no checksum, no tag. A frame whose time comes while the NIC is full is
//! counted as failed; what is due then is the next one.

use super::{App, FlowStats};
use crate::host::stack::Stack;
use axon_wire::{Span, Time};

/// Frames to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawPlan {
    /// The frames, without FCS, in the order in which they are sent, over and over. Those below the
    /// Ethernet minimum are padded.
    pub frames: Vec<Vec<u8>>,
    /// From one frame to the next; at least 10 ps. At line rate the NIC is full most of the time.
    pub interval: Span,
    /// Frames to send in all; until it is stopped without.
    pub count: Option<u64>,
}

/// The frames of a running plan.
pub(crate) struct Raw {
    plan: RawPlan,
    /// Frames whose time has come.
    tried: u64,
    next: Option<Time>,
    stats: FlowStats,
}

impl Raw {
    pub(crate) fn new(plan: RawPlan, now: Time) -> Raw {
        let next = (!plan.frames.is_empty() && plan.count != Some(0)).then_some(now);
        Raw { plan, tried: 0, next, stats: FlowStats::default() }
    }

    fn send(&mut self, now: Time, stack: &mut Stack) {
        let frame = &self.plan.frames[(self.tried % self.plan.frames.len() as u64) as usize];
        if stack.nic.has_room() {
            stack.nic.put(frame);
            self.stats.count_sent(now, frame.len());
        } else {
            self.stats.failed += 1;
        }
        self.tried += 1;
    }
}

impl App for Raw {
    fn poll(&mut self, now: Time, stack: &mut Stack) -> bool {
        while let Some(due) = self.next.filter(|&due| due <= now) {
            self.send(now, stack);
            let left = self.plan.count.is_none_or(|count| self.tried < count);
            self.next = left.then_some(due + self.plan.interval.max(Span::from_ticks(1)));
            if !left {
                self.stats.completed = 1;
                self.stats.done = Some(now);
            }
        }
        false
    }

    fn deadline(&self) -> Option<Time> {
        self.next
    }

    fn stop(&mut self, now: Time, _stack: &mut Stack) {
        self.next = None;
        self.stats.done.get_or_insert(now);
    }

    fn stats(&self) -> &FlowStats {
        &self.stats
    }
}
