//! Store of a cache: both segments, and the handles that name their buffers.

use crate::buffer::Buffer;
use crate::config::CacheConfig;
use crate::error::{HandleError, HandleFault, Side};
use crate::handle::{GENERATION_MASK, Handle};
use crate::segment::Segment;
use axon_node::random::Random;

/// Segment of a buffer, and its number there.
pub(crate) type Place = (Side, usize);

/// Both segments, and the generations of their handles.
#[derive(Clone, Debug)]
pub(crate) struct Store<P> {
    receive: Segment<P>,
    send: Segment<P>,
    /// Generation that precedes the first one of each buffer.
    start: u64,
}

impl<P> Store<P> {
    /// Creates free buffers by a configuration that was checked.
    pub fn new(config: &CacheConfig) -> Store<P> {
        Store {
            receive: Segment::new(config.buffers),
            send: Segment::new(config.send_buffers),
            start: Random::new(config.seed).next_u64() & GENERATION_MASK,
        }
    }

    #[inline]
    pub fn of(&self, side: Side) -> &Segment<P> {
        match side {
            Side::Receive => &self.receive,
            Side::Send => &self.send,
        }
    }

    #[inline]
    pub fn of_mut(&mut self, side: Side) -> &mut Segment<P> {
        match side {
            Side::Receive => &mut self.receive,
            Side::Send => &mut self.send,
        }
    }

    /// Returns the buffer at a place, which must exist.
    #[inline]
    pub fn at(&self, (side, at): Place) -> &Buffer<P> {
        self.of(side).at(at)
    }

    /// Changes the buffer at a place; see [`Segment::change`].
    #[inline]
    pub fn change<T>(&mut self, place: Place, change: impl FnOnce(&mut Buffer<P>) -> T) -> T {
        self.of_mut(place.0).change(place.1, change)
    }

    /// Returns the current handle of a buffer.
    #[inline]
    pub fn handle(&self, (side, at): Place) -> Handle {
        let generation = self.start.wrapping_add(self.of(side).at(at).allocations);
        let first = if side == Side::Receive { 0 } else { self.receive.len() };
        Handle::new(first + at, generation & GENERATION_MASK)
    }

    /// Returns the buffer that has the payload of a handle, or had it last.
    ///
    /// # Errors
    /// The handle was never issued, or its buffer has been reallocated.
    #[inline]
    pub fn locate(&self, handle: Handle) -> Result<Place, HandleError> {
        let receive = self.receive.len();
        let (side, at) = match handle.number() {
            index if index < receive => (Side::Receive, index),
            index => (Side::Send, index - receive),
        };
        let distance = handle.generation().wrapping_sub(self.start) & GENERATION_MASK;
        let buffer = self.of(side).get(at);
        match buffer.map_or(Err(HandleFault::Forged), |buffer| buffer.check(distance)) {
            Ok(()) => Ok((side, at)),
            Err(fault) => Err(fault.of(handle)),
        }
    }

    /// Returns the buffer of a payload that the agent may use.
    ///
    /// # Errors
    /// As [`locate`](Store::locate); or the payload is not here yet, or has gone.
    #[inline]
    pub fn usable(&self, handle: Handle) -> Result<Place, HandleError> {
        let place = self.locate(handle)?;
        match self.at(place).usable() {
            Ok(_) => Ok(place),
            Err(fault) => Err(fault.of(handle)),
        }
    }
}
