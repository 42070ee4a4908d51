//! Payload cache of one agent: its buffers and their handles.

mod transfers;
mod whole;

use crate::buffer::State;
use crate::config::CacheConfig;
use crate::counters::CacheCounters;
use crate::error::{ConfigError, Full, HandleError, HandleFault, Side};
use crate::handle::Handle;
use crate::store::{Place, Store};
use axon_wire::{Span, Time};

/// Allocated buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attached<P> {
    /// Name of the payload for the agent.
    pub handle: Handle,
    /// Kept payload that was evicted. The runtime can reuse its memory.
    pub evicted: Option<P>,
}

/// Payloads of the frames whose heads one agent has (paper 003, section 3).
///
/// A payload is the whole frame `P` of the runtime, and the agent has a copy of its first
/// [`head_bytes`](CacheConfig::head_bytes). There are two rings of buffers, and allocation on each
/// is circular. One ring is for frames that come in. The other is the small send segment for
/// payloads that the agent brings, so that these do not displace the others.
///
/// A buffer is in use if the agent has neither sent nor released its payload, or if a transfer is
/// pending. Such a buffer is never reallocated, and allocation skips it on the ring. If all buffers
/// are in use, the caller gets [`Full`] and waits, or drops the frame and counts that. Only a
/// payload that was sent and kept ([`OnSent::Keep`](crate::OnSent::Keep)) is evicted.
///
/// **Whole operations** ([`receive`](PayloadCache::receive), [`send`](PayloadCache::send)) are for
/// a runtime in which a frame changes hands at once. If transfers take time, as with DMA, there are
/// single steps; see [`begin_receive`](PayloadCache::begin_receive). Both may be mixed.
///
/// Every operation except [`reset`](PayloadCache::reset) takes constant time, and none panics.
#[derive(Clone, Debug)]
pub struct PayloadCache<P> {
    store: Store<P>,
    counters: CacheCounters,
    head_bytes: usize,
    hold_max: Option<Span>,
}

impl<P: AsRef<[u8]>> PayloadCache<P> {
    /// Creates a cache whose buffers are all free.
    ///
    /// # Errors
    /// A setting is out of range.
    pub fn new(config: CacheConfig) -> Result<PayloadCache<P>, ConfigError> {
        config.check()?;
        Ok(PayloadCache {
            store: Store::new(&config),
            counters: CacheCounters::default(),
            head_bytes: config.head_bytes,
            hold_max: config.hold_max,
        })
    }

    /// Returns the number of frames that can be received now, each into one buffer.
    #[inline]
    pub fn room(&self) -> usize {
        self.store.of(Side::Receive).room()
    }

    /// Returns the number of payloads that the agent can bring now, each into one buffer of the
    /// send segment.
    #[inline]
    pub fn send_room(&self) -> usize {
        self.store.of(Side::Send).room()
    }

    /// Returns the number of buffers in use, that is, held by the agent or in transfer. The send
    /// segment is not counted.
    pub fn in_use(&self) -> usize {
        self.store.of(Side::Receive).in_use()
    }

    /// Returns the number of buffers in use in the send segment.
    pub fn send_in_use(&self) -> usize {
        self.store.of(Side::Send).in_use()
    }

    /// Returns the head length of a frame with `frame_bytes` bytes, in bytes.
    pub(crate) fn head_of(&self, frame_bytes: usize) -> usize {
        frame_bytes.min(self.head_bytes)
    }

    /// Returns the counters of the cache.
    pub fn counters(&self) -> &CacheCounters {
        &self.counters
    }

    /// Returns the state of the buffer that `handle` names, without changing any counter.
    ///
    /// # Errors
    /// The handle was never issued, or its buffer has been reallocated.
    pub fn state(&self, handle: Handle) -> Result<State, HandleError> {
        Ok(self.store.at(self.store.locate(handle)?).state())
    }

    /// Reclaims a payload that the agent has held for too long at `now`. Call this until it returns
    /// `None`. The oldest received payload comes first, and then the oldest in the send segment. A
    /// held payload with a pending transfer delays its own expiry and that of later ones.
    pub fn expire(&mut self, now: Time) -> Option<(Handle, P)> {
        let place = self.due_place(now)?;
        let handle = self.store.handle(place);
        let payload = self.store.change(place, |buffer| buffer.clear())?;
        self.counters.expired += 1;
        Some((handle, payload))
    }

