//! The settings of a cache.

use crate::error::{ConfigError, Side};
use crate::handle::BUFFERS_MAX;
use axon_wire::Span;
use serde::{Deserialize, Serialize};

/// How large a cache is and what an agent gets of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CacheConfig {
    /// Buffers for frames that come in for the agent, 1 or more; with `send_buffers` at most
    /// 65,535. Default 384, those of LANai 7 and 9 (paper 003, section 3.2). A program with rings
    /// needs as many as frames may wait in both of them.
    pub buffers: usize,
    /// Buffers of the send segment, for payloads that the agent brings, 1 or more. Default 4
    /// (paper 003, section 3.2).
    pub send_buffers: usize,
    /// The first bytes of a frame that the agent gets with the handle, in bytes; the rest stays.
    /// 0 gives handles only, `usize::MAX` whole frames. Default 128.
    pub head_bytes: usize,
    /// How long an agent may hold a payload, from when its buffer was given to it. One that is
    /// held for that long or longer is reclaimed by [`expire`](crate::PayloadCache::expire). No
    /// limit if `None`, the default.
    pub hold_max: Option<Span>,
    /// Where the first generation of handles is drawn from. Another one for each agent; any number.
    pub seed: u64,
}

impl Default for CacheConfig {
    fn default() -> CacheConfig {
        CacheConfig { buffers: 384, send_buffers: 4, head_bytes: 128, hold_max: None, seed: 0 }
    }
}

impl CacheConfig {
    /// Refuses settings out of their range.
    ///
    /// # Errors
    /// A part of the cache would have no buffer, or both together more than handles can number.
    pub fn check(&self) -> Result<(), ConfigError> {
        let CacheConfig { buffers, send_buffers, .. } = *self;
        if buffers == 0 {
            return Err(ConfigError::NoBuffers(Side::Receive));
        }
        if send_buffers == 0 {
            return Err(ConfigError::NoBuffers(Side::Send));
        }
        if buffers.saturating_add(send_buffers) > BUFFERS_MAX {
            return Err(ConfigError::TooManyBuffers { buffers, send_buffers });
        }
        Ok(())
    }
}
