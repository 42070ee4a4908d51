//! What an agent port counts.

use axon_cache::CacheCounters;
use serde::{Deserialize, Serialize};

/// What an agent port has counted since it was opened; every byte is counted where it is copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentCounters {
    /// Agents that were attached.
    pub attached: u64,
    /// Agents that were detached because they broke the protocol or stalled.
    pub broken: u64,
    /// Agents that were refused: another version, another user, or one is attached already.
    pub refused: u64,
    /// Times that the port left its socket alone for a while, since too many had connected or an
    /// agent had broken the protocol.
    pub waits: u64,
    /// Packets given to agents.
    pub packets: u64,
    /// Packets that agents forwarded, replaced ones included.
    pub forwarded: u64,
    /// Packets that agents dropped.
    pub dropped: u64,
    /// Payloads that agents fetched.
    pub fetched: u64,
    /// Payloads that agents replaced.
    pub replaced: u64,
    /// Frames of the agents' own.
    pub sent: u64,
    /// Answers with a handle that is not, or no longer, of a packet of that agent.
    pub answers_refused: u64,
    /// Frames that found no room and were dropped, where that is configured.
    pub full_drops: u64,
    /// Packets that were lost because their agent was detached.
    pub lost: u64,
    /// Bytes of frames that the switch has copied to agents.
    pub copied_to_agent_bytes: u64,
    /// Bytes of payloads that the switch had to move, as an agent made the head longer than there
    /// is room before the frame.
    pub moved_bytes: u64,
    /// Bytes of frames that the switch has copied from agents.
    pub copied_from_agent_bytes: u64,
}

/// What an agent port reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentStatus {
    /// The name and the process of the agent that is attached, if there is one.
    pub agent: Option<(String, i32)>,
    /// What the port has counted.
    pub counters: AgentCounters,
    /// What its payload buffers have counted. Where payloads do not stay, frames of 0 bytes stand
    /// in for them.
    pub cache: CacheCounters,
}
