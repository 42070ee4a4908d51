//! Telemetry of the software plane.

use super::lookups::Lookups;
use super::plane::Plane;
use crate::ports::telemetry;
use axon_node::telemetry::{PlaneTelemetry, PortTelemetry};
use axon_wire::{PortNo, Time};

impl<T: Lookups> Plane<T> {
    /// Returns counters, memory and ports at `now`.
    pub(super) fn read_telemetry(&self, now: Time) -> PlaneTelemetry {
        let port = |port: PortNo| PortTelemetry {
            routes: self.tables().len(port) as u64,
            ..telemetry::of_port(&self.ports, now, port)
        };
        PlaneTelemetry {
            total: self.counters().total(),
            memory: telemetry::of_memory(&self.ports),
            ports: (0..self.config().ports).map(PortNo).map(port).collect(),
        }
    }
}
