//! Handles: what binds the header that an agent holds to its payload in the cache.

use core::fmt;
use serde::{Deserialize, Serialize};

/// Bits of the buffer's number in a handle.
const INDEX_BITS: u32 = 16;
/// The generations that a handle can tell apart, as a mask: 2^48.
pub(crate) const GENERATION_MASK: u64 = u64::MAX >> INDEX_BITS;
/// One more than the number of any buffer; the number above it stands in [`Handle::NONE`] only.
pub(crate) const BUFFERS_MAX: usize = (1 << INDEX_BITS) - 1;

/// The binding of a payload to its header: the tag of paper 003, section 3.1.
///
/// The low 16 bits are the number of the buffer, the high 48 bits its generation. A buffer gets a
/// new generation each time it is given to another payload, so an old handle never names a new
/// payload. Generations of a cache begin at a random number, so handles of another cache and
/// invented ones are refused. That is a check, not a secret: whatever handle an agent presents, it
/// is looked up in that agent's own cache and can name no payload of another agent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Handle(u64);

impl Handle {
    /// A handle that no cache ever gives out, for a place that needs one where there is no payload.
    pub const NONE: Handle = Handle(u64::MAX);

    /// The handle that an agent presents. Every number is accepted here; the cache refuses those
    /// that it never gave out.
    pub const fn from_raw(raw: u64) -> Handle {
        Handle(raw)
    }

    /// The handle as the number that an agent gets.
    pub const fn raw(self) -> u64 {
        self.0
    }

    /// The handle of the buffer `index`, below [`BUFFERS_MAX`], in its `generation`.
    pub(crate) const fn new(index: usize, generation: u64) -> Handle {
        Handle(generation << INDEX_BITS | index as u64)
    }

    /// The number of its payload buffer in the cache, which there may not be: the low 16 bits.
    /// Those for frames that come in are before those of the send segment.
    pub const fn number(self) -> usize {
        self.0 as usize & BUFFERS_MAX
    }

    /// The generation of the buffer, 48 bits.
    pub(crate) const fn generation(self) -> u64 {
        self.0 >> INDEX_BITS
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Handle {
    /// Buffer and generation: `7@0x1f3a`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{:#x}", self.number(), self.generation())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_a_number_and_back() {
        let handle = Handle::new(BUFFERS_MAX - 1, GENERATION_MASK);
        assert_eq!((handle.number(), handle.generation()), (BUFFERS_MAX - 1, GENERATION_MASK));
        assert_eq!(Handle::from_raw(handle.raw()), handle);
        assert_ne!(handle, Handle::NONE);
        assert_eq!(alloc::format!("{}", Handle::new(7, 0x1f3a)), "7@0x1f3a");
    }
}
