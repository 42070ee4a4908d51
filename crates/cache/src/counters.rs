//! What a cache counts.

use serde::{Deserialize, Serialize};

/// The counters of one cache, since it was made. Numbers only grow.
///
/// Conservation, which the tests hold: `received` + `brought` = `sent_for_good` + `released` +
/// `replaced` + `expired` + `reset` + `evicted` + the buffers that are not free now.
///
/// What crosses between switch and agent is `copied_to_agent_bytes` + `copied_from_agent_bytes`.
/// Without a cache it would be each frame twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheCounters {
    /// Buffers given to frames that came in for the agent.
    pub received: u64,
    /// Buffers given to payloads that the agent brought, replacements included.
    pub brought: u64,
    /// Sends of a payload that was in its buffer and did not have to come from the agent.
    pub hits: u64,
    /// Sends refused because the buffer had been given to another payload. The agent has to bring
    /// the payload; what that costs is in `copied_from_agent_bytes`. An agent that answers twice,
    /// the second time that late, counts here as well.
    pub misses: u64,
    /// First sends of payloads that the agent brought: neither hit nor miss.
    pub own: u64,
    /// Payloads that left by being sent and not kept. A send that takes time counts here when it
    /// ends, and above when it begins.
    pub sent_for_good: u64,
    /// Handles refused because the payload was gone: sent for good, released, replaced, expired or
    /// reset; and, where it is no send, because the buffer had been given to another payload.
    pub stale: u64,
    /// Handles refused because the cache never gave them out.
    pub forged: u64,
    /// Handles of the agent refused because a transfer was pending that must end first.
    pub in_transfer: u64,
    /// Payloads that the agent dropped.
    pub released: u64,
    /// Payloads that the agent replaced by another one.
    pub replaced: u64,
    /// Payloads reclaimed because the agent held them for too long.
    pub expired: u64,
    /// Buffers that were not free when the cache was reset, those of kept payloads included.
    pub reset: u64,
    /// Kept payloads that made room for another one. They had been sent at least once.
    pub evicted: u64,
    /// Frames that found no buffer.
    pub full: u64,
    /// Payloads brought by the agent that found no buffer in the send segment.
    pub send_full: u64,
    /// Bytes copied to the agent: heads of frames and what it fetched.
    pub copied_to_agent_bytes: u64,
    /// Bytes copied from the agent: heads that it wrote and payloads that it brought.
    pub copied_from_agent_bytes: u64,
    /// Bytes of payload, heads not counted, that were sent by hits: those that did not cross a
    /// second time (paper 003, section 3.1).
    pub saved_bytes: u64,
    /// The most buffers that were in use at once, held by the agent or in transfer; the send
    /// segment not counted.
    pub in_use_max: u64,
    /// The same in the send segment.
    pub send_in_use_max: u64,
}