    /// Returns the handle that [`expire`](PayloadCache::expire) would reclaim at `now`.
    pub fn due(&self, now: Time) -> Option<Handle> {
        self.due_place(now).map(|place| self.store.handle(place))
    }

    fn due_place(&self, now: Time) -> Option<Place> {
        let mut oldest = Side::ALL.into_iter().filter_map(|side| self.expiry(side));
        oldest.find(|&(_, expiry)| expiry <= now).map(|(place, _)| place)
    }

    /// Restarts the hold time of a payload at `since`. It expires after all payloads that are held
    /// now. Returns whether the agent holds it.
    pub fn renew(&mut self, since: Time, handle: Handle) -> bool {
        let place = self.store.locate(handle);
        place.is_ok_and(|(side, at)| self.store.of_mut(side).renew(at, since))
    }

    /// Returns the maximum hold time of a payload.
    pub fn hold_max(&self) -> Option<Span> {
        self.hold_max
    }

    /// Returns the time at which [`expire`](PayloadCache::expire) must be called next.
    pub fn next_expiry(&self) -> Option<Time> {
        Side::ALL.into_iter().filter_map(|side| self.expiry(side)).map(|(_, expiry)| expiry).min()
    }

    /// Frees all buffers after the agent has gone, and gives each payload to `reclaim`. Issued
    /// handles stay invalid, and the end of a transfer that is reported later is refused. Returns
    /// the number of lost payloads, which are those that were in use. The time that this takes
    /// grows with the number of buffers.
    pub fn reset(&mut self, mut reclaim: impl FnMut(P)) -> usize {
        let lost = self.in_use() + self.send_in_use();
        for side in Side::ALL {
            self.counters.reset += self.store.of_mut(side).clear(&mut reclaim) as u64;
        }
        lost
    }

    /// Allocates the next buffer on a side, and counts the allocation.
    #[inline]
    fn attach(&mut self, side: Side, now: Time) -> Result<(Place, Option<P>), Full> {
        let segment = self.store.of_mut(side);
        let attached = segment.attach(now);
        self.counters.attached(side, attached.as_ref().map(|(_, evicted)| evicted.is_some()));
        let Some((at, evicted)) = attached else {
            return Err(Full { side, buffers: segment.len() });
        };
        segment.at_mut(at).own = side == Side::Send;
        self.counters.note_in_use(side, segment.in_use());
        Ok(((side, at), evicted))
    }

    /// Counts a send of a payload that is in its buffer.
    #[inline]
    fn count_send(&mut self, (side, at): Place, head_bytes: usize) {
        let buffer = self.store.of_mut(side).at_mut(at);
        let bytes = buffer.payload().map_or(0, |payload| payload.as_ref().len());
        let own = core::mem::take(&mut buffer.own);
        // The head length comes from the agent, so the sum may have any value.
        let copied = &mut self.counters.copied_from_agent_bytes;
        *copied = copied.saturating_add(head_bytes as u64);
        if own {
            self.counters.own += 1;
        } else {
            self.counters.hits += 1;
            self.counters.saved_bytes += (bytes - self.head_of(bytes)) as u64;
        }
    }

    /// Looks up a payload for the agent by its handle. Counts a refusal.
    #[inline]
    fn of_agent(&mut self, handle: Handle) -> Result<Place, HandleError> {
        self.store.usable(handle).map_err(|error| self.counters.refused(error))
    }

    /// Looks up a payload that is to be sent. If its buffer has been reallocated, that is a miss.
    #[inline]
    fn of_send(&mut self, handle: Handle) -> Result<Place, HandleError> {
        self.store.usable(handle).map_err(|error| match error.fault {
            HandleFault::Reallocated => {
                self.counters.misses += 1;
                error
            }
            _ => self.counters.refused(error),
        })
    }

    /// Looks up a payload that is to be removed. It must have no pending transfer.
    #[inline]
    fn at_rest(&mut self, place: Place, handle: Handle) -> Result<(), HandleError> {
        match self.store.at(place).pending {
            0 => Ok(()),
            _ => Err(self.counters.refused(HandleFault::InTransfer.of(handle))),
        }
    }

    /// Returns the buffer that the agent has held for longest, and its expiry. Returns `None` if
    /// that buffer has a pending transfer.
    fn expiry(&self, side: Side) -> Option<(Place, Time)> {
        let place = (side, self.store.of(side).oldest()?);
        let buffer = self.store.at(place);
        (buffer.pending == 0).then_some((place, buffer.since + self.hold_max?))
    }
}
