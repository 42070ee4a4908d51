//! PFC watchdog: limits the damage of a peer that never sends XON for a queue.
//!
//! A queue (the frames for one port in one traffic class) is *blocked* while its peer has paused it
//! and frames wait in it. A queue that has been blocked for the detection time without a break is
//! in a *storm*: until that ends, its frames are dropped (drop), or the pauses are not honoured
//! (forward). A storm ends when the peer has not paused the queue for the restoration time. So a
//! host that floods pauses loses its own frames, and the memory that they used is free for others,
//! instead of switch after switch filling up.
//!
//! A peer that lets single frames pass now and then never pauses a queue without a break. Where the
//! percentage is less than 100 %, breaks are allowed: a *window* of the detection time begins when
//! a queue gets blocked; as soon as the breaks in it exceed the rest to 100 % it is abandoned, and
//! the next begins when the queue is blocked again; at the end of a window that was not abandoned
//! the storm begins. So a storm is detected within twice the detection time, and one without breaks
//! after the detection time as before.
//!
//! Names and times are those of SONiC's PFC watchdog: detection time, action, restoration time.
//! SONiC polls counters at an interval, and breaks reset them; here the exact times are used.

use axon_wire::{Span, Time};

/// Detection of storms, and the action taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchdogConfig {
    /// Time for which a queue must be blocked to be in a storm. Longer than pauses caused by
    /// congestion: SONiC's examples have 200 to 400 ms.
    pub detection: Span,
    /// Part of the detection time, in percent, for which the queue must have been paused, 1 to 100;
    /// with 100 a break of any length ends it.
    pub paused_percent: u8,
    /// Action in a storm.
    pub action: StormAction,
    /// Time without pauses of the peer after which a storm ends.
    pub restoration: Span,
}

/// Action in a storm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StormAction {
    /// Queued and arriving frames are dropped as [`Drop::Watchdog`](axon_node::Drop::Watchdog).
    Drop,
    /// Pauses are not honoured: frames are sent to the peer, which may lose them.
    Forward,
}

/// Watchdog state of one queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum StormWatch {
    /// The queue is not blocked.
    #[default]
    Calm,
    /// The queue is or was blocked, and may prove to be in a storm.
    Watched(Window),
    /// The queue is in a storm; the time since which its peer has not paused it, if it has not.
    Storm(Option<Time>),
}

/// A detection time in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    began: Time,
    /// Sum of the breaks up to the last check.
    breaks: Span,
    /// Time of the last check.
    looked: Time,
    /// True if the queue was blocked at the last check.
    blocked: bool,
}

/// Change of the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StormChange {
    /// A storm has begun.
    Begins,
    /// The storm has ended.
    Ends,
}

impl StormWatch {
    /// Checks a queue, given whether its peer has paused it and whether frames wait in it.
    pub(crate) fn look(
        &mut self,
        now: Time,
        config: &WatchdogConfig,
        (stopped, waits): (bool, bool),
    ) -> Option<StormChange> {
        let before = *self;
        *self = match before {
            StormWatch::Calm => Window::begin(now, stopped && waits),
            StormWatch::Watched(window) => window.look(now, config, (stopped, waits)),
            StormWatch::Storm(_) if stopped => StormWatch::Storm(None),
            StormWatch::Storm(None) => StormWatch::Storm(Some(now)),
            StormWatch::Storm(Some(since)) if now >= since + config.restoration => StormWatch::Calm,
            StormWatch::Storm(Some(_)) => before,
        };
        match (before.is_storm(), self.is_storm()) {
            (false, true) => Some(StormChange::Begins),
            (true, false) => Some(StormChange::Ends),
            _ => None,
        }
    }

    /// Returns whether the queue is in a storm.
    pub(crate) fn is_storm(self) -> bool {
        matches!(self, StormWatch::Storm(_))
    }

    /// Returns the time of the next check, if nothing happens before.
    pub(crate) fn deadline(self, config: &WatchdogConfig) -> Option<Time> {
        match self {
            StormWatch::Watched(window) => Some(window.began + config.detection),
            StormWatch::Storm(Some(since)) => Some(since + config.restoration),
            StormWatch::Calm | StormWatch::Storm(None) => None,
        }
    }
}

impl Window {
    /// Returns the state of a queue at its first check.
    fn begin(now: Time, blocked: bool) -> StormWatch {
        let window = Window { began: now, breaks: Span::ZERO, looked: now, blocked };
        if blocked { StormWatch::Watched(window) } else { StormWatch::Calm }
    }

    /// Returns the state of the queue after the next check.
    fn look(
        self,
        now: Time,
        config: &WatchdogConfig,
        (stopped, waits): (bool, bool),
    ) -> StormWatch {
        let blocked = stopped && waits;
        let more = if self.blocked { Span::ZERO } else { now.since(self.looked) };
        let breaks = self.breaks + more;
        let allowed = config.breaks_max();
        if breaks > allowed || (!blocked && allowed == Span::ZERO) {
            return Window::begin(now, blocked);
        }
        if now >= self.began + config.detection {
            return StormWatch::Storm(if stopped { None } else { Some(now) });
        }
        StormWatch::Watched(Window { breaks, looked: now, blocked, ..self })
    }
}

