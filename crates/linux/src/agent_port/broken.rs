//! Reasons for detaching an agent.

use super::layout::Kind;
use super::ring::BadCursor;

/// Reason for detaching an agent: a protocol violation or its end. The switch reads nothing more
/// from the agent's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// The process has ended, or has closed the socket.
    #[error("has closed its socket")]
    Gone,
    /// The agent sent data over the socket.
    #[error("sends over the socket, where nothing is expected after the hello")]
    Sends,
    /// A cursor is out of range.
    #[error("has moved a cursor to where it cannot be: {} descriptors in a ring", .0.0)]
    Cursor(BadCursor),
    /// A descriptor has an unknown kind.
    #[error("has written a descriptor of kind {0}, expected 16 to 20")]
    UnknownKind(u32),
    /// The kind of a descriptor is one that only a switch writes.
    #[error("has written a descriptor {0:?}, which only a switch writes")]
    NotAnAnswer(Kind),
    /// A chunk or buffer number is out of range.
    #[error("has named piece {number} of memory, expected one below {count}")]
    NoPiece {
        /// Chunk or buffer number.
        number: u32,
        /// Number of chunks or buffers.
        count: usize,
    },
    /// A byte range exceeds its chunk or buffer.
    #[error("has named bytes {offset}+{bytes} of a piece of {piece_bytes} bytes")]
    Outside {
        /// Offset of the first byte.
        offset: u32,
        /// Length of the range, in bytes.
        bytes: u32,
        /// Size of the chunk or buffer, in bytes.
        piece_bytes: usize,
    },
    /// The agent wrote answers without reading until the ring to it was full.
    #[error("answers what it has not read, so that its ring is full")]
    RingFull,
    /// The agent does not read, or it holds the maximum number of packets.
    #[error("stalls: it has read no packet for the longest time allowed, or answers none at all")]
    Stalled,
}

impl From<BadCursor> for Broken {
    fn from(cursor: BadCursor) -> Broken {
        Broken::Cursor(cursor)
    }
}
