//! Frame buffers.

use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::fmt;

/// Error: there is no room for the header in front of the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no headroom in front of the frame")]
pub struct NoHeadroom;

/// Error: there is no room for a probe's record at the end of the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no tailroom behind the frame")]
pub struct NoTailroom;

/// Minimum number of stored bytes of a light frame, from its Ethernet header on. They hold the
/// headers of Ethernet, IPv4 and UDP and a stamp of 16 bytes after them, or the headers of
/// Ethernet, IPv6 and UDP.
pub const LIGHT_BYTES: usize = 64;

/// The part of a light frame that is not stored: one repeated byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filling {
    /// The repeated byte.
    pub byte: u8,
    /// Number of repetitions; 0 in a complete frame.
    pub count: u16,
}

/// View of a frame's content: the stored bytes, and the filling behind them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contents<'a> {
    /// The stored bytes.
    pub stored: &'a [u8],
    /// The bytes that follow the stored ones.
    pub filling: Filling,
}

impl<'a> Contents<'a> {
    /// Returns the total length in bytes.
    #[inline]
    pub fn length(self) -> usize {
        self.stored.len() + usize::from(self.filling.count)
    }

    /// Returns all bytes, filling included.
    pub fn whole(self) -> Cow<'a, [u8]> {
        let Contents { stored, filling: Filling { byte, count } } = self;
        if count == 0 {
            return Cow::Borrowed(stored);
        }
        let mut all = Vec::with_capacity(self.length());
        all.extend_from_slice(stored);
        all.resize(self.length(), byte);
        Cow::Owned(all)
    }
}

impl<'a> From<&'a [u8]> for Contents<'a> {
    fn from(stored: &'a [u8]) -> Contents<'a> {
        Contents { stored, filling: Filling::default() }
    }
}

/// Frame buffer: one vector with headroom for the route. The frame grows and shrinks at the front,
/// and grows at the end, where probes append their records.
///
/// A frame may be *light*: its payload is not stored but described by a filling that follows the
/// stored bytes. Forwarding reads only the headers, which are stored, and the
/// [length](Self::length). Code that reads beyond the headers makes the frame
/// [whole](Self::make_whole) first.
#[derive(Clone)]
pub struct FrameBuf {
    store: Vec<u8>,
    start: u32,
    filling: Filling,
}

/// Compares all bytes, stored or not, regardless of the headroom.
impl PartialEq for FrameBuf {
    fn eq(&self, other: &FrameBuf) -> bool {
        self.length() == other.length() && self.contents().whole() == other.contents().whole()
    }
}

impl Eq for FrameBuf {}

impl FrameBuf {
    /// Headroom in bytes, enough for the header of any route up to 122 hops of one byte.
    pub const HEADROOM: usize = 128;

    /// Returns a frame that holds `bytes`, with a headroom of [`FrameBuf::HEADROOM`].
    pub fn new(bytes: &[u8]) -> FrameBuf {
        FrameBuf::with_headroom(FrameBuf::HEADROOM, bytes)
    }

    /// Takes over `store`, whose frame begins at `start` (clamped to its end).
    pub fn from_vec(store: Vec<u8>, start: usize) -> FrameBuf {
        let start = start.min(store.len()) as u32;
        FrameBuf { store, start, filling: Filling::default() }
    }

    /// Takes over `store`, whose frame begins at `start` (clamped to its end) and continues with a
    /// filling. The frame is light unless the filling is empty.
    ///
    /// # Panics
    /// If fewer than [`LIGHT_BYTES`] are stored and more follow.
    pub fn light(store: Vec<u8>, start: usize, filling: Filling) -> FrameBuf {
        let frame = FrameBuf { filling, ..FrameBuf::from_vec(store, start) };
        let stored = frame.bytes().len();
        assert!(filling.count == 0 || stored >= LIGHT_BYTES, "{stored} bytes are stored");
        frame
    }

    /// Returns whether some of the frame's bytes are not stored.
    #[inline]
    pub fn is_light(&self) -> bool {
        self.filling.count > 0
    }

