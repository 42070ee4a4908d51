//! The payload cache of one agent: its buffers, and which of them a handle names.

use crate::buffer::{Buffer, State};
use crate::config::CacheConfig;
use crate::counters::CacheCounters;
use crate::error::{ConfigError, Full, HandleError, HandleFault, Side};
use crate::handle::{GENERATION_MASK, Handle};
use crate::segment::Segment;
use axon_node::random::Random;
use axon_wire::{Span, Time};

/// A buffer that was given to a payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attached<P> {
    /// The name of the payload, for the agent.
    pub handle: Handle,
    /// The kept payload that had the buffer before, so that the runtime can use its memory again.
    pub evicted: Option<P>,
}

/// The payloads of the frames whose heads one agent has (paper 003, section 3).
///
/// A payload is the whole frame `P` of the runtime; the agent has a copy of its first
/// [`head_bytes`](CacheConfig::head_bytes). There are two rings of buffers, each allocated in a
/// circular fashion: one for frames that come in, and the small send segment for payloads that the
/// agent brings, so that these do not displace the others.
///
/// A buffer in use is never given to another payload: one whose payload the agent has neither sent
/// nor released, or with a pending transfer. Allocation goes on round the ring past it. When all
/// are in use the caller gets [`Full`] and waits, or drops the frame and counts that. Only a
/// payload that was sent and kept ([`OnSent::Keep`](crate::OnSent::Keep)) makes room for another
/// one by itself.
///
/// **Whole operations** ([`receive`](PayloadCache::receive), [`send`](PayloadCache::send)) are for
/// a runtime where a frame changes hands at once. Where transfers take time, as DMA does, there
/// are their steps: see [`begin_receive`](PayloadCache::begin_receive). Both may be mixed.
///
/// Every operation but [`reset`](PayloadCache::reset) takes constant time, and none panics.
#[derive(Clone, Debug)]
pub struct PayloadCache<P> {
    pub(crate) receive: Segment<P>,
    pub(crate) send: Segment<P>,
    pub(crate) counters: CacheCounters,
    head_bytes: usize,
    hold_max: Option<Span>,
    /// The generation before the first one of each buffer.
    start: u64,
}

impl<P: AsRef<[u8]>> PayloadCache<P> {
    /// A cache whose buffers are all free.
    ///
    /// # Errors
    /// A setting is out of its range.
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

    /// How many more frames may be received now, in buffers.
    #[inline]
    pub fn room(&self) -> usize {
        self.receive.room()
    }

    /// How many more payloads the agent may bring now, in buffers of the send segment.
    #[inline]
    pub fn send_room(&self) -> usize {
        self.send.room()
    }

    /// Buffers that are in use: held by the agent or in transfer. The send segment not counted.
    pub fn in_use(&self) -> usize {
        self.receive.in_use()
    }

    /// The same in the send segment.
    pub fn send_in_use(&self) -> usize {
        self.send.in_use()
    }

    /// How many bytes of a frame of `frame_bytes` the agent gets at once.
    pub fn head_of(&self, frame_bytes: usize) -> usize {
        frame_bytes.min(self.head_bytes)
    }

    /// What was counted so far.
    pub fn counters(&self) -> &CacheCounters {
        &self.counters
    }

    /// The state of the buffer that `handle` names. Counts nothing.
    ///
    /// # Errors
    /// The cache never gave the handle out, or its buffer has been given to another payload.
    pub fn state(&self, handle: Handle) -> Result<State, HandleError> {
        let (side, at) = self.locate(handle)?;
        Ok(self.buffer(side, at).state())
    }

    /// Takes a payload that the agent has held for too long at `now`, to be called until there is
    /// none: the oldest one of those that came in, then the oldest one of the send segment. A held
    /// payload with a pending transfer has to wait for that, and those held for less long with it.
    pub fn expire(&mut self, now: Time) -> Option<(Handle, P)> {
        let handle = self.due(now)?;
        let (side, at) = self.locate(handle).ok()?;
        let payload = self.segment_mut(side).change(at, |buffer| buffer.clear())?;
        self.counters.expired += 1;
        Some((handle, payload))
    }

    /// What [`expire`](PayloadCache::expire) would take at `now`.
    pub fn due(&self, now: Time) -> Option<Handle> {
        let due = |side: &Side| self.expiry(*side).filter(|&(_, expiry)| expiry <= now);
        let side = [Side::Receive, Side::Send].into_iter().find(|side| due(side).is_some())?;
        self.expiry(side).map(|(at, _)| self.handle(side, at))
    }

    /// Lets the agent hold a payload as if it had got that at `since`. It is taken after all those
    /// that are held now, or when these have been decided on. Says whether the agent holds it.
    pub fn renew(&mut self, since: Time, handle: Handle) -> bool {
        match self.locate(handle) {
            Ok((side, at)) => self.segment_mut(side).renew(at, since),
            Err(_) => false,
        }
    }

    /// How long the agent may hold a payload.
    pub fn hold_max(&self) -> Option<Span> {
        self.hold_max
    }

    /// When to call [`expire`](PayloadCache::expire) next.
    pub fn next_expiry(&self) -> Option<Time> {
        let expiries = [Side::Receive, Side::Send].map(|side| self.expiry(side));
        expiries.into_iter().flatten().map(|(_, expiry)| expiry).min()
    }

    /// Frees all buffers, since the agent is gone, and gives each payload to `reclaim`. Handles
    /// that were given out stay invalid, and ends of transfers that come later are refused.
    /// Returns how many payloads were lost: those that were in use. Takes time for each buffer.
    pub fn reset(&mut self, mut reclaim: impl FnMut(P)) -> usize {
        let lost = self.receive.in_use() + self.send.in_use();
        let taken = self.receive.clear(&mut reclaim) + self.send.clear(&mut reclaim);
        self.counters.reset += taken as u64;
        lost
    }

    /// Gives the next buffer of a side to a payload, and counts that.
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

    /// Keeps the most buffers in use, after one more may be.
    #[inline]
    pub(crate) fn count_in_use(&mut self, side: Side) {
        let in_use = self.segment(side).in_use() as u64;
        let max = match side {
            Side::Receive => &mut self.counters.in_use_max,
            Side::Send => &mut self.counters.send_in_use_max,
        };
        *max = in_use.max(*max);
    }

    /// Counts the send of a payload that is here.
    #[inline]
    pub(crate) fn count_send(&mut self, side: Side, at: usize, head_bytes: usize) {
        let buffer = self.segment_mut(side).at_mut(at);
        let bytes = buffer.payload().map_or(0, |payload| payload.as_ref().len());
        let own = core::mem::take(&mut buffer.own);
        // The agent says how long its head is, so the sum may be anything.
        let copied = &mut self.counters.copied_from_agent_bytes;
        *copied = copied.saturating_add(head_bytes as u64);
        if own {
            self.counters.own += 1;
        } else {
            self.counters.hits += 1;
            self.counters.saved_bytes += (bytes - self.head_of(bytes)) as u64;
        }
    }

    /// The payload that the agent may use, by its handle; a refusal is counted.
    #[inline]
    pub(crate) fn of_agent(&mut self, handle: Handle) -> Result<(Side, usize), HandleError> {
        self.usable(handle).map_err(|error| self.refused(error))
    }

    /// The same for a payload that is to be sent: one whose buffer has another one is a miss.
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

    /// The same for a payload that is to be taken away: nothing may read or write it now.
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

    /// The buffer that a handle names, if that has still the payload of the handle, or had it last.
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

    /// The present handle of a buffer.
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

    /// The buffer that the agent has held for longest, if no transfer of it is pending, and when
    /// that has been for too long.
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
