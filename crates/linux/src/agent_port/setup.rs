//! Settings of an agent port.

use super::layout::Layout;
use axon_agents::node::{AgentPortConfig, PayloadMode, WhenFull};
use axon_cache::CacheConfig;
use axon_wire::Span;
use std::path::{Path, PathBuf};

/// Default number of buffers of the agent.
const SEND_BUFFERS: usize = 64;
/// Lower bound of the longest frame, in bytes.
const FRAME_BYTES_MIN: usize = 64;
/// Upper bound of the longest frame, in bytes.
const FRAME_BYTES_MAX: usize = 65_535;
/// Largest shared memory, in bytes. Offsets have 32 bits.
const MEMORY_BYTES_MAX: usize = u32::MAX as usize;

/// Default for the longest delay before the next agent is attached.
const BACKOFF_MAX: Span = Span::from_secs(1);

/// Agent port setting that is out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// Longest frame length is out of range.
    #[error("frames of up to {0} bytes, expected {FRAME_BYTES_MIN} to {FRAME_BYTES_MAX}")]
    FrameBytes(usize),
    /// Memory for all buffers exceeds the limit.
    #[error("{0} bytes of memory, expected at most {MEMORY_BYTES_MAX}: fewer or shorter buffers")]
    Memory(usize),
    /// Payload buffer settings are out of range.
    #[error(transparent)]
    Cache(#[from] axon_cache::ConfigError),
}

/// Settings of an agent port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentPortSetup {
    /// Unix socket on which the port listens for its agent.
    pub socket: PathBuf,
    /// Place where payloads stay while the agent has the head.
    pub payload: PayloadMode,
    /// Length of the head that the agent gets, in bytes.
    pub head_bytes: usize,
    /// Number of packets that the agent may hold at a time.
    pub buffers: usize,
    /// Number of the agent's own buffers, for frames and payloads that it creates and for payloads
    /// that it fetches.
    pub send_buffers: usize,
    /// Longest frame in bytes, without FCS: 64 to 65,535.
    pub frame_bytes_max: usize,
    /// Action when the agent has no room.
    pub when_full: WhenFull,
    /// Longest time for which the agent may hold a packet; unlimited if `None`.
    pub hold_max: Option<Span>,
    /// User who may attach agents, in addition to root and the user of the switch.
    pub uid: Option<u32>,
    /// Longest delay before the next agent is attached, after too many connections or after
    /// protocol violations. 0 means no delay.
    pub backoff_max: Span,
}

impl AgentPortSetup {
    /// Returns the default settings: cached payloads, heads of 128 bytes, 384 buffers (paper 003,
    /// section 3.2), 64 buffers for the agent itself, frames for an MTU of 1,500 bytes, packets
    /// that wait when the agent has no room, and a longest hold time of 1 s.
    pub fn at(socket: &Path) -> AgentPortSetup {
        AgentPortSetup {
            send_buffers: SEND_BUFFERS,
            frame_bytes_max: 1518,
            hold_max: Some(Span::from_secs(1)),
            ..AgentPortSetup::of(socket, &AgentPortConfig::default())
        }
    }

    /// Converts settings from the form that the simulator uses.
    pub(crate) fn of(socket: &Path, config: &AgentPortConfig) -> AgentPortSetup {
        let CacheConfig { buffers, send_buffers, head_bytes, hold_max, .. } = config.cache;
        AgentPortSetup {
            socket: socket.to_owned(),
            payload: config.payload,
            head_bytes,
            buffers,
            send_buffers,
            frame_bytes_max: config.frame_bytes_max,
            when_full: config.when_full,
            hold_max,
            uid: None,
            backoff_max: BACKOFF_MAX,
        }
    }

    /// Checks that all settings are in range.
    ///
    /// # Errors
    /// A setting is out of range. The error names it and its range.
    pub(crate) fn check(&self) -> Result<(), SetupError> {
        self.cache(0).check()?;
        if !(FRAME_BYTES_MIN..=FRAME_BYTES_MAX).contains(&self.frame_bytes_max) {
            return Err(SetupError::FrameBytes(self.frame_bytes_max));
        }
        let bytes = self.layout().memory_bytes();
        if bytes > MEMORY_BYTES_MAX { Err(SetupError::Memory(bytes)) } else { Ok(()) }
    }

    /// Returns the layout of the shared memory.
    pub(super) fn layout(&self) -> Layout {
        let AgentPortSetup { buffers, send_buffers, head_bytes, frame_bytes_max, .. } = *self;
        let stays = self.payload == PayloadMode::Cached;
        Layout::new((buffers, send_buffers), head_bytes, frame_bytes_max, stays)
    }

    /// Returns the settings of the payload buffers.
    pub(super) fn cache(&self, seed: u64) -> CacheConfig {
        let AgentPortSetup { buffers, send_buffers, head_bytes, hold_max, .. } = *self;
        CacheConfig { buffers, send_buffers, head_bytes, hold_max, seed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_out_of_their_range_are_refused_with_what_was_expected() {
        let usual = AgentPortSetup::at(Path::new("a.sock"));
        assert_eq!(usual.check(), Ok(()));
        let none = AgentPortSetup { buffers: 0, ..usual.clone() };
        assert!(matches!(none.check(), Err(SetupError::Cache(_))));
        let short = AgentPortSetup { frame_bytes_max: 63, ..usual.clone() };
        assert_eq!(short.check(), Err(SetupError::FrameBytes(63)));
        let copied = PayloadMode::Copied;
        let many = AgentPortSetup { buffers: 60_000, frame_bytes_max: 65_535, ..usual };
        assert_eq!(many.check(), Ok(()), "only heads are in the memory");
        let copied = AgentPortSetup { payload: copied, ..many };
        assert!(copied.check().unwrap_err().to_string().contains("expected at most 4294967295"));
    }
}
