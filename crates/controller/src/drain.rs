//! Draining: waiting for frames on old paths while a new rule of the router replaces the old one.
//!
//! A router with an order of the switches may have to make a new one, after failures for which no
//! link can be reoriented (`router/up_down`). Paths of both orders together may close a cycle of
//! buffers. So the router returns only paths that close no cycle with the old ones, which edges may
//! still have and on which frames may be in flight. A flow without such a path loses its route and
//! gets none until draining ends. The steps are:
//!
//! 1. Routes and backups that violate the new order are replaced or removed. Routes are on the
//!    streams at once, backups after one pass over all of them.
//! 2. Every switch with links acknowledges its stream up to there: no frame takes such a path any
//!    more. A switch that is cut off from the others is skipped, since none of its frames leaves
//!    it. Routes of an earlier incarnation without a decision delay this step, as they are in use.
//! 3. [`Timers::drain_max`](axon_link::config::Timers::drain_max) passes, in which the last frame
//!    on an old path arrives.
//! 4. The router drops the old paths. Flows without a route get one as soon as their edge repeats
//!    its request.
//!
//! A violation found meanwhile, such as the report of an edge that has used an old backup, restarts
//! the steps.

use crate::effect::Effect;
use alloc::vec::Vec;
use axon_wire::vlan::VlanId;
use axon_wire::{Span, Time};

/// Progress of draining.
#[derive(Clone, Debug)]
pub(super) struct Drain {
    /// Change of the router's rule that is draining.
    of: Option<u64>,
    /// Number of the last request for acknowledgements.
    number: u64,
    state: State,
    /// Maximum time that frames are in flight.
    span: Span,
}

/// Current step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Routes or backups that violate the rule are being replaced.
    Replacing,
    /// All are replaced; switches have yet to acknowledge it.
    Acknowledging,
    /// All are acknowledged. The last frame has arrived by this time.
    Until(Time),
}

impl Drain {
    /// Creates the idle state; `span` is the maximum time that frames are in flight.
    pub(super) const fn new(span: Span) -> Drain {
        Drain { of: None, number: 0, state: State::Replacing, span }
    }

    /// Restarts draining, because a violating path was in use until now.
    pub(super) const fn again(&mut self) {
        self.state = State::Replacing;
    }

    /// Returns when all frames have arrived.
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

    /// Advances the draining of the router's change `of` as far as possible; `is_replaced`
    /// is true if all routes and backups follow the new rule. Returns whether all frames have
    /// arrived.
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
                out.push(Effect::AwaitAcknowledged { vlan: VlanId::NONE, number: self.number });
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
