//! The state of draining old paths; `drain.rs` says what is drained and when.

use axon_wire::{Span, Time};

/// How far draining is.
#[derive(Clone, Debug)]
pub(super) struct Drain {
    /// The change of the router's rule that it is for.
    pub(super) of: Option<u64>,
    /// The number of the last request for acknowledgements.
    pub(super) number: u64,
    pub(super) state: State,
    /// How long frames may be in flight.
    pub(super) span: Span,
}

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Routes or backups that break the rule are not all replaced yet.
    Replacing,
    /// They are; switches are to acknowledge it.
    Acknowledging,
    /// They have. The last frame has left by then.
    Until(Time),
}

impl Drain {
    /// Nothing to drain; frames are in flight for so long at most.
    pub(super) const fn new(span: Span) -> Drain {
        Drain { of: None, number: 0, state: State::Replacing, span }
    }

    /// Something that breaks the rule was in use until now.
    pub(super) const fn again(&mut self) {
        self.state = State::Replacing;
    }

    /// When frames have left.
    pub(super) const fn deadline(&self) -> Option<Time> {
        match (self.of, self.state) {
            (Some(_), State::Until(until)) => Some(until),
            _ => None,
        }
    }
}
