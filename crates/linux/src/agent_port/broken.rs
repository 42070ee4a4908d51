//! Why an agent is detached.

use super::layout::Kind;
use super::ring::BadCursor;

/// What an agent did that a working one never does, or that it has gone. The switch reads nothing
/// more of its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// Its process has ended, or closed the socket.
    #[error("has closed its socket")]
    Gone,
    /// It sent something over the socket.
    #[error("sends over the socket, where nothing is expected after the hello")]
    Sends,
    /// A cursor is where it cannot be.
    #[error("has moved a cursor to where it cannot be: {} descriptors in a ring", .0.0)]
    Cursor(BadCursor),
    /// A descriptor of no known kind.
    #[error("has written a descriptor of kind {0}, expected 16 to 20")]
    UnknownKind(u32),
    /// A descriptor that only a switch writes.
    #[error("has written a descriptor {0:?}, which only a switch writes")]
    NotAnAnswer(Kind),
    /// A number of a chunk or buffer beyond the last.
    #[error("has named piece {number} of memory, expected one below {count}")]
    NoPiece {
        /// The number.
        number: u32,
        /// How many there are.
        count: usize,
    },
    /// Bytes that are not within their chunk or buffer.
    #[error("has named bytes {offset}+{bytes} of a piece of {piece_bytes} bytes")]
    Outside {
        /// The first of them.
        offset: u32,
        /// Their number.
        bytes: u32,
        /// How many there are.
        piece_bytes: usize,
    },
    /// It has answered without reading, until its ring overflowed.
    #[error("answers what it has not read, so that its ring is full")]
    RingFull,
    /// It does not read, or holds all packets that there may be.
    #[error("stalls: it has read no packet for the longest time allowed, or answers none at all")]
    Stalled,
}

impl From<BadCursor> for Broken {
    fn from(cursor: BadCursor) -> Broken {
        Broken::Cursor(cursor)
    }
}
