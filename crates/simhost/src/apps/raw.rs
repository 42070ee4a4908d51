//! Raw frame source: sends frames unmodified, like a hostile or faulty host.
//!
//! The frames are sent cyclically at an interval, bypassing the host's stack: no address, checksum
//! or tag is filled in. A frame due while the NIC is full counts as failed; the next frame follows
//! at its own time.

use super::{App, FlowStats};
use crate::stack::Stack;
use axon_wire::{Span, Time};

/// Frames to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawPlan {
    /// Frames without FCS, sent in order and repeatedly. Those below the Ethernet minimum are
    /// padded.
    pub frames: Vec<Vec<u8>>,
    /// Interval between frames, at least 10 ps. At line rate the NIC is full most of the time.
    pub interval: Span,
    /// Total number of frames; `None` runs until stopped.
    pub count: Option<u64>,
}

/// Running raw frame source.
pub(crate) struct Raw {
    plan: RawPlan,
    /// Number of frames that were due.
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
