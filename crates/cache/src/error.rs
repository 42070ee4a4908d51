//! Errors of a cache.

use crate::handle::{BUFFERS_MAX, Handle};
use core::fmt;

/// Reason why a handle is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum HandleFault {
    /// The cache never issued this handle. It is forged or corrupted, or it belongs to another
    /// agent.
    #[error("never given out by this cache")]
    Forged,
    /// The buffer has since been reallocated. For a send, this is a **miss**: the agent has to
    /// bring the payload itself, with [`bring`](crate::PayloadCache::bring).
    #[error("its buffer was given to another payload since; the agent must bring the payload")]
    Reallocated,
    /// The payload was sent for good, released, replaced, expired or reset, and its buffer has not
    /// been reallocated yet.
    #[error("its payload was sent, released, replaced, expired or reset before")]
    Gone,
    /// A pending transfer must end first, because the payload is not here yet or is being read.
    #[error("a transfer of its payload is pending and must end first")]
    InTransfer,
    /// The end of a transfer was reported, but that transfer is not pending.
    #[error("no such transfer of its payload is pending")]
    NoTransfer,
}

impl HandleFault {
    /// Returns the error that `handle` is refused for this reason.
    pub(crate) const fn of(self, handle: Handle) -> HandleError {
        HandleError { handle, fault: self }
    }
}

/// Refused handle. Only a counter has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("payload handle {handle}: {fault}")]
pub struct HandleError {
    /// Handle in the form in which it was presented.
    pub handle: Handle,
    /// Reason for the refusal.
    pub fault: HandleFault,
}

/// Part of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// Buffers for received frames.
    Receive,
    /// Send segment: buffers for payloads that the agent brings.
    Send,
}

impl Side {
    pub(crate) const ALL: [Side; 2] = [Side::Receive, Side::Send];
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Side::Receive => "receive",
            Side::Send => "send",
        })
    }
}

/// Error: all buffers are in use. The caller has to wait, or to drop the frame and count it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error(
    "no payload buffer: all {buffers} of the {side} segment are in use, \
     by an agent that holds them or by pending transfers"
)]
pub struct Full {
    /// Part of the cache that is full.
    pub side: Side,
    /// Number of buffers in that part.
    pub buffers: usize,
}

/// Reason why a payload could not be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ReplaceError {
    /// The handle of the old payload is refused.
    #[error(transparent)]
    Handle(#[from] HandleError),
    /// The send segment has no buffer for the new payload. The old one is unchanged.
    #[error(transparent)]
    Full(#[from] Full),
}

/// Reason why part of a payload could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum FetchError {
    /// The handle is refused.
    #[error(transparent)]
    Handle(#[from] HandleError),
    /// The range is outside the frame.
    #[error("bytes {start}..{end} of payload {handle}, whose frame has bytes 0..{bytes}")]
    Range {
        /// Handle in the form in which it was presented.
        handle: Handle,
        /// Offset of the first requested byte.
        start: usize,
        /// Offset after the last requested byte.
        end: usize,
        /// Length of the frame, in bytes.
        bytes: usize,
    },
}

/// Refused payload, returned with the reason.
pub struct Refused<P, E> {
    /// Unchanged payload.
    pub payload: P,
    /// Reason for the refusal.
    pub error: E,
}

impl<P, E: fmt::Debug> fmt::Debug for Refused<P, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refused").field("error", &self.error).finish_non_exhaustive()
    }
}

impl<P, E: fmt::Display> fmt::Display for Refused<P, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl<P, E: core::error::Error> core::error::Error for Refused<P, E> {}

/// Error: a setting of a cache is out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ConfigError {
    /// A part of the cache has no buffer.
    #[error("0 {0} buffers: at least 1 expected")]
    NoBuffers(Side),
    /// There are more buffers than handles can number.
    #[error("{buffers} + {send_buffers} payload buffers: at most {BUFFERS_MAX} together expected")]
    TooManyBuffers {
        /// Number of buffers for received frames.
        buffers: usize,
        /// Number of buffers in the send segment.
        send_buffers: usize,
    },
}
