//! Payload cache of one agent: its buffers and their handles.

use crate::buffer::{Buffer, State};
use crate::config::CacheConfig;
use crate::counters::CacheCounters;
use crate::error::{ConfigError, Full, HandleError, HandleFault, Side};
use crate::handle::{GENERATION_MASK, Handle};
use crate::segment::Segment;
use axon_node::random::Random;
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
    pub(crate) receive: Segment<P>,
    pub(crate) send: Segment<P>,
    pub(crate) counters: CacheCounters,
    head_bytes: usize,
    hold_max: Option<Span>,
    /// Generation that precedes the first one of each buffer.
    start: u64,
}

impl<P: AsRef<[u8]>> PayloadCache<P> {
    /// Creates a cache whose buffers are all free.
    ///
    /// # Errors
    /// A setting is out of range.
    pub fn new(config: CacheConfig) -> Result<PayloadCache<P>, ConfigError> {
        config.check()?;
        Ok(PayloadCache {
            receive: Segment::new(config.buffers),
            send: Segment::new(config.send_buffers),
            counters: CacheCounters::default(),
            head_bytes: config.head_bytes,
            hold_max: config.hold_max,
            start: Random::new(config.seed).next_u64() & GENERATION_MASK,
        })
    }

    /// Returns the number of frames that can be received now, each into one buffer.
    #[inline]
    pub fn room(&self) -> usize {
        self.receive.room()
    }

    /// Returns the number of payloads that the agent can bring now, each into one buffer of the
    /// send segment.
    #[inline]
    pub fn send_room(&self) -> usize {
        self.send.room()
    }

    /// Returns the number of buffers in use, that is, held by the agent or in transfer. The send
    /// segment is not counted.
    pub fn in_use(&self) -> usize {
        self.receive.in_use()
    }

    /// Returns the number of buffers in use in the send segment.
    pub fn send_in_use(&self) -> usize {
        self.send.in_use()
    }

    /// Returns the head length of a frame with `frame_bytes` bytes, in bytes.
    pub fn head_of(&self, frame_bytes: usize) -> usize {
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
        let (side, at) = self.locate(handle)?;
        Ok(self.buffer(side, at).state())
    }

    /// Reclaims a payload that the agent has held for too long at `now`. Call this until it returns
    /// `None`. The oldest received payload comes first, and then the oldest in the send segment. A
    /// held payload with a pending transfer delays its own expiry and that of later ones.
    pub fn expire(&mut self, now: Time) -> Option<(Handle, P)> {
        let handle = self.due(now)?;
        let (side, at) = self.locate(handle).ok()?;
        let payload = self.segment_mut(side).change(at, |buffer| buffer.clear())?;
        self.counters.expired += 1;
        Some((handle, payload))
    }

    /// Returns the handle that [`expire`](PayloadCache::expire) would reclaim at `now`.
    pub fn due(&self, now: Time) -> Option<Handle> {
        let due = |side: &Side| self.expiry(*side).filter(|&(_, expiry)| expiry <= now);
        let side = [Side::Receive, Side::Send].into_iter().find(|side| due(side).is_some())?;
        self.expiry(side).map(|(at, _)| self.handle(side, at))
    }

    /// Restarts the hold time of a payload at `since`. It expires after all payloads that are held
    /// now. Returns whether the agent holds it.
    pub fn renew(&mut self, since: Time, handle: Handle) -> bool {
        match self.locate(handle) {
            Ok((side, at)) => self.segment_mut(side).renew(at, since),
            Err(_) => false,
        }
    }

    /// Returns the maximum hold time of a payload.
    pub fn hold_max(&self) -> Option<Span> {
        self.hold_max
    }

    /// Returns the time at which [`expire`](PayloadCache::expire) must be called next.
    pub fn next_expiry(&self) -> Option<Time> {
        let expiries = [Side::Receive, Side::Send].map(|side| self.expiry(side));
        expiries.into_iter().flatten().map(|(_, expiry)| expiry).min()
    }

    /// Frees all buffers after the agent has gone, and gives each payload to `reclaim`. Issued
    /// handles stay invalid, and the end of a transfer that is reported later is refused. Returns
    /// the number of lost payloads, which are those that were in use. The time that this takes
    /// grows with the number of buffers.
    pub fn reset(&mut self, mut reclaim: impl FnMut(P)) -> usize {
        let lost = self.receive.in_use() + self.send.in_use();
        let taken = self.receive.clear(&mut reclaim) + self.send.clear(&mut reclaim);
        self.counters.reset += taken as u64;
        lost
    }