impl WatchdogConfig {
    /// Returns the sum of breaks in a detection time that do not end it.
    fn breaks_max(&self) -> Span {
        let part = u64::from(100_u8.saturating_sub(self.paused_percent));
        let ticks = u128::from(self.detection.ticks()) * u128::from(part) / 100;
        Span::from_ticks(u64::try_from(ticks).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: WatchdogConfig = WatchdogConfig {
        detection: Span::from_nanos(100),
        paused_percent: 100,
        action: StormAction::Drop,
        restoration: Span::from_nanos(50),
    };

    /// Returns the changes at each of these checks: (when, stopped, waits).
    fn looks(list: &[(u64, bool, bool)]) -> Vec<Option<StormChange>> {
        looks_of(&CONFIG, list)
    }

    fn looks_of(config: &WatchdogConfig, list: &[(u64, bool, bool)]) -> Vec<Option<StormChange>> {
        let mut watch = StormWatch::default();
        let look = |&(at, stopped, waits): &(u64, bool, bool)| {
            watch.look(Time::from_nanos(at), config, (stopped, waits))
        };
        list.iter().map(look).collect()
    }

    /// Returns when a storm is first detected that pauses with a break of this length in each 50
    /// ns, checked at every change.
    fn found(paused_percent: u8, break_nanos: u64) -> Option<u64> {
        let config = WatchdogConfig { paused_percent, ..CONFIG };
        let mut watch = StormWatch::default();
        let both = |at| [(at, true), (at + 50 - break_nanos, false)];
        let changes = (0..20).flat_map(|round| both(round * 50));
        let mut looks: Vec<(u64, bool)> = changes.collect();
        looks.dedup_by_key(|&mut (at, _)| at);
        let mut last = false;
        for (at, stopped) in looks {
            // It is called at its deadline.
            if let Some(due) = watch.deadline(&config).filter(|&due| due <= Time::from_nanos(at))
                && watch.look(due, &config, (last, true)) == Some(StormChange::Begins)
            {
                return Some(due.as_nanos());
            }
            if watch.look(Time::from_nanos(at), &config, (stopped, true))
                == Some(StormChange::Begins)
            {
                return Some(at);
            }
            last = stopped;
        }
        None
    }

    #[test]
    fn a_storm_that_lets_a_frame_go_now_and_then_is_found_by_the_share_of_time_and_only_by_it() {
        // 48 of 50: 96 %.
        assert_eq!(
            [100, 97, 96, 90].map(|share| found(share, 2)),
            [None, None, Some(100), Some(100)]
        );
        assert_eq!([99, 90, 80].map(|share| found(share, 10)), [None, None, Some(100)]);
        assert_eq!(found(51, 25), None, "two who share a port stop half of the time");
    }

    #[test]
    fn breaks_before_a_storm_put_it_off_by_less_than_a_detection_time() {
        let config = WatchdogConfig { paused_percent: 90, ..CONFIG };
        // Blocked for a moment, released for 60 ns, then never again: window 1 is abandoned.
        let list = [
            (0, true, true),
            (5, false, true),
            (65, true, true),
            (100, true, true),
            (164, true, true),
            (165, true, true),
        ];
        let mut expected = [None; 6];
        expected[5] = Some(StormChange::Begins);
        assert_eq!(looks_of(&config, &list), expected);
        // An empty queue is not blocked, even if its peer pauses it.
        let empty = [(0, true, true), (5, true, false), (100, true, false), (120, true, true)];
        assert_eq!(looks_of(&config, &empty), [None; 4]);
    }

    use alloc::vec::Vec;

    #[test]
    fn a_queue_that_is_blocked_for_the_detection_time_is_in_a_storm_until_it_was_let_alone() {
        let list = [
            (0, true, true),
            (99, true, true),
            (100, true, true),
            (300, false, true),
            (349, false, false),
            (350, false, false),
        ];
        let [begins, ends] = [Some(StormChange::Begins), Some(StormChange::Ends)];
        assert_eq!(looks(&list), [None, None, begins, None, None, ends]);
    }

    #[test]
    fn a_stop_without_frames_and_one_with_a_break_are_no_storm() {
        assert_eq!(looks(&[(0, true, false), (200, true, false)]), [None; 2]);
        assert_eq!(looks(&[(0, true, true), (99, false, true), (100, true, true)]), [None; 3]);
        let late = [(0, true, false), (90, true, true), (150, true, true), (190, true, true)];
        assert_eq!(looks(&late), [None, None, None, Some(StormChange::Begins)]);
    }

    #[test]
    fn a_stop_within_the_restoration_time_keeps_the_storm_going() {
        let list = [
            (0, true, true),
            (100, true, true),
            (120, false, false),
            (160, true, false),
            (171, false, false),
            (220, false, false),
            (221, false, false),
        ];
        let mut expected = [None; 7];
        (expected[1], expected[6]) = (Some(StormChange::Begins), Some(StormChange::Ends));
        assert_eq!(looks(&list), expected);
    }

    #[test]
    fn the_next_look_is_when_a_storm_may_begin_or_end() {
        let at = Time::from_nanos;
        assert_eq!(StormWatch::Calm.deadline(&CONFIG), None);
        assert_eq!(Window::begin(at(7), true).deadline(&CONFIG), Some(at(107)));
        assert_eq!(StormWatch::Storm(None).deadline(&CONFIG), None);
        assert_eq!(StormWatch::Storm(Some(at(7))).deadline(&CONFIG), Some(at(57)));
    }
}
