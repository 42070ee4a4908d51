//! Telemetry of the software plane.

use super::lookups::Lookups;
use super::plane::Plane;
use axon_node::telemetry::{PlaneTelemetry, PortTelemetry};
use axon_wire::{PortNo, Time};

impl<T: Lookups> Plane<T> {
    /// Returns counters, memory and ports at `now`.
    pub(super) fn read_telemetry(&self, now: Time) -> PlaneTelemetry {
        let port = |port: PortNo| PortTelemetry {
            routes: self.tables().len(port) as u64,
            ..self.ports().telemetry(now, port)
        };
        PlaneTelemetry {
            total: self.counters().total(),
            memory: self.ports().memory_telemetry(),
            ports: (0..self.config().ports).map(PortNo).map(port).collect(),
        }
    }
}
