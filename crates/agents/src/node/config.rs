//! The settings of an agent port.

use axon_cache::{CacheConfig, ConfigError};
use axon_wire::{Bytes, Rate, Span};
use serde::{Deserialize, Serialize};

/// What an agent gets of the packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PayloadMode {
    /// The head; the payload stays with the switch (paper 003, section 3).
    #[default]
    Cached,
    /// The whole frame, which is copied there and back: what payload caching is compared with.
    Copied,
}

/// What becomes of a packet that finds no payload buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhenFull {
    /// It waits in the queue of the agent port, and is dropped where that is full too.
    #[default]
    Wait,
    /// It is dropped and counted.
    Drop,
}

/// The settings of an agent port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentPortConfig {
    /// Payload buffers, and how much of a frame its head is.
    pub cache: CacheConfig,
    /// What the agent gets of the packets.
    pub payload: PayloadMode,
    /// What becomes of a packet that finds no payload buffer.
    pub when_full: WhenFull,
    /// What may wait for a payload buffer, in bytes of frames. The simulator's stand-in for the
    /// queue of the agent port; flow control does not see it. Default 128 KiB, as for every port.
    pub queue_bytes_max: Bytes,
    /// How long the agent's CPU is busy with an event. None by default.
    pub service: Span,
    /// The longest frame that the agent may send, in bytes without FCS. Default 1514.
    pub frame_bytes_max: usize,
}

/// The rate of the link between a simulated switch and its agent, which stands for the way to the
/// CPU: the most that the switch of paper 004 carries there (section 4.1).
pub const CPU_PORT_RATE: Rate = Rate::gbps(4);
/// The one-way latency of that link: paper 004, section 2, calls that of PCI Express a microsecond.
pub const CPU_PORT_LATENCY: Span = Span::from_micros(1);

impl Default for AgentPortConfig {
    fn default() -> AgentPortConfig {
        AgentPortConfig {
            cache: CacheConfig::default(),
            payload: PayloadMode::default(),
            when_full: WhenFull::default(),
            queue_bytes_max: Bytes(128 << 10),
            service: Span::ZERO,
            frame_bytes_max: 1514,
        }
    }
}

impl AgentPortConfig {
    /// Refuses settings out of their range.
    ///
    /// # Errors
    /// As [`CacheConfig::check`].
    pub fn check(&self) -> Result<(), ConfigError> {
        self.cache.check()
    }
}
