//! The watchdog of pauses: a peer that never lets a queue go on must not stop a fabric.
//!
//! In plain English: a queue (what waits for one port in one traffic class) is *blocked* while its
//! peer has stopped it and frames wait in it. One that has been blocked for the detection time
//! without a break is in a *storm*: until that is over, its frames end here (drop), or the stops
//! are not heeded (forward). A storm is over when the peer has let the queue alone for the restoration
//! time. So a host that floods stops loses its own frames, and the memory that they took is
//! free for others, instead of one switch after the other filling up behind it.
//!
//! Names and times are those of SONiC's PFC watchdog: detection time, action, restoration time.
//! It asks counters at an interval; here the moments themselves are known.

use axon_wire::{Span, Time};

/// When stops are a storm, and what is done then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchdogConfig {
    /// A queue that was blocked for so long is in a storm. Longer than an honest pause lasts:
    /// SONiC's examples have 200 to 400 ms.
    pub detection: Span,
    /// What is done in a storm.
    pub action: StormAction,
    /// A storm is over when the peer has stopped nothing for so long.
    pub restoration: Span,
}

/// What is done in a storm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StormAction {
    /// Frames that wait and frames that come end as [`Drop::Watchdog`](crate::Drop::Watchdog).
    Drop,
    /// Stops are not heeded: the peer gets its frames, and loses them itself if it must.
    Forward,
}

/// What the watchdog knows of one queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum StormWatch {
    /// It is not blocked.
    #[default]
    Calm,
    /// It is blocked since then.
    Blocked(Time),
    /// It is in a storm; its peer lets it alone since then, if it does.
    Storm(Option<Time>),
}

/// What has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// A storm has begun.
    Begins,
    /// It is over.
    Ends,
}

impl StormWatch {
    /// Looks at a queue that its peer has stopped or not, and in which frames wait or not.
    pub(crate) fn look(
        &mut self,
        now: Time,
        config: &WatchdogConfig,
        (stopped, waits): (bool, bool),
    ) -> Option<Turn> {
        let before = *self;
        *self = match before {
            StormWatch::Calm | StormWatch::Blocked(_) if !stopped || !waits => StormWatch::Calm,
            StormWatch::Calm => StormWatch::Blocked(now),
            StormWatch::Blocked(since) if now >= since + config.detection => {
                StormWatch::Storm(None)
            }
            StormWatch::Storm(_) if stopped => StormWatch::Storm(None),
            StormWatch::Storm(None) => StormWatch::Storm(Some(now)),
            StormWatch::Storm(Some(since)) if now >= since + config.restoration => StormWatch::Calm,
            StormWatch::Blocked(_) | StormWatch::Storm(Some(_)) => before,
        };
        match (before.is_storm(), self.is_storm()) {
            (false, true) => Some(Turn::Begins),
            (true, false) => Some(Turn::Ends),
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
            StormWatch::Blocked(since) => Some(since + config.detection),
            StormWatch::Storm(Some(since)) => Some(since + config.restoration),
            StormWatch::Calm | StormWatch::Storm(None) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: WatchdogConfig = WatchdogConfig {
        detection: Span::from_nanos(100),
        action: StormAction::Drop,
        restoration: Span::from_nanos(50),
    };

    /// What comes of a look at each of these moments: (when, stopped, waits).
    fn looks(list: &[(u64, bool, bool)]) -> Vec<Option<Turn>> {
        let mut watch = StormWatch::default();
        let look = |&(at, stopped, waits): &(u64, bool, bool)| {
            watch.look(Time::from_nanos(at), &CONFIG, (stopped, waits))
        };
        list.iter().map(look).collect()
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
        let [begins, ends] = [Some(Turn::Begins), Some(Turn::Ends)];
        assert_eq!(looks(&list), [None, None, begins, None, None, ends]);
    }

    #[test]
    fn a_stop_without_frames_and_one_with_a_break_are_no_storm() {
        assert_eq!(looks(&[(0, true, false), (200, true, false)]), [None; 2]);
        assert_eq!(looks(&[(0, true, true), (99, false, true), (100, true, true)]), [None; 3]);
        let late = [(0, true, false), (90, true, true), (150, true, true), (190, true, true)];
        assert_eq!(looks(&late), [None, None, None, Some(Turn::Begins)]);
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
        (expected[1], expected[6]) = (Some(Turn::Begins), Some(Turn::Ends));
        assert_eq!(looks(&list), expected);
    }

    #[test]
    fn the_next_look_is_when_a_storm_may_begin_or_end() {
        let at = Time::from_nanos;
        assert_eq!(StormWatch::Calm.deadline(&CONFIG), None);
        assert_eq!(StormWatch::Blocked(at(7)).deadline(&CONFIG), Some(at(107)));
        assert_eq!(StormWatch::Storm(None).deadline(&CONFIG), None);
        assert_eq!(StormWatch::Storm(Some(at(7))).deadline(&CONFIG), Some(at(57)));
    }
}
