//! A ring of buffers: circular allocation (paper 003, section 3.2).
//!
//! The next buffer is the one that was given away longest ago. If it is still in use, the caller
//! has to wait, even if others are free: so payloads leave in the order in which they came, and
//! one that is kept stays for as long as possible.

use crate::buffer::{Buffer, State};
use crate::in_use::InUse;
use alloc::vec::Vec;
use axon_wire::Time;

/// Buffers that are allocated in a circular fashion.
#[derive(Clone, Debug)]
pub(crate) struct Segment<P> {
    buffers: Vec<Buffer<P>>,
    /// The buffer to be allocated next.
    next: usize,
    in_use: InUse,
}

impl<P> Segment<P> {
    /// So many free buffers, 1 or more.
    pub fn new(buffers: usize) -> Segment<P> {
        let all = core::iter::repeat_with(Buffer::new).take(buffers).collect();
        Segment { buffers: all, next: 0, in_use: InUse::new(buffers) }
    }

    pub fn len(&self) -> usize {
        self.buffers.len()
    }

    /// How many buffers are in use.
    pub fn in_use(&self) -> usize {
        self.in_use.len()
    }

    /// How many buffers can be allocated, one after the other, from now on.
    #[inline]
    pub fn room(&self) -> usize {
        match self.oldest() {
            Some(oldest) if oldest >= self.next => oldest - self.next,
            Some(oldest) => oldest + self.buffers.len() - self.next,
            None => self.buffers.len(),
        }
    }

    /// The buffer in use that was allocated longest ago.
    #[inline]
    pub fn oldest(&self) -> Option<usize> {
        self.in_use.next_from(self.next)
    }

    /// Allocates the next buffer, held and with no transfer pending, and gives back what was kept
    /// there. `None` if it is in use.
    #[inline]
    pub fn attach(&mut self, now: Time) -> Option<(usize, Option<P>)> {
        let at = self.next;
        let buffer = &mut self.buffers[at];
        if buffer.in_use() {
            return None;
        }
        let evicted = buffer.attach(now);
        self.in_use.set(at, true);
        self.next = if at + 1 == self.buffers.len() { 0 } else { at + 1 };
        Some((at, evicted))
    }

    /// The buffer `at`, if there is one.
    #[inline]
    pub fn get(&self, at: usize) -> Option<&Buffer<P>> {
        self.buffers.get(at)
    }

    /// The buffer `at`, which there must be.
    #[inline]
    pub fn at(&self, at: usize) -> &Buffer<P> {
        &self.buffers[at]
    }

    /// The same, to change what has nothing to do with whether it is in use.
    #[inline]
    pub fn at_mut(&mut self, at: usize) -> &mut Buffer<P> {
        &mut self.buffers[at]
    }

    /// Changes the buffer `at`, which there must be, and keeps account of whether it is in use.
    #[inline]
    pub fn change<T>(&mut self, at: usize, change: impl FnOnce(&mut Buffer<P>) -> T) -> T {
        let buffer = &mut self.buffers[at];
        let result = change(buffer);
        self.in_use.set(at, buffer.in_use());
        result
    }

    /// Frees all buffers and gives their payloads to `reclaim`. Returns how many were not free.
    pub fn clear(&mut self, mut reclaim: impl FnMut(P)) -> usize {
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
