//! Payload buffer, with its payload, its open transfers, and its users.

use crate::error::HandleFault;
use crate::handle::GENERATION_MASK;
use axon_wire::Time;
use serde::{Deserialize, Serialize};

/// State of a buffer, from its valid bit and its I/O pending count (paper 003, table 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Not valid, nothing pending: there is no payload.
    Free,
    /// Not valid, transfers pending: the payload is arriving from the network or from the agent.
    Fill,
    /// Valid, nothing pending: the payload is here and at rest.
    Valid,
    /// Valid, transfers pending: the payload is being sent to the agent or to the network.
    Drain,
}

/// Handling of a payload that has been sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnSent {
    /// The buffer is freed; the payload is returned.
    Free,
    /// The payload stays valid and may be sent again, until its buffer is reallocated.
    Keep,
}

/// Payload buffer. The paper's valid bit is set if and only if there is a payload, so the two never
/// differ.
#[derive(Clone, Debug)]
pub(crate) struct Buffer<P> {
    payload: Option<P>,
    /// Number of allocations of the buffer. Added to the cache's first generation, it gives the
    /// generation of the handle.
    pub allocations: u64,
    /// Time of the present allocation.
    pub since: Time,
    /// Number of pending transfers (I/O pending in the paper).
    pub pending: u8,
    /// True if the agent has neither sent nor released the payload. The payload must then not be
    /// evicted.
    pub held: bool,
    /// True if one of the pending transfers is the delivery to the agent.
    pub delivering: bool,
    /// True if the payload is being sent for the last time. Its handle is then invalid.
    pub last: bool,
    /// True if the agent brought the payload and it has not been sent yet. Sending it then saves
    /// nothing.
    pub own: bool,
}

impl<P> Buffer<P> {
    pub(crate) const fn new() -> Buffer<P> {
        Buffer {
            payload: None,
            allocations: 0,
            since: Time::ZERO,
            pending: 0,
            held: false,
            delivering: false,
            last: false,
            own: false,
        }
    }

    #[inline]
    pub(crate) fn state(&self) -> State {
        match (self.payload.is_some(), self.pending > 0) {
            (false, false) => State::Free,
            (false, true) => State::Fill,
            (true, false) => State::Valid,
            (true, true) => State::Drain,
        }
    }

    /// Returns whether the buffer is held or in transfer, so that it may not be reallocated.
    #[inline]
    pub(crate) fn in_use(&self) -> bool {
        self.held || self.pending > 0
    }

    /// Allocates the buffer to a payload. Returns a kept payload that it contained.
    #[inline]
    pub(crate) fn attach(&mut self, now: Time) -> Option<P> {
        let evicted = self.clear();
        self.allocations = self.allocations.wrapping_add(1);
        self.since = now;
        self.held = true;
        evicted
    }

    /// Stores the payload.
    #[inline]
    pub(crate) fn put(&mut self, payload: P) {
        self.payload = Some(payload);
    }

    #[inline]
    pub(crate) fn payload(&self) -> Option<&P> {
        self.payload.as_ref()
    }

    /// Frees the buffer. Its generation stays, so that its handle is recognised as an old one.
    #[inline]
    pub(crate) fn clear(&mut self) -> Option<P> {
        (self.pending, self.held) = (0, false);
        (self.delivering, self.last, self.own) = (false, false, false);
        self.payload.take()
    }

    /// Ends a pending transfer. If it was the last transfer of a payload that is not kept, returns
    /// the payload.
    pub(crate) fn end_transfer(&mut self) -> Option<P> {
        self.pending = self.pending.saturating_sub(1);
        if self.pending == 0 && self.last { self.clear() } else { None }
    }

    /// Returns the number of pending transfers to the network. While the buffer fills, it is 0.
    pub(crate) fn sends(&self) -> u8 {
        match self.payload {
            Some(_) => self.pending.saturating_sub(u8::from(self.delivering)),
            None => 0,
        }
    }

    /// Checks the tag of a handle. `distance` is the number of generations between the handle and
    /// the cache's first one.
    ///
    /// # Errors
    /// The buffer has been reallocated since then, or no such handle was issued.
    #[inline]
    pub(crate) fn check(&self, distance: u64) -> Result<(), HandleFault> {
        if distance == self.allocations & GENERATION_MASK && self.allocations > 0 {
            Ok(())
        } else if distance.wrapping_sub(1) < self.allocations {
            Err(HandleFault::Reallocated)
        } else {
            Err(HandleFault::Forged)
        }
    }

    /// Returns the payload of a handle if the agent may use it, that is, if it is here and has not
    /// been sent for the last time.
    #[inline]
    pub(crate) fn usable(&self) -> Result<&P, HandleFault> {
        match &self.payload {
            Some(payload) if !self.last => Ok(payload),
            None if self.pending > 0 && !self.last => Err(HandleFault::InTransfer),
            _ => Err(HandleFault::Gone),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_states_are_those_of_table_3() {
        let mut buffer = Buffer::new();
        assert_eq!(buffer.state(), State::Free);
        buffer.attach(Time::ZERO);
        buffer.pending = 2;
        assert_eq!(buffer.state(), State::Fill);
        buffer.put('p');
        buffer.end_transfer();
        assert_eq!(buffer.state(), State::Drain);
        assert_eq!(buffer.end_transfer(), None);
        assert_eq!(buffer.state(), State::Valid);
        assert_eq!(buffer.clear(), Some('p'));
        assert_eq!(buffer.state(), State::Free);
    }

    #[test]
    fn an_older_generation_is_refused_otherwise_than_one_that_never_was() {
        let mut buffer: Buffer<u8> = Buffer::new();
        assert_eq!(buffer.check(0), Err(HandleFault::Forged));
        (0..3).for_each(|_| assert_eq!(buffer.attach(Time::ZERO), None));
        let checks = [0, 1, 2, 3, 4, GENERATION_MASK].map(|distance| buffer.check(distance));
        let (forged, old) = (Err(HandleFault::Forged), Err(HandleFault::Reallocated));
        assert_eq!(checks, [forged, old, old, Ok(()), forged, forged]);
    }
}