    /// Allocates the next buffer on a side, and counts the allocation.
    #[inline]
    pub(crate) fn attach(&mut self, side: Side, now: Time) -> Result<(usize, Option<P>), Full> {
        let segment = self.segment_mut(side);
        let (attached, buffers) = (segment.attach(now), segment.len());
        let counters = &mut self.counters;
        let (given, full) = match side {
            Side::Receive => (&mut counters.received, &mut counters.full),
            Side::Send => (&mut counters.brought, &mut counters.send_full),
        };
        let Some((at, evicted)) = attached else {
            *full += 1;
            return Err(Full { side, buffers });
        };
        *given += 1;
        counters.evicted += u64::from(evicted.is_some());
        if side == Side::Send {
            self.send.at_mut(at).own = true;
        }
        self.count_in_use(side);
        Ok((at, evicted))
    }

    /// Updates the maximum number of buffers in use.
    #[inline]
    pub(crate) fn count_in_use(&mut self, side: Side) {
        let in_use = self.segment(side).in_use() as u64;
        let max = match side {
            Side::Receive => &mut self.counters.in_use_max,
            Side::Send => &mut self.counters.send_in_use_max,
        };
        *max = in_use.max(*max);
    }

    /// Counts a send of a payload that is in its buffer.
    #[inline]
    pub(crate) fn count_send(&mut self, side: Side, at: usize, head_bytes: usize) {
        let buffer = self.segment_mut(side).at_mut(at);
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
    pub(crate) fn of_agent(&mut self, handle: Handle) -> Result<(Side, usize), HandleError> {
        self.usable(handle).map_err(|error| self.refused(error))
    }

    /// Looks up a payload that is to be sent. If its buffer has been reallocated, that is a miss.
    #[inline]
    pub(crate) fn of_send(&mut self, handle: Handle) -> Result<(Side, usize), HandleError> {
        self.usable(handle).map_err(|error| match error.fault {
            HandleFault::Reallocated => {
                self.counters.misses += 1;
                error
            }
            _ => self.refused(error),
        })
    }

    #[inline]
    fn usable(&self, handle: Handle) -> Result<(Side, usize), HandleError> {
        let (side, at) = self.locate(handle)?;
        match self.buffer(side, at).usable() {
            Ok(_) => Ok((side, at)),
            Err(fault) => Err(HandleError { handle, fault }),
        }
    }

    /// Looks up a payload that is to be removed. It must have no pending transfer.
    #[inline]
    pub(crate) fn at_rest(
        &mut self,
        place: (Side, usize),
        handle: Handle,
    ) -> Result<(), HandleError> {
        match self.buffer(place.0, place.1).pending {
            0 => Ok(()),
            _ => Err(self.refused(HandleError { handle, fault: HandleFault::InTransfer })),
        }
    }

    /// Returns the buffer that has the payload of a handle, or had it last.
    #[inline]
    pub(crate) fn locate(&self, handle: Handle) -> Result<(Side, usize), HandleError> {
        let receive = self.receive.len();
        let (side, at) = match handle.number() {
            index if index < receive => (Side::Receive, index),
            index => (Side::Send, index - receive),
        };
        let distance = handle.generation().wrapping_sub(self.start) & GENERATION_MASK;
        let buffer = self.segment(side).get(at);
        match buffer.map_or(Err(HandleFault::Forged), |buffer| buffer.check(distance)) {
            Ok(()) => Ok((side, at)),
            Err(fault) => Err(HandleError { handle, fault }),
        }
    }

    /// Returns the current handle of a buffer.
    #[inline]
    pub(crate) fn handle(&self, side: Side, at: usize) -> Handle {
        let generation = self.start.wrapping_add(self.buffer(side, at).allocations);
        let first = if side == Side::Receive { 0 } else { self.receive.len() };
        Handle::new(first + at, generation & GENERATION_MASK)
    }

    #[inline]
    pub(crate) fn buffer(&self, side: Side, at: usize) -> &Buffer<P> {
        self.segment(side).at(at)
    }

    #[inline]
    pub(crate) fn segment(&self, side: Side) -> &Segment<P> {
        match side {
            Side::Receive => &self.receive,
            Side::Send => &self.send,
        }
    }

    #[inline]
    pub(crate) fn segment_mut(&mut self, side: Side) -> &mut Segment<P> {
        match side {
            Side::Receive => &mut self.receive,
            Side::Send => &mut self.send,
        }
    }

    /// Returns the buffer that the agent has held for longest, and its expiry. Returns `None` if
    /// that buffer has a pending transfer.
    fn expiry(&self, side: Side) -> Option<(usize, Time)> {
        let at = self.segment(side).oldest()?;
        let buffer = self.buffer(side, at);
        (buffer.pending == 0).then_some((at, buffer.since + self.hold_max?))
    }

    /// Counts a handle that is refused to the agent.
    pub(crate) fn refused(&mut self, error: HandleError) -> HandleError {
        match error.fault {
            HandleFault::Forged => self.counters.forged += 1,
            HandleFault::Reallocated | HandleFault::Gone => self.counters.stale += 1,
            HandleFault::InTransfer => self.counters.in_transfer += 1,
            HandleFault::NoTransfer => {}
        }
        error
    }
}
