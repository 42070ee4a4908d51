//! Access to the hosts of a world, and their results.

use crate::host::Host;
use crate::host::apps::{AppId, FlowStats};
use crate::world::World;
use axon_wire::Time;

impl World {
    /// Calls `work` with a host and the simulated time, then lets the host act on it. Returns the
    /// result of `work`, or `None` if the host has no power.
    pub fn with_host<R>(
        &mut self,
        host: usize,
        work: impl FnOnce(&mut Host, Time) -> R,
    ) -> Option<R> {
        let now = self.now();
        let result = work(self.host_mut(host)?, now);
        self.nudge_host(host);
        Some(result)
    }

    /// Returns the statistics of a host's application.
    pub fn flow_stats(&self, host: usize, id: AppId) -> Option<&FlowStats> {
        self.host(host)?.flow_stats(id)
    }
}
