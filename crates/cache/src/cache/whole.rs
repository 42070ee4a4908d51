//! Whole operations, in which a frame changes hands at once.

use super::{Attached, PayloadCache};
use crate::error::{FetchError, Full, HandleError, HandleFault, Refused, ReplaceError, Side};
use crate::handle::Handle;
use axon_wire::Time;
use core::ops::Range;

impl<P: AsRef<[u8]>> PayloadCache<P> {
    /// Stores a received frame whose head is given to the agent at the same time. The buffer is
    /// then valid.
    ///
    /// # Errors
    /// All buffers are in use. The frame is returned.
    #[inline]
    pub fn receive(&mut self, now: Time, payload: P) -> Result<Attached<P>, Refused<P, Full>> {
        let head = self.head_of(payload.as_ref().len());
        let attached = self.keep(Side::Receive, now, payload)?;
        self.counters.copied_to_agent_bytes += head as u64;
        Ok(attached)
    }

    /// Stores a payload that the agent brings: its own packet, or a copy of a payload that was
    /// missed. It is held until the agent sends it.
    ///
    /// # Errors
    /// All buffers of the send segment are in use. The payload is returned.
    pub fn bring(&mut self, now: Time, payload: P) -> Result<Attached<P>, Refused<P, Full>> {
        let bytes = payload.as_ref().len();
        let attached = self.keep(Side::Send, now, payload)?;
        self.counters.copied_from_agent_bytes += bytes as u64;
        Ok(attached)
    }

    /// Replaces the payload of `handle` by one that the agent brings, and invalidates `handle`. The
    /// new payload is held in the send segment. Returns its buffer and the old payload.
    ///
    /// # Errors
    /// The handle is refused, a transfer of the old payload is pending, or all buffers of the send
    /// segment are in use. In each case, the old payload is unchanged and the new one is returned.
    pub fn replace(
        &mut self,
        now: Time,
        handle: Handle,
        payload: P,
    ) -> Result<(Attached<P>, P), Refused<P, ReplaceError>> {
        let place = self.of_agent(handle).and_then(|place| {
            self.at_rest(place, handle)?;
            Ok(place)
        });
        let place = match place {
            Ok(place) => place,
            Err(error) => return Err(Refused { payload, error: error.into() }),
        };
        if self.send_room() == 0 {
            self.counters.send_full += 1;
            let full = Full { side: Side::Send, buffers: self.store.of(Side::Send).len() };
            return Err(Refused { payload, error: full.into() });
        }
        let Some(old) = self.store.change(place, |buffer| buffer.clear()) else {
            return Err(Refused { payload, error: HandleFault::Gone.of(handle).into() });
        };
        self.counters.replaced += 1;
        // The check above ensures that there is room.
        match self.bring(now, payload) {
            Ok(attached) => Ok((attached, old)),
            Err(Refused { payload, error }) => Err(Refused { payload, error: error.into() }),
        }
    }

    /// Removes a payload in order to send it, and counts a hit. The buffer is then free. The agent
    /// brings a new head of `head_bytes` bytes, or 0 if the head has not changed.
    ///
    /// # Errors
    /// The handle is refused ([`HandleFault::Reallocated`] is a miss), or a transfer of the payload
    /// is pending, so that it may not be removed. In that case, see
    /// [`begin_send`](PayloadCache::begin_send).
    #[inline]
    pub fn send(&mut self, handle: Handle, head_bytes: usize) -> Result<P, HandleError> {
        let place = self.of_send(handle)?;
        self.at_rest(place, handle)?;
        self.count_send(place, head_bytes);
        self.counters.sent_for_good += 1;
        let taken = self.store.change(place, |buffer| buffer.clear());
        taken.ok_or(HandleFault::Gone.of(handle))
    }

    /// Returns a payload so that a copy of it can be sent, keeps it, and counts a hit. The payload
    /// may be sent again until its buffer is reallocated, but it is no longer protected from that.
    ///
    /// # Errors
    /// The handle is refused ([`HandleFault::Reallocated`] is a miss), or the payload is not here
    /// yet.
    pub fn send_kept(&mut self, handle: Handle, head_bytes: usize) -> Result<&P, HandleError> {
        let place = self.of_send(handle)?;
        self.count_send(place, head_bytes);
        self.store.change(place, |buffer| buffer.held = false);
        self.store.at(place).payload().ok_or(HandleFault::Gone.of(handle))
    }

    /// Removes a payload that the agent drops. The buffer is then free.
    ///
    /// # Errors
    /// The handle is refused, or a transfer of the payload is pending.
    pub fn release(&mut self, handle: Handle) -> Result<P, HandleError> {
        let place = self.of_agent(handle)?;
        self.at_rest(place, handle)?;
        self.counters.released += 1;
        let taken = self.store.change(place, |buffer| buffer.clear());
        taken.ok_or(HandleFault::Gone.of(handle))
    }

    /// Returns part of a payload, so that it can be copied to the agent. The range is in bytes from
    /// the start of the frame, including its head.
    ///
    /// # Errors
    /// The handle is refused, the payload is not here yet, or the range is outside the frame.
    pub fn fetch(&mut self, handle: Handle, range: Range<usize>) -> Result<&[u8], FetchError> {
        let place = self.of_agent(handle)?;
        let Range { start, end } = range;
        let bytes = self.store.at(place).payload().map_or(&[][..], P::as_ref);
        let Some(part) = bytes.get(range) else {
            return Err(FetchError::Range { handle, start, end, bytes: bytes.len() });
        };
        self.counters.copied_to_agent_bytes += part.len() as u64;
        Ok(part)
    }

    /// Allocates a buffer to a payload that is already here and has no pending transfers.
    #[inline]
    fn keep(&mut self, side: Side, now: Time, payload: P) -> Result<Attached<P>, Refused<P, Full>> {
        let (place, evicted) = match self.attach(side, now) {
            Ok(attached) => attached,
            Err(error) => return Err(Refused { payload, error }),
        };
        // The buffer has been allocated, so it is in use before and after this.
        self.store.of_mut(side).at_mut(place.1).put(payload);
        Ok(Attached { handle: self.store.handle(place), evicted })
    }
}
