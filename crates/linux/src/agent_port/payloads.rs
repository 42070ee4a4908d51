//! State of an agent port that outlives an agent.

use super::counters::AgentCounters;
use axon_cache::{Handle, PayloadCache, State};
use axon_wire::FrameBuf;

/// Payload buffers and counters of an agent port.
pub(super) struct Payloads {
    pub(super) cache: PayloadCache<FrameBuf>,
    pub(super) counters: AgentCounters,
}

impl Payloads {
    /// Counts a refused answer. The cache determines whether its handle is stale or forged.
    #[cold]
    pub(super) fn refuse(&mut self, handle: Handle) {
        self.counters.answers_refused += 1;
        // The handle must not be that of a packet that the agent holds in another chunk.
        if !matches!(self.cache.state(handle), Ok(state) if state != State::Free) {
            let _ = self.cache.release(handle);
        }
    }
}
