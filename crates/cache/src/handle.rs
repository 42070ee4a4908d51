//! Handles: bindings of an agent's headers to their payloads in the cache.

use core::fmt;
use serde::{Deserialize, Serialize};

/// Number of bits for the buffer number in a handle.
const INDEX_BITS: u32 = 16;
/// Mask for the generation, which has 48 bits.
pub(crate) const GENERATION_MASK: u64 = u64::MAX >> INDEX_BITS;
/// One more than the largest buffer number. Only [`Handle::NONE`] uses the next number.
pub(crate) const BUFFERS_MAX: usize = (1 << INDEX_BITS) - 1;

/// Binding of a payload to its header: the tag of paper 003, section 3.1.
///
/// The low 16 bits are the number of the buffer, the high 48 bits its generation. A buffer gets a
/// new generation with each allocation, so an old handle never names a new payload. Generations of
/// a cache begin at a random number, so handles of another cache and forged ones are refused. That
/// is a check, not a secret: every handle is looked up in the agent's own cache and can name no
/// payload of another agent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Handle(u64);

impl Handle {
    /// Handle that no cache ever issues. It is a placeholder if there is no payload.
    pub const NONE: Handle = Handle(u64::MAX);

    /// Returns the handle that an agent presents. Every number is accepted here, and the cache
    /// refuses those that it never issued.
    pub const fn from_raw(raw: u64) -> Handle {
        Handle(raw)
    }

    /// Returns the number that represents the handle for an agent.
    pub const fn raw(self) -> u64 {
        self.0
    }

    /// Creates the handle for buffer number `index`, below [`BUFFERS_MAX`], in its `generation`.
    pub(crate) const fn new(index: usize, generation: u64) -> Handle {
        Handle(generation << INDEX_BITS | index as u64)
    }

    /// Returns the number of the payload buffer, which is in the low 16 bits. That buffer may not
    /// exist. Buffers for received frames come before those of the send segment.
    pub const fn number(self) -> usize {
        self.0 as usize & BUFFERS_MAX
    }

    /// Returns the generation of the buffer, which has 48 bits.
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
    /// Formats the buffer number and the generation, as in `7@0x1f3a`.
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
