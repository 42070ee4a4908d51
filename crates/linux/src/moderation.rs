//! Fewer wake-ups under load, as NICs moderate their interrupts.
//!
//! Waking a process costs several times what forwarding a frame costs, and a process that goes
//! before all others is woken for every frame of a fast sender. So a busy switch looks at its ports
//! at intervals only, and finds many frames each time. A switch is busy where frames come faster
//! than a round trip of single frames can make them, or where they come in batches, because the
//! CPUs have so much to do that it does not run at once. A lone ping finds its switch waiting. The
//! pacer's slack is longer than the interval, so rates are kept.

use axon_wire::{Span, Time};

/// How long a busy switch lets frames gather.
const PAUSE: Span = Span::from_micros(200);
/// Load is judged over windows of this length.
const WINDOW: Span = Span::from_millis(4);
/// Frames in one window from which on the switch is busy.
const BUSY_FRAMES: u32 = 256;
/// Frames in one window from which on it is busy if they come in batches.
const BATCHED_FRAMES: u32 = 16;
/// Frames of one round that are a batch.
const BATCH: u32 = 2;

/// Judges the load of one switch.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moderation {
    window_began: Time,
    frames: u32,
    /// Rounds of the window that found frames.
    rounds: u32,
    busy: bool,
}

impl Moderation {
    /// Takes note of a round at `now` that found this many frames.
    pub fn round(&mut self, now: Time, frames: usize) {
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

    /// How long to let frames gather before the next look; zero for a switch that is not
    /// busy, which sleeps until the next frame.
    pub fn pause(&self) -> Span {
        if self.busy { PAUSE } else { Span::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many frames at this interval for a tenth of a second.
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