    /// Returns a view of the frame's content.
    #[inline]
    pub fn contents(&self) -> Contents<'_> {
        Contents { stored: self.bytes(), filling: self.filling }
    }

    /// Returns the underlying vector, so that a runtime can reuse it.
    pub fn into_vec(self) -> Vec<u8> {
        self.store
    }

    /// Returns a frame that holds `bytes`, with `headroom` bytes of room before them.
    pub fn with_headroom(headroom: usize, bytes: &[u8]) -> FrameBuf {
        let mut store = Vec::with_capacity(headroom + bytes.len());
        store.resize(headroom, 0);
        store.extend_from_slice(bytes);
        FrameBuf::from_vec(store, headroom)
    }

    /// Returns the stored bytes, starting with the first on the wire, without preamble and FCS.
    /// These are all bytes of the frame unless it is light. Then they are at least [`LIGHT_BYTES`]
    /// of those that a host sent, and everything prepended to them.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.store[self.start as usize..]
    }

    /// Returns the stored bytes for rewriting in place.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.store[self.start as usize..]
    }

    /// Returns the length in bytes, stored or not.
    #[inline]
    pub fn length(&self) -> usize {
        self.bytes().len() + usize::from(self.filling.count)
    }

    /// Stores all bytes of a light frame.
    pub fn make_whole(&mut self) {
        let Filling { byte, count } = core::mem::take(&mut self.filling);
        self.store.resize(self.store.len() + usize::from(count), byte);
    }

    /// Appends `bytes` to the frame.
    pub fn push_back(&mut self, bytes: &[u8]) -> Result<(), NoTailroom> {
        self.make_whole();
        self.store.extend_from_slice(bytes);
        Ok(())
    }

    /// Grows the frame at the front by `count` bytes of arbitrary content.
    #[inline]
    pub fn push_front(&mut self, count: usize) -> Result<(), NoHeadroom> {
        let count = u32::try_from(count).map_err(|_| NoHeadroom)?;
        self.start = self.start.checked_sub(count).ok_or(NoHeadroom)?;
        Ok(())
    }

    /// Removes `count` bytes from the front, or all bytes if there are fewer.
    #[inline]
    pub fn pop_front(&mut self, count: usize) {
        if count > self.bytes().len() {
            self.make_whole();
        }
        self.start = (self.start as usize + count).min(self.store.len()) as u32;
    }
}

impl AsRef<[u8]> for FrameBuf {
    /// Returns [`bytes`](Self::bytes), which is only the stored part of a light frame.
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}

impl fmt::Debug for FrameBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FrameBuf({} bytes)", self.length())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

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

    #[test]
    fn a_light_frame_has_the_length_and_the_bytes_of_a_whole_one() {
        let (stored, filling) = ([7; LIGHT_BYTES], Filling { byte: 0x61, count: 1000 });
        let light = || {
            let mut store = vec![0; FrameBuf::HEADROOM];
            store.extend(stored);
            FrameBuf::light(store, FrameBuf::HEADROOM, filling)
        };
        let all = [&stored[..], &[0x61; 1000]].concat();
        let (mut taken, mut longer, mut whole) = (light(), light(), light());
        assert_eq!((taken.length(), taken.bytes().len()), (all.len(), LIGHT_BYTES));
        assert_eq!(taken.contents().whole(), all);
        taken.pop_front(4);
        assert_eq!((taken.length(), &taken.contents().whole()[..]), (all.len() - 4, &all[4..]));
        taken.pop_front(LIGHT_BYTES);
        assert_eq!(taken.bytes(), &all[4 + LIGHT_BYTES..]);
        longer.push_back(&[1]).unwrap();
        assert_eq!(longer.bytes(), [&all[..], &[1]].concat());
        whole.make_whole();
        whole.make_whole();
        assert_eq!((whole.bytes(), whole.is_light()), (&all[..], false));
        assert_eq!(whole, light());
        assert_eq!(whole, FrameBuf::with_headroom(3, &all));
        assert_ne!(whole, longer);
    }
}
