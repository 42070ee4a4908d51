//! What a cache refuses, and why.

use crate::handle::{BUFFERS_MAX, Handle};
use core::fmt;

/// Why a handle is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum HandleFault {
    /// The cache never gave this handle out: it is invented, damaged, or of another agent.
    #[error("never given out by this cache")]
    Forged,
    /// The buffer has been given to another payload since. For a send this is a **miss**: the agent
    /// has to bring the payload itself, with [`bring`](crate::PayloadCache::bring).
    #[error("its buffer was given to another payload since; the agent must bring the payload")]
    Reallocated,
    /// The payload was sent for good, released, replaced, expired or reset, and its buffer still
    /// waits for another one.
    #[error("its payload was sent, released, replaced, expired or reset before")]
    Gone,
    /// A transfer is pending that must end first: the payload is not here yet, or it would be taken
    /// away while it is being read.
    #[error("a transfer of its payload is pending and must end first")]
    InTransfer,
    /// A transfer was reported to have ended that is not pending.
    #[error("no such transfer of its payload is pending")]
    NoTransfer,
}

/// A handle that is refused. Nothing has changed but a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("payload handle {handle}: {fault}")]
pub struct HandleError {
    /// The handle as it was presented.
    pub handle: Handle,
    /// What is wrong with it.
    pub fault: HandleFault,
}

/// One of the two parts of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The buffers of frames that came in for the agent.
    Receive,
    /// The send segment: the buffers of payloads that the agent brings.
    Send,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Side::Receive => "receive",
            Side::Send => "send",
        })
    }
}

/// All buffers are in use. The caller has to wait, or to drop and count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error(
    "no payload buffer: all {buffers} of the {side} segment are in use, \
     by an agent that holds them or by pending transfers"
)]
pub struct Full {
    /// The part of the cache that is full.
    pub side: Side,
    /// How many buffers that part has.
    pub buffers: usize,
}

/// Why a payload could not be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ReplaceError {
    /// The handle of the old payload is refused.
    #[error(transparent)]
    Handle(#[from] HandleError),
    /// The send segment has no buffer for the new payload. The old one is untouched.
    #[error(transparent)]
    Full(#[from] Full),
}

/// Why a part of a payload could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum FetchError {
    /// The handle is refused.
    #[error(transparent)]
    Handle(#[from] HandleError),
    /// The range does not lie in the frame.
    #[error("bytes {start}..{end} of payload {handle}, whose frame has bytes 0..{bytes}")]
    Range {
        /// The handle as it was presented.
        handle: Handle,
        /// The first byte asked for.
        start: usize,
        /// One more than the last byte asked for.
        end: usize,
        /// The length of the frame in bytes.
        bytes: usize,
    },
}

/// A payload that the cache did not take, given back, and why.
pub struct Refused<P, E> {
    /// The payload, untouched.
    pub payload: P,
    /// The reason.
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

/// A setting of a cache that is out of its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ConfigError {
    /// One of the two parts has no buffer.
    #[error("0 {0} buffers: at least 1 expected")]
    NoBuffers(Side),
    /// More buffers than handles can number.
    #[error("{buffers} + {send_buffers} payload buffers: at most {BUFFERS_MAX} together expected")]
    TooManyBuffers {
        /// Those for frames that come in.
        buffers: usize,
        /// Those of the send segment.
        send_buffers: usize,
    },
}
