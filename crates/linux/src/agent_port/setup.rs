//! The settings of an agent port.

use super::layout::Layout;
use axon_agents::node::{AgentPortConfig, PayloadMode, WhenFull};
use axon_cache::CacheConfig;
use axon_wire::Span;
use std::path::{Path, PathBuf};

/// Buffers of the agent, where nothing is said.
const SEND_BUFFERS: usize = 64;
/// The shortest of the longest frames, in bytes.
const FRAME_BYTES_MIN: usize = 64;
/// The longest frame, in bytes.
const FRAME_BYTES_MAX: usize = 65_535;
/// The largest memory, in bytes: places in it are numbers of 32 bits.
const MEMORY_BYTES_MAX: usize = u32::MAX as usize;

/// The longest wait before the next agent is attached, where nothing is said.
const BACKOFF_MAX: Span = Span::from_secs(1);

/// A setting of an agent port that is out of its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// The longest frame.
    #[error("frames of up to {0} bytes, expected {FRAME_BYTES_MIN} to {FRAME_BYTES_MAX}")]
    FrameBytes(usize),
    /// The memory for all buffers.
    #[error("{0} bytes of memory, expected at most {MEMORY_BYTES_MAX}: fewer or shorter buffers")]
    Memory(usize),
    /// The payload buffers.
    #[error(transparent)]
    Cache(#[from] axon_cache::ConfigError),
}

/// The settings of an agent port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentPortSetup {
    /// The Unix socket at which the agent is attached.
    pub socket: PathBuf,
    /// Where payloads are.
    pub payload: PayloadMode,
    /// The first bytes of a frame that the agent gets as its head, in bytes.
    pub head_bytes: usize,
    /// How many packets the agent may have at a time.
    pub buffers: usize,
    /// Buffers of the agent: for frames of its own, payloads that it brings, and what it fetches.
    pub send_buffers: usize,
    /// The longest frame in bytes, without FCS, 64 to 65,535.
    pub frame_bytes_max: usize,
    /// What happens where there is no room.
    pub when_full: WhenFull,
    /// How long the agent may hold a packet; as long as it likes if `None`.
    pub hold_max: Option<Span>,
    /// The user who may attach agents beside root and the user of the switch.
    pub uid: Option<u32>,
    /// The longest wait before the next agent is attached, where too many have connected or agents
    /// have broken the protocol; none if 0.
    pub backoff_max: Span,
}

impl AgentPortSetup {
    /// The usual settings: payloads stay, heads of 128 bytes, 384 buffers (paper 003, section 3.2),
    /// 64 buffers of the agent's own, frames of an MTU of 1,500 bytes, full queues wait, a packet
    /// is held for 1 s at most.
    pub fn at(socket: &Path) -> AgentPortSetup {
        AgentPortSetup {
            send_buffers: SEND_BUFFERS,
            frame_bytes_max: 1518,
            hold_max: Some(Span::from_secs(1)),
            ..AgentPortSetup::of(socket, &AgentPortConfig::default())
        }
    }

    /// These settings, as the simulator has them, too.
    pub fn of(socket: &Path, config: &AgentPortConfig) -> AgentPortSetup {
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

    /// Refuses settings out of their range.
    ///
    /// # Errors
    /// Which, and what was expected.
    pub fn check(&self) -> Result<(), SetupError> {
        self.cache(0).check()?;
        if !(FRAME_BYTES_MIN..=FRAME_BYTES_MAX).contains(&self.frame_bytes_max) {
            return Err(SetupError::FrameBytes(self.frame_bytes_max));
        }
        let bytes = self.layout().memory_bytes();
        if bytes > MEMORY_BYTES_MAX { Err(SetupError::Memory(bytes)) } else { Ok(()) }
    }

    /// The layout of the memory.
    pub(super) fn layout(&self) -> Layout {
        let AgentPortSetup { buffers, send_buffers, head_bytes, frame_bytes_max, .. } = *self;
        let stays = self.payload == PayloadMode::Cached;
        Layout::new((buffers, send_buffers), head_bytes, frame_bytes_max, stays)
    }

    /// The settings of the payload buffers.
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
