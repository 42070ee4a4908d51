//! Work for the hosts of a world, and what has come of it.

use crate::host::Host;
use crate::host::apps::{AppId, FlowStats};
use crate::world::World;
use axon_wire::Time;

impl World {
    /// Gives a host work and lets it see that; `None` if it has no power.
    pub fn give<R>(&mut self, host: usize, work: impl FnOnce(&mut Host, Time) -> R) -> Option<R> {
        let now = self.now();
        let result = work(self.host_mut(host)?, now);
        self.nudge_host(host);
        Some(result)
    }

    /// What an application of a host has counted.
    pub fn flow_stats(&self, host: usize, id: AppId) -> Option<&FlowStats> {
        self.host(host)?.flow_stats(id)
    }
}
