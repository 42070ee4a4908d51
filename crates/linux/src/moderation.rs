//! Wake-up moderation under load, similar to interrupt moderation in NICs.
//!
//! Waking a process costs several times as much as forwarding a frame, and a process with priority
//! is woken for every frame from a fast sender. A busy switch therefore polls its ports only at
//! intervals, and finds many frames each time. A switch is busy if frames arrive faster than round
//! trips of single frames can cause. It is also busy if they arrive in batches because the CPUs are
//! too loaded to run the switch at once. For a single ping, the switch is asleep and is woken at
//! once. The pacer's slack is longer than the interval, so link rates are kept.

use axon_wire::{Span, Time};

/// Time for which a busy switch accumulates frames.
const PAUSE: Span = Span::from_micros(200);
/// Window for measuring the load.
const WINDOW: Span = Span::from_millis(4);
/// Number of frames per window at which the switch counts as busy.
const BUSY_FRAMES: u32 = 256;
/// Number of frames per window at which the switch counts as busy if they come in batches.
const BATCHED_FRAMES: u32 = 16;
/// Number of frames in one round that count as a batch.
const BATCH: u32 = 2;

/// Load estimate of one switch.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moderation {
    window_began: Time,
    frames: u32,
    /// Rounds in the window that found frames.
    rounds: u32,
    busy: bool,
}

impl Moderation {
    /// Records a round at `now` that found this many frames.
    pub(crate) fn round(&mut self, now: Time, frames: usize) {
        let frames = u32::try_from(frames).unwrap_or(u32::MAX);
        self.frames = self.frames.saturating_add(frames);
        self.rounds += u32::from(frames > 0);
        if now.since(self.window_began) >= WINDOW {
            let batched = self.frames >= self.rounds.saturating_mul(BATCH);
            let enough = if batched { BATCHED_FRAMES } else { BUSY_FRAMES };
            self.busy = self.frames >= enough;
            (self.window_began, self.frames, self.rounds) = (now, 0, 0);
        }
    }

    /// Returns the time for which to accumulate frames before the next poll. It is zero for a
    /// switch that is not busy and therefore sleeps until the next frame.
    pub(crate) fn pause(&self) -> Span {
        if self.busy { PAUSE } else { Span::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the state after a tenth of a second in which this many frames came at each interval.
    fn after(interval: Span, frames: usize) -> Moderation {
        let (mut moderation, mut now) = (Moderation::default(), Time::ZERO);
        while now < Time::from_nanos(100_000_000) {
            moderation.round(now, frames);
            now += interval;
        }
        moderation
    }

    #[test]
    fn a_switch_waits_where_frames_are_many_or_come_in_batches() {
        assert_eq!(after(Span::from_millis(1), 1).pause(), Span::ZERO);
        assert_eq!(after(Span::from_micros(10), 1).pause(), PAUSE);
        assert_eq!(after(Span::from_micros(100), 4).pause(), PAUSE);
        assert_eq!(after(Span::from_millis(2), 4).pause(), Span::ZERO, "few");
    }

    #[test]
    fn a_flood_ping_whose_frames_come_one_by_one_does_not_wait() {
        assert_eq!(after(Span::from_micros(25), 1).pause(), Span::ZERO);
    }

    #[test]
    fn a_switch_that_falls_quiet_waits_no_more() {
        let mut moderation = after(Span::from_micros(10), 1);
        moderation.round(Time::from_nanos(200_000_000), 1);
        moderation.round(Time::from_nanos(300_000_000), 1);
        assert_eq!(moderation.pause(), Span::ZERO);
    }

    #[test]
    fn the_pause_is_within_the_pacers_slack() {
        assert!(PAUSE * 2 <= crate::pacer::SLACK);
    }
}
