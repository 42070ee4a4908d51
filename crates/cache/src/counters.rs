//! Counters of a cache.

use crate::error::{HandleError, HandleFault, Side};
use serde::{Deserialize, Serialize};

/// Counters of one cache since its creation. They never decrease.
///
/// Conservation, checked by the tests: `received` + `brought` = `sent_for_good` + `released` +
/// `replaced` + `expired` + `reset` + `evicted` + the buffers that are not free now.
///
/// The traffic between switch and agent is `copied_to_agent_bytes` + `copied_from_agent_bytes`.
/// Without a cache it would be each frame twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheCounters {
    /// Buffers allocated to received frames.
    pub received: u64,
    /// Buffers allocated to payloads that the agent brought, replacements included.
    pub brought: u64,
    /// Sends of a payload that was in its buffer and did not have to come from the agent.
    pub hits: u64,
    /// Sends refused because the buffer had been reallocated. The agent has to bring the payload;
    /// the cost is in `copied_from_agent_bytes`. A late second answer of an agent counts here as
    /// well.
    pub misses: u64,
    /// First sends of payloads that the agent brought: neither hit nor miss.
    pub own: u64,
    /// Payloads that left by being sent and not kept. A send that takes time counts here when it
    /// ends; hits count when it begins.
    pub sent_for_good: u64,
    /// Handles refused because the payload was gone: sent for good, released, replaced, expired or
    /// reset; and, for operations other than sends, because the buffer had been reallocated.
    pub stale: u64,
    /// Handles refused because the cache never issued them.
    pub forged: u64,
    /// Handles of the agent refused because of a pending transfer.
    pub in_transfer: u64,
    /// Payloads that the agent dropped.
    pub released: u64,
    /// Payloads that the agent replaced by another one.
    pub replaced: u64,
    /// Payloads reclaimed because the agent held them for too long.
    pub expired: u64,
    /// Buffers that were not free when the cache was reset, those of kept payloads included.
    pub reset: u64,
    /// Kept payloads that were evicted. They had been sent at least once.
    pub evicted: u64,
    /// Frames that found no buffer.
    pub full: u64,
    /// Payloads brought by the agent that found no buffer in the send segment.
    pub send_full: u64,
    /// Bytes copied to the agent: heads of frames and fetched payload.
    pub copied_to_agent_bytes: u64,
    /// Bytes copied from the agent: heads that it wrote and payloads that it brought.
    pub copied_from_agent_bytes: u64,
    /// Bytes of payload, heads excluded, that were sent by hits: those that did not cross a second
    /// time (paper 003, section 3.1).
    pub saved_bytes: u64,
    /// Maximum number of buffers in use at once, held by the agent or in transfer; the send segment
    /// is not counted.
    pub in_use_max: u64,
    /// Maximum number of buffers of the send segment in use at once.
    pub send_in_use_max: u64,
}

impl CacheCounters {
    /// Counts an allocation: whether a payload was evicted by it, or `None` if there was no buffer.
    #[inline]
    pub(crate) fn attached(&mut self, side: Side, evicted: Option<bool>) {
        let (given, full) = match side {
            Side::Receive => (&mut self.received, &mut self.full),
            Side::Send => (&mut self.brought, &mut self.send_full),
        };
        *if evicted.is_some() { given } else { full } += 1;
        self.evicted += u64::from(evicted == Some(true));
    }

    /// Updates the maximum number of buffers in use.
    #[inline]
    pub(crate) fn note_in_use(&mut self, side: Side, in_use: usize) {
        let max = match side {
            Side::Receive => &mut self.in_use_max,
            Side::Send => &mut self.send_in_use_max,
        };
        *max = (*max).max(in_use as u64);
    }

    /// Counts a handle that is refused to the agent.
    pub(crate) fn refused(&mut self, error: HandleError) -> HandleError {
        match error.fault {
            HandleFault::Forged => self.forged += 1,
            HandleFault::Reallocated | HandleFault::Gone => self.stale += 1,
            HandleFault::InTransfer => self.in_transfer += 1,
            HandleFault::NoTransfer => {}
        }
        error
    }
}
