//! Draining: waits for frames on old paths while the router replaces its rule with a new one.
//!
//! A router that orders the switches may have to make a new order after failures for which no link
//! can be reoriented (`router/up_down`). Paths in the old and the new order together may close a
//! cycle of buffers. So the router returns only paths that close no cycle with the old ones, which
//! edges may still have and on which frames may be in flight. A flow without such a path loses its
//! route and gets none until draining ends. The steps are:
//!
//! 1. Routes and backups that violate the new order are replaced or removed. The changes to routes
//!    are sent on the streams at once, and those to backups after one pass over all of them.
//! 2. Every switch with links acknowledges its stream up to this point. From then on, no frame
//!    enters such a path. A switch that is cut off from the others is skipped, because none of its
//!    frames leave it. Undecided routes from an earlier incarnation delay this step, because they
//!    are in use.
//! 3. The time [`Timers::drain_max`](axon_link::config::Timers::drain_max) passes, within which the
//!    last frame on an old path arrives.
//! 4. The router drops the old paths. Flows without a route get one as soon as their edge repeats
//!    its request.
//!
//! A violation found in the meantime, such as a report from an edge that has used an old backup,
//! restarts the steps.

use crate::effect::Effect;
use alloc::vec::Vec;
use axon_wire::{Span, Time};

/// Progress of draining.
#[derive(Clone, Debug)]
pub(super) struct Drain {
    /// Number of the router's rule change that is draining, if any.
    of: Option<u64>,
    /// Number of the last request for acknowledgements.
    number: u64,
    state: State,
    /// Maximum time that a frame is in flight.
    span: Span,
}

/// Current step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Routes or backups that violate the rule are being replaced.
    Replacing,
    /// All are replaced, but switches have yet to acknowledge it.
    Acknowledging,
    /// All replacements are acknowledged. The last frame on an old path has arrived by this time.
    Until(Time),
}

impl Drain {
    /// Creates the idle state. `span` is the maximum time that a frame is in flight.
    pub(super) const fn new(span: Span) -> Drain {
        Drain { of: None, number: 0, state: State::Replacing, span }
    }

    /// Restarts draining, because a path that violates the rule was in use until now.
    pub(super) const fn again(&mut self) {
        self.state = State::Replacing;
    }

    /// Returns when all frames on old paths have arrived.
    pub(super) const fn deadline(&self) -> Option<Time> {
        match (self.of, self.state) {
            (Some(_), State::Until(until)) => Some(until),
            _ => None,
        }
    }

    /// Handles the acknowledgement of the request `number` by every switch with links.
    pub(super) fn acknowledged(&mut self, now: Time, number: u64) {
        if self.state == State::Acknowledging && self.number == number {
            self.state = State::Until(now + self.span);
        }
    }

    /// Advances the draining for the router's rule change `of` as far as possible. `is_replaced` is
    /// true if all routes and backups follow the new rule. Returns whether all frames on old paths
    /// have arrived.
    pub(super) fn advance(
        &mut self,
        now: Time,
        of: Option<u64>,
        is_replaced: bool,
        out: &mut Vec<Effect>,
    ) -> bool {
        if self.of != of {
            self.of = of;
            self.again();
        }
        match self.state {
            State::Replacing if of.is_some() && is_replaced => {
                self.state = State::Acknowledging;
                self.number += 1;
                out.push(Effect::AwaitAcknowledged { number: self.number });
            }
            State::Until(until) if of.is_some() && until <= now => {
                self.of = None;
                return true;
            }
            _ => {}
        }
        false
    }
}
