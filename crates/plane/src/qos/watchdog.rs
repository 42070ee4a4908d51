//! The PFC watchdog: a peer that never sends XON for a queue must not pause a fabric.
//!
//! In plain English: a queue (what waits for one port in one traffic class) is *blocked* while its
//! peer has paused it and frames wait in it. One that has been blocked for the detection time
//! without a break is in a *storm*: until that is over, its frames end here (drop), or the pauses
//! are not honoured (forward). A storm is over when the peer has not paused the queue for the
//! restoration time. So a host that floods pauses loses its own frames, and the memory that they
//! took is free for others, instead of one switch after the other filling up behind it.
//!
//! A peer that lets one frame go now and then never pauses a queue without a break. Where the
//! share is less than 100 %, breaks are allowed: a *window* of the detection time begins when a
//! queue gets blocked; as soon as the breaks in it come to more than the rest of 100 % it is given
//! up, and the next begins when the queue is blocked again; at the end of one that was not given up
//! the storm begins. So a storm is found within twice the detection time, and one without breaks at
//! the same moment as ever.
//!
//! Names and times are those of SONiC's PFC watchdog: detection time, action, restoration time.
//! It asks counters at an interval, and breaks end what it counts; here the moments themselves
//! are known.

use axon_wire::{Span, Time};

/// When pauses are a storm, and what is done then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchdogConfig {
    /// A queue that was blocked for so long is in a storm. Longer than a pause by congestion lasts:
    /// SONiC's examples have 200 to 400 ms.
    pub detection: Span,
    /// Of the detection time, the part in percent for which the queue has to have been paused, 1
    /// to 100; with 100 a break of any length ends it.
    pub paused_percent: u8,
    /// What is done in a storm.
    pub action: StormAction,
    /// A storm is over when the peer has paused nothing for so long.
    pub restoration: Span,
}

/// What is done in a storm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StormAction {
    /// Frames that wait and frames that come end as [`Drop::Watchdog`](axon_node::Drop::Watchdog).
    Drop,
    /// Pauses are not honoured: the peer gets its frames, and loses them itself if it must.
    Forward,
}

/// What the watchdog knows of one queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum StormWatch {
    /// It is not blocked.
    #[default]
    Calm,
    /// It is blocked, or was, and may turn out to be in a storm.
    Watched(Window),
    /// It is in a storm; its peer has not paused it since then, if it has not.
    Storm(Option<Time>),
}

/// A detection time that has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    began: Time,
    /// All breaks in it up to the last look.
    breaks: Span,
    /// When that was.
    looked: Time,
    /// Whether the queue was blocked then.
    blocked: bool,
}

/// What has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StormChange {
    /// A storm has begun.
    Begins,
    /// It is over.
    Ends,
}

impl StormWatch {
    /// Looks at a queue that its peer has paused or not, and in which frames wait or not.
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

    /// Whether the queue is in a storm.
    pub(crate) fn is_storm(self) -> bool {
        matches!(self, StormWatch::Storm(_))
    }

    /// When to look again, if nothing happens before.
    pub(crate) fn deadline(self, config: &WatchdogConfig) -> Option<Time> {
        match self {
            StormWatch::Watched(window) => Some(window.began + config.detection),
            StormWatch::Storm(Some(since)) => Some(since + config.restoration),
            StormWatch::Calm | StormWatch::Storm(None) => None,
        }
    }
}

impl Window {
    /// What is known of a queue of which nothing was.
    fn begin(now: Time, blocked: bool) -> StormWatch {
        let window = Window { began: now, breaks: Span::ZERO, looked: now, blocked };
        if blocked { StormWatch::Watched(window) } else { StormWatch::Calm }
    }

    /// What is known of the queue at the next look.
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
    /// The breaks in a detection time, together, that do not end it.
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

    /// What comes of a look at each of these moments: (when, stopped, waits).
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

    /// A storm that lets go for so many of each 50 ns, looked at whenever that changes. When it
    /// was first found.
    fn found(paused_percent: u8, break_nanos: u64) -> Option<u64> {
        let config = WatchdogConfig { paused_percent, ..CONFIG };
        let mut watch = StormWatch::default();
        let both = |at| [(at, true), (at + 50 - break_nanos, false)];
        let changes = (0..20).flat_map(|round| both(round * 50));
        let mut looks: Vec<(u64, bool)> = changes.collect();
        looks.dedup_by_key(|&mut (at, _)| at);
        let mut last = false;
        for (at, stopped) in looks {
            // As a body does: it calls when time has come.
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
        // Blocked for a moment, let go for 60 ns, then never again: the first window is given up.
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
        // A queue that is empty is not blocked, whatever its peer says.
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
