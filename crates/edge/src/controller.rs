//! Relation of an edge to the controller.

use axon_link::config::Timers;
use axon_wire::message::Stamp;
use axon_wire::{Incarnation, Span, Time};

/// Controller of an edge.
#[derive(Clone, Debug)]
pub(super) struct Controller {
    /// Controller whose decisions are in force, even while it is unreachable.
    incarnation: Option<Incarnation>,
    reachable: bool,
    /// Since when the controller is unreachable, if it was reachable before.
    unreachable_since: Option<Time>,
    /// Time without the controller after which all hosts are reported to it again.
    report_again_after: Span,
}

/// A controller that is reachable again, or another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Change {
    /// True if it is not the incarnation whose decisions were in force.
    pub(super) is_new: bool,
    /// True if it may have removed the hosts of this switch meanwhile.
    pub(super) has_forgotten: bool,
}

impl Controller {
    /// Creates the relation to no controller yet.
    pub(super) fn new(timers: &Timers) -> Controller {
        Controller {
            incarnation: None,
            reachable: false,
            unreachable_since: None,
            report_again_after: Span::from_ticks(timers.silence_max().ticks() / 2),
        }
    }

    /// Returns whether the controller is reachable.
    pub(super) fn is_reachable(&self) -> bool {
        self.reachable
    }

    /// Returns whether the stamp is of the current controller.
    pub(super) fn is_current(&self, stamp: Stamp) -> bool {
        self.incarnation.is_some_and(|incarnation| incarnation.number == stamp.epoch)
    }

    /// Records the controller that is reachable now, if any. Returns the change if there is a
    /// controller to report to.
    pub(super) fn changed(&mut self, now: Time, controller: Option<Incarnation>) -> Option<Change> {
        let was_reachable = core::mem::replace(&mut self.reachable, controller.is_some());
        let Some(incarnation) = controller else {
            self.unreachable_since.get_or_insert(now);
            return None;
        };
        let lost = self.unreachable_since.take();
        let is_new = self.incarnation.replace(incarnation) != Some(incarnation);
        let has_forgotten = lost.is_some_and(|since| now.since(since) >= self.report_again_after);
        (is_new || !was_reachable).then_some(Change { is_new, has_forgotten })
    }
}
