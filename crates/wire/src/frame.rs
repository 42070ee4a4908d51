//! What holds the bytes of a frame on its way through a switch.

use alloc::vec::Vec;
use core::fmt;

/// There was no room in front of the frame for the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no headroom in front of the frame")]
pub struct NoHeadroom;

/// There was no room behind the frame for a probe's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no tailroom behind the frame")]
pub struct NoTailroom;

/// A frame that can grow and shrink at its front, where the route is, and grow at its end,
/// where probes gather their records.
///
/// The runtime chooses what stands behind it (a vector, an arena slot, a UMEM chunk); the
/// plane moves it and never copies it.
pub trait Frame: Sized {
    /// A frame that holds `bytes`, with at least `headroom` bytes of room before them.
    fn with_headroom(headroom: usize, bytes: &[u8]) -> Self;
    /// The bytes, from the first on the wire; no preamble, no FCS.
    fn bytes(&self) -> &[u8];
    /// The same, to rewrite in place.
    fn bytes_mut(&mut self) -> &mut [u8];
    /// Grows the frame by `count` bytes at the front, whose content is arbitrary.
    fn push_front(&mut self, count: usize) -> Result<(), NoHeadroom>;
    /// Takes `count` bytes off the front; all of them if there are fewer.
    fn pop_front(&mut self, count: usize);
    /// Appends `bytes`. A frame of a fixed size has no room and need not do it.
    fn push_back(&mut self, bytes: &[u8]) -> Result<(), NoTailroom> {
        let _ = bytes;
        Err(NoTailroom)
    }
}

/// The ordinary frame: one vector with spare room at its front.
#[derive(Clone, PartialEq, Eq)]
pub struct FrameBuf {
    store: Vec<u8>,
    start: usize,
}

impl FrameBuf {
    /// Headroom that holds the header of any route up to 122 hops of one byte.
    pub const HEADROOM: usize = 128;

    /// A frame with [`FrameBuf::HEADROOM`] before it.
    pub fn new(bytes: &[u8]) -> FrameBuf {
        FrameBuf::with_headroom(FrameBuf::HEADROOM, bytes)
    }

    /// Takes over `store`, whose frame begins at `start` (clamped to its end).
    pub fn from_vec(store: Vec<u8>, start: usize) -> FrameBuf {
        let start = start.min(store.len());
        FrameBuf { store, start }
    }

    /// Gives the vector back, so that a runtime can reuse it.
    pub fn into_vec(self) -> Vec<u8> {
        self.store
    }
}

impl Frame for FrameBuf {
    fn with_headroom(headroom: usize, bytes: &[u8]) -> FrameBuf {
        let mut store = Vec::with_capacity(headroom + bytes.len());
        store.resize(headroom, 0);
        store.extend_from_slice(bytes);
        FrameBuf { store, start: headroom }
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        &self.store[self.start..]
    }

    #[inline]
    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.store[self.start..]
    }

    fn push_back(&mut self, bytes: &[u8]) -> Result<(), NoTailroom> {
        self.store.extend_from_slice(bytes);
        Ok(())
    }

    #[inline]
    fn push_front(&mut self, count: usize) -> Result<(), NoHeadroom> {
        self.start = self.start.checked_sub(count).ok_or(NoHeadroom)?;
        Ok(())
    }

    #[inline]
    fn pop_front(&mut self, count: usize) {
        self.start = (self.start + count).min(self.store.len());
    }
}

impl fmt::Debug for FrameBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FrameBuf({} bytes)", self.bytes().len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_front_grows_and_shrinks_without_moving_the_frame() {
        let mut frame = FrameBuf::with_headroom(4, &[1, 2, 3]);
        assert_eq!(frame.push_front(5), Err(NoHeadroom));
        frame.push_front(2).unwrap();
        frame.bytes_mut()[..2].copy_from_slice(&[9, 8]);
        assert_eq!(frame.bytes(), [9, 8, 1, 2, 3]);
        frame.pop_front(3);
        assert_eq!(frame.bytes(), [2, 3]);
        frame.pop_front(100);
        assert!(frame.bytes().is_empty());
    }
}
