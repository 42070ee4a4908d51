//! Ring of buffers with circular allocation (paper 003, section 3.2).
//!
//! The next buffer is the first one on the ring that is not in use. If the agent answers payloads
//! in the order of arrival, that is the buffer that was allocated longest ago, as in the paper, and
//! a kept payload stays for as long as possible. A payload that is held for long is skipped, so it
//! occupies one buffer but does not block others. The ring is full if all buffers are in use.

use crate::buffer::{Buffer, State};
use crate::free::Free;
use crate::queue::Queue;
use alloc::vec::Vec;
use axon_wire::Time;

/// Buffers with circular allocation.
#[derive(Clone, Debug)]
pub(crate) struct Segment<P> {
    buffers: Vec<Buffer<P>>,
    /// Number at which the search for the next buffer starts.
    next: usize,
    /// Buffers that are not in use. They may contain a kept payload.
    free: Free,
    /// Buffers that the agent holds.
    held: Queue,
}

impl<P> Segment<P> {
    /// Creates `buffers` free buffers. `buffers` is 1 or more.
    pub(crate) fn new(buffers: usize) -> Segment<P> {
        let all = core::iter::repeat_with(Buffer::new).take(buffers).collect();
        Segment { buffers: all, next: 0, free: Free::all(buffers), held: Queue::new(buffers) }
    }

    pub(crate) fn len(&self) -> usize {
        self.buffers.len()
    }

    /// Returns the number of buffers in use.
    pub(crate) fn in_use(&self) -> usize {
        self.buffers.len() - self.free.len()
    }

    /// Returns the number of buffers that can be allocated now.
    #[inline]
    pub(crate) fn room(&self) -> usize {
        self.free.len()
    }

    /// Returns the buffer that the agent has held for longest.
    #[inline]
    pub(crate) fn oldest(&self) -> Option<usize> {
        self.held.first()
    }

    /// Allocates the next buffer that is not in use, and returns it with its kept payload, if any.
    /// The buffer is then held and has no pending transfer. Returns `None` if all buffers are in
    /// use.
    #[inline]
    pub(crate) fn attach(&mut self, now: Time) -> Option<(usize, Option<P>)> {
        let at = self.free.next_from(self.next)?;
        let evicted = self.buffers[at].attach(now);
        self.free.set(at, false);
        self.held.push(at);
        self.next = if at + 1 == self.buffers.len() { 0 } else { at + 1 };
        Some((at, evicted))
    }

    /// Returns the buffer `at`, if it exists.
    #[inline]
    pub(crate) fn get(&self, at: usize) -> Option<&Buffer<P>> {
        self.buffers.get(at)
    }

    /// Returns the buffer `at`, which must exist.
    #[inline]
    pub(crate) fn at(&self, at: usize) -> &Buffer<P> {
        &self.buffers[at]
    }

    /// Returns the buffer `at`, which must exist, for changes that affect neither use nor hold.
    #[inline]
    pub(crate) fn at_mut(&mut self, at: usize) -> &mut Buffer<P> {
        &mut self.buffers[at]
    }

    /// Changes the buffer `at`, which must exist, and updates whether it is in use and held. Only
    /// [`attach`](Segment::attach) makes a buffer held.
    #[inline]
    pub(crate) fn change<T>(&mut self, at: usize, change: impl FnOnce(&mut Buffer<P>) -> T) -> T {
        let buffer = &mut self.buffers[at];
        let was_held = buffer.held;
        let result = change(buffer);
        let (in_use, is_held) = (buffer.in_use(), buffer.held);
        self.free.set(at, !in_use);
        if was_held && !is_held {
            self.held.remove(at);
        }
        result
    }

    /// Moves the buffer `at`, which must exist, to the end of the held ones, with a new start time.
    /// Returns whether it is held.
    pub(crate) fn renew(&mut self, at: usize, since: Time) -> bool {
        let buffer = &mut self.buffers[at];
        if buffer.held {
            buffer.since = since;
            self.held.remove(at);
            self.held.push(at);
        }
        buffer.held
    }

    /// Frees all buffers, and gives their payloads to `reclaim`. Returns the number of buffers that
    /// were not free.
    pub(crate) fn clear(&mut self, mut reclaim: impl FnMut(P)) -> usize {
        let mut count = 0;
        for at in 0..self.buffers.len() {
            let taken = self.buffers[at].state() != State::Free;
            count += usize::from(taken);
            if let Some(payload) = self.change(at, Buffer::clear) {
                reclaim(payload);
            }
        }
        count
    }
}
