//! Counters of an agent port.

use axon_cache::CacheCounters;
use serde::{Deserialize, Serialize};

/// Counters of an agent port since it was opened. Every byte is counted where it is copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentCounters {
    /// Number of times that an agent was attached.
    pub attached: u64,
    /// Agents detached for a protocol violation or a stall.
    pub broken: u64,
    /// Refused agents: wrong version, wrong user, or another agent is attached.
    pub refused: u64,
    /// Times that the port ignored its socket for a while, after too many connections or a protocol
    /// violation.
    pub waits: u64,
    /// Packets passed to agents.
    pub packets: u64,
    /// Packets that agents forwarded, replaced ones included.
    pub forwarded: u64,
    /// Packets that agents dropped.
    pub dropped: u64,
    /// Payloads that agents fetched.
    pub fetched: u64,
    /// Payloads that agents replaced.
    pub replaced: u64,
    /// Frames that agents originated.
    pub sent: u64,
    /// Answers with a handle that belongs to no current packet of that agent.
    pub answers_refused: u64,
    /// Frames dropped for lack of room, where dropping is configured.
    pub full_drops: u64,
    /// Packets lost because their agent was detached.
    pub lost: u64,
    /// Frame bytes that the switch copied to agents.
    pub copied_to_agent_bytes: u64,
    /// Payload bytes that the switch moved because an agent extended the head beyond the headroom
    /// of the frame.
    pub moved_bytes: u64,
    /// Frame bytes that the switch copied from agents.
    pub copied_from_agent_bytes: u64,
}

/// Status of an agent port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentStatus {
    /// Name and process ID of the attached agent, if there is one.
    pub agent: Option<(String, i32)>,
    /// Counters of the port.
    pub counters: AgentCounters,
    /// Counters of the payload buffers. In copy mode, frames of 0 bytes take the place of payloads.
    pub cache: CacheCounters,
}
