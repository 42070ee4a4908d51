//! Single steps of a frame's transfers, for runtimes in which each transfer takes time.
//!
//! The pending count is that of paper 003, section 3.1. A buffer is allocated with two transfers
//! pending. The first one fills it and sets the valid bit, and the second one drains it. For a
//! received frame, the first transfer is from the network to the buffer and the second from the
//! buffer to the agent. For a payload that the agent brings, they are from the agent to the buffer
//! and from the buffer to the network. Sending a payload that is already here needs no transfer
//! from the agent, so it adds one pending transfer.

use super::{Attached, PayloadCache};
use crate::buffer::{Buffer, OnSent, State};
use crate::error::{Full, HandleError, HandleFault, Refused, Side};
use crate::handle::Handle;
use crate::store::Place;
use axon_wire::Time;

impl<P: AsRef<[u8]>> PayloadCache<P> {
    /// Allocates a buffer to a frame that begins to arrive. The buffer then fills, with two
    /// transfers pending. [`filled`](PayloadCache::filled) and
    /// [`delivered`](PayloadCache::delivered) end them. The hold time of the payload starts here.
    ///
    /// # Errors
    /// All buffers are in use.
    pub fn begin_receive(&mut self, now: Time) -> Result<Attached<P>, Full> {
        let (place, evicted) = self.attach(Side::Receive, now)?;
        self.store.change(place, |buffer| {
            buffer.pending = 2;
            buffer.delivering = true;
        });
        Ok(Attached { handle: self.store.handle(place), evicted })
    }

    /// Allocates a buffer in the send segment to a payload that begins to come from the agent, and
    /// that goes to the network as soon as it is here. [`filled`](PayloadCache::filled) and
    /// [`end_send`](PayloadCache::end_send) end its two transfers.
    ///
    /// # Errors
    /// All buffers of the send segment are in use.
    pub fn begin_own(&mut self, now: Time, on_sent: OnSent) -> Result<Attached<P>, Full> {
        let (place, evicted) = self.attach(Side::Send, now)?;
        self.counters.own += 1;
        self.store.change(place, |buffer| {
            buffer.pending = 2;
            (buffer.own, buffer.held) = (false, false);
            buffer.last = on_sent == OnSent::Free;
        });
        Ok(Attached { handle: self.store.handle(place), evicted })
    }

    /// Ends the first transfer. The payload is now in the buffer, which is valid and drains.
    ///
    /// # Errors
    /// The buffer is not filling, because the handle was never issued or the cache has been reset
    /// since. The payload is returned, and nothing is counted.
    pub fn filled(&mut self, handle: Handle, payload: P) -> Result<(), Refused<P, HandleError>> {
        let fills = |buffer: &Buffer<P>| buffer.state() == State::Fill;
        let place = match self.in_transfer(handle, fills) {
            Ok(place) => place,
            Err(error) => return Err(Refused { payload, error }),
        };
        if place.0 == Side::Send {
            self.counters.copied_from_agent_bytes += payload.as_ref().len() as u64;
        }
        self.store.change(place, |buffer| {
            buffer.put(payload);
            // The second transfer is still pending, so the payload stays.
            let _ = buffer.end_transfer();
        });
        Ok(())
    }

    /// Ends the transfer of a frame's head to the agent. Returns the payload if it has been sent
    /// for good in the meantime.
    ///
    /// # Errors
    /// No such transfer is pending. Nothing is counted.
    pub fn delivered(&mut self, handle: Handle) -> Result<Option<P>, HandleError> {
        let delivers = |buffer: &Buffer<P>| buffer.delivering && buffer.payload().is_some();
        let place = self.in_transfer(handle, delivers)?;
        let bytes = self.store.at(place).payload().map_or(0, |payload| payload.as_ref().len());
        self.counters.copied_to_agent_bytes += self.head_of(bytes) as u64;
        self.store.change(place, |buffer| buffer.delivering = false);
        Ok(self.end_transfer(place))
    }

    /// Begins to send a payload that is here, valid or draining, and counts a hit. The agent brings
    /// a new head of `head_bytes` bytes, or 0 if the head has not changed.
    /// [`end_send`](PayloadCache::end_send) ends the transfer.
    ///
    /// # Errors
    /// The handle is refused ([`HandleFault::Reallocated`] is a miss), the payload is not here yet,
    /// or 255 transfers of it are pending.
    pub fn begin_send(
        &mut self,
        handle: Handle,
        head_bytes: usize,
        on_sent: OnSent,
    ) -> Result<&P, HandleError> {
        let place = self.of_send(handle)?;
        let Some(pending) = self.store.at(place).pending.checked_add(1) else {
            return Err(self.counters.refused(HandleFault::InTransfer.of(handle)));
        };
        self.count_send(place, head_bytes);
        self.store.change(place, |buffer| {
            (buffer.pending, buffer.held) = (pending, false);
            buffer.last = on_sent == OnSent::Free;
        });
        // Before this, a kept payload was not in use.
        self.counters.note_in_use(place.0, self.store.of(place.0).in_use());
        self.store.at(place).payload().ok_or(HandleFault::Gone.of(handle))
    }

    /// Ends a transfer of a payload to the network. If the payload is not kept and this was its
    /// last transfer, returns the payload. The buffer is then free.
    ///
    /// # Errors
    /// No such transfer is pending. Nothing is counted.
    pub fn end_send(&mut self, handle: Handle) -> Result<Option<P>, HandleError> {
        let place = self.in_transfer(handle, |buffer| buffer.sends() > 0)?;
        Ok(self.end_transfer(place))
    }

    fn end_transfer(&mut self, place: Place) -> Option<P> {
        let sent = self.store.change(place, Buffer::end_transfer);
        self.counters.sent_for_good += u64::from(sent.is_some());
        sent
    }

    /// Returns the buffer of a transfer whose end the runtime has reported.
    fn in_transfer(
        &self,
        handle: Handle,
        is_pending: impl FnOnce(&Buffer<P>) -> bool,
    ) -> Result<Place, HandleError> {
        let place = self.store.locate(handle)?;
        match is_pending(self.store.at(place)) {
            true => Ok(place),
            false => Err(HandleFault::NoTransfer.of(handle)),
        }
    }
}
