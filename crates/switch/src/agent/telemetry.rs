//! Telemetry of an agent.

use super::config::{FABRIC, HOST};
use super::node::AgentNode;
use alloc::string::ToString;
use axon_node::telemetry::{AgentTelemetry, ReactionPoint};
use axon_plane::ports::telemetry::of_flow_control;
use axon_wire::Time;
use axon_wire::priority::{Priority, PrioritySet};

impl AgentNode {
    /// Returns the telemetry of the agent at `now`.
    pub fn telemetry(&self, now: Time) -> AgentTelemetry {
        let ports = self.ports();
        let pfc = ports.dcb().map_or(PrioritySet::EMPTY, |dcb| dcb.pfc(FABRIC));
        let point = |priority| {
            let rate = self.limiter(priority)?.point().rate();
            let (cnms, rate_bps) = (self.cnms(priority), rate.bits_per_second());
            Some(ReactionPoint { priority, cnms, rate_bps })
        };
        AgentTelemetry {
            pfc,
            pause: pfc.is_empty(),
            rules: self.rules().to_string(),
            reaction_points: Priority::ALL.into_iter().filter_map(point).collect(),
            dcbx: self.neighbour().map(|port| port.telemetry(FABRIC)),
            host: of_flow_control(ports, now, HOST),
            fabric: of_flow_control(ports, now, FABRIC),
            total: ports.counters().total(),
        }
    }
}
