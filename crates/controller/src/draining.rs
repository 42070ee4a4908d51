//! State of draining old paths; see `drain.rs`.

use axon_wire::{Span, Time};

/// Progress of draining.
#[derive(Clone, Debug)]
pub(super) struct Drain {
    /// Change of the router's rule that is draining.
    pub(super) of: Option<u64>,
    /// Number of the last request for acknowledgements.
    pub(super) number: u64,
    pub(super) state: State,
    /// Maximum time that frames are in flight.
    pub(super) span: Span,
}

/// Current step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
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
}
