//! Load of a run loop: frames in each round, and wake-ups that are late.

use crate::moderation::Moderation;
use crate::status::LoopCounters;
use crate::wake_latency::WakeLatency;
use axon_wire::{Span, Time};

/// Interval between polls of the other descriptors while frames arrive.
const LOOK: Span = Span::from_millis(1);
/// Delay above which a wake-up counts as late.
const LATE: Span = Span::from_millis(1);

/// Load of a run loop.
#[derive(Default)]
pub(super) struct Load {
    moderation: Moderation,
    /// Latency bound of the CPUs, if this process carries the frames itself.
    wake_latency: Option<WakeLatency>,
    /// True if a port had more than one round's worth of frames.
    more: bool,
    /// Time of the next check of events other than frames.
    look_at: Time,
    counters: LoopCounters,
}

impl Load {
    /// Creates the state of an idle loop. If `carries`, this process carries the frames itself.
    pub(super) fn new(carries: bool) -> Load {
        Load { wake_latency: carries.then(WakeLatency::default), ..Load::default() }
    }

    /// Returns the counters of the loop.
    pub(super) const fn counters(&self) -> LoopCounters {
        self.counters
    }

    /// Returns whether a port had more than one round's worth of frames.
    pub(super) const fn has_more(&self) -> bool {
        self.more
    }

    /// Returns the time for which to accumulate frames before the next round.
    pub(super) fn pause(&self) -> Span {
        if self.more { Span::ZERO } else { self.moderation.pause() }
    }

    /// Returns the time of the next round that is needed even without frames.
    pub(super) fn due(&self) -> Option<Time> {
        self.wake_latency.as_ref().and_then(WakeLatency::due)
    }

    /// Returns whether events other than frames need no check at `now`.
    pub(super) fn skips_look(&self, now: Time) -> bool {
        now < self.look_at
    }

    /// Records a check of all events at `now`.
    pub(super) fn looked(&mut self, now: Time) {
        self.look_at = now + LOOK;
    }

    /// Counts a wake-up at `now` that was due at `wake_at`.
    pub(super) fn woken(&mut self, now: Time, wake_at: Time) {
        self.counters.rounds += 1;
        let late = now.since(wake_at);
        // Work that is due at once has no wake-up time.
        if late > LATE && wake_at > Time::ZERO {
            self.counters.late += 1;
            let late_us = late.as_nanos() / 1_000;
            self.counters.latest_us = self.counters.latest_us.max(late_us);
        }
    }

    /// Records a round at `now` that found this many frames, and whether there may be more.
    pub(super) fn round(&mut self, now: Time, frames: usize, more: bool) {
        self.more = more;
        self.moderation.round(now, frames);
        self.wake_latency.iter_mut().for_each(|latency| latency.round(now, frames));
    }
}
