//! Fewer wake-ups under load, as NICs moderate their interrupts.
//!
//! Waking a process costs tens of microseconds on a virtual machine, some twenty times what
//! forwarding a frame costs. A port that is quiet wakes its switch with every frame, so a
//! lone ping is forwarded at once. When frames have come faster than one in half a
//! millisecond for a while, the switch looks at its ports every half millisecond instead, and
//! finds several frames each time. The pacer's slack is longer than that, so rates are kept.

use axon_wire::{Span, Time};

/// How long a busy switch lets frames gather.
const PAUSE: Span = Span::from_micros(500);
/// Load is judged over windows of this length.
const WINDOW: Span = Span::from_millis(4);
/// Frames in one window from which on the switch is busy.
const BUSY_FRAMES: u32 = 8;

/// Judges the load of one switch.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moderation {
    window_began: Time,
    frames: u32,
    busy: bool,
}

impl Moderation {
    /// Takes note of a round at `now` that found this many frames.
    pub fn round(&mut self, now: Time, frames: usize) {
        let frames = u32::try_from(frames).unwrap_or(u32::MAX);
        self.frames = self.frames.saturating_add(frames);
        if now.since(self.window_began) >= WINDOW {
            self.busy = self.frames >= BUSY_FRAMES;
            self.window_began = now;
            self.frames = 0;
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

    /// Frames at this interval for a tenth of a second.
    fn after(interval: Span) -> Moderation {
        let (mut moderation, mut now) = (Moderation::default(), Time::ZERO);
        while now < Time::from_nanos(100_000_000) {
            moderation.round(now, 1);
            now += interval;
        }
        moderation
    }

    #[test]
    fn a_quiet_switch_does_not_wait_and_a_busy_one_does() {
        assert_eq!(after(Span::from_millis(1)).pause(), Span::ZERO);
        assert_eq!(after(Span::from_micros(100)).pause(), PAUSE);
    }

    #[test]
    fn a_switch_that_falls_quiet_waits_no_more() {
        let mut moderation = after(Span::from_micros(100));
        moderation.round(Time::from_nanos(200_000_000), 1);
        moderation.round(Time::from_nanos(300_000_000), 1);
        assert_eq!(moderation.pause(), Span::ZERO);
    }

    #[test]
    fn the_pause_is_within_the_pacers_slack() {
        assert!(PAUSE * 2 <= crate::pacer::SLACK);
    }
}
