//! Configuration of an agent port.

use axon_cache::CacheConfig;
use axon_wire::{Bytes, Rate, Span};
use serde::{Deserialize, Serialize};

/// Part of a packet that the agent gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PayloadMode {
    /// The head; the payload stays with the switch (paper 003, section 3).
    #[default]
    Cached,
    /// The whole frame, copied both ways: the baseline of payload caching.
    Copied,
}

/// Handling of a packet that finds no payload buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhenFull {
    /// The packet waits in the queue of the agent port, and is dropped if that is full, too.
    #[default]
    Wait,
    /// The packet is dropped and counted.
    Drop,
}

/// Configuration of an agent port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentPortConfig {
    /// Payload buffers, and the head length.
    pub cache: CacheConfig,
    /// Part of a packet that the agent gets.
    pub payload: PayloadMode,
    /// Handling of a packet that finds no payload buffer.
    pub when_full: WhenFull,
    /// Maximum bytes of frames waiting for a payload buffer. This is the simulator's substitute for
    /// the queue of the agent port; flow control ignores it. Default 128 KiB, as for every port.
    pub queue_bytes_max: Bytes,
    /// CPU time of the agent for each event. Zero by default.
    pub service: Span,
    /// Longest frame that the agent may send, in bytes without FCS. Default 1514.
    pub frame_bytes_max: usize,
}

/// Rate of the link between a simulated switch and its agent. The link models the path to the CPU,
/// and the rate is the maximum of the switch in paper 004 (section 4.1).
pub const CPU_PORT_RATE: Rate = Rate::gbps(4);
/// One-way latency of that link. PCI Express has about a microsecond (paper 004, section 2).
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
