//! Configuration of a cache.

use crate::error::{ConfigError, Side};
use crate::handle::BUFFERS_MAX;
use axon_wire::Span;
use serde::{Deserialize, Serialize};

/// Size of a cache, and head length of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CacheConfig {
    /// Number of buffers for received frames, 1 or more; with `send_buffers` at most 65,535.
    /// Default 384, as in LANai 7 and 9 (paper 003, section 3.2). A program with rings needs as
    /// many as both rings may hold.
    pub buffers: usize,
    /// Number of buffers of the send segment, for payloads that the agent brings, 1 or more.
    /// Default 4 (paper 003, section 3.2).
    pub send_buffers: usize,
    /// Length of the head that the agent gets with the handle, in bytes; the rest stays. 0 gives
    /// handles only, `usize::MAX` whole frames. Default 128.
    pub head_bytes: usize,
    /// Maximum hold time of a payload, from its allocation. Payloads held for that long or longer
    /// are reclaimed by [`expire`](crate::PayloadCache::expire). No limit if `None`, the default.
    pub hold_max: Option<Span>,
    /// Seed of the first generation of handles. Any number, different for each agent.
    pub seed: u64,
}

impl Default for CacheConfig {
    fn default() -> CacheConfig {
        CacheConfig { buffers: 384, send_buffers: 4, head_bytes: 128, hold_max: None, seed: 0 }
    }
}

impl CacheConfig {
    /// Checks the ranges of the settings.
    ///
    /// # Errors
    /// A part of the cache has no buffer, or both together exceed the numbers of handles.
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
