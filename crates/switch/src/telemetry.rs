//! Telemetry of a controller, and parts of that of any node.

use super::chassis::Refusals;
use super::controller::ControllerNode;
use alloc::vec::Vec;
use axon_link::discovery::Discovery;
use axon_node::telemetry::{ControllerHost, ControllerTelemetry, Counts, Neighbour};
use axon_node::{Dataplane, Refusal};
use axon_wire::Time;

impl<D: Dataplane> ControllerNode<D> {
    /// Returns the telemetry of the controller at `now`.
    pub fn telemetry(&self, now: Time) -> ControllerTelemetry {
        let controller = self.controller();
        let graph = controller.graph();
        let hosts = controller.vlans().iter().flat_map(|(vlan, one)| {
            one.hosts().iter().map(move |(_, host)| {
                let place = host.place();
                let switch = graph.switch(place.switch).incarnation.node;
                let (mac, ips) = (host.mac, host.ips.clone());
                ControllerHost { mac, vlan, switch, port: place.port, ips }
            })
        });
        ControllerTelemetry {
            id: self.incarnation().node,
            neighbours: neighbours(self.discovery()),
            switches: graph.switches().filter(|(_, switch)| switch.was_heard()).count() as u64,
            hosts: hosts.collect(),
            ip_conflicts: controller.ip_conflicts().collect(),
            routes: controller.vlans().iter().map(|(_, one)| one.flows().len() as u64).sum(),
            policy: self.policy_telemetry(),
            bonds: controller.bonds_telemetry(),
            restored: controller.restored(),
            unacknowledged: self.unacknowledged() as u64,
            plane: self.plane().telemetry(now),
            probes: self.probes().cloned().collect(),
            refusals: refusals(self.refusals()),
            counters: controller.counters(),
            dhcp: controller.dhcp_counters(),
            refused_settings: self.refused_settings(),
            settings_refused: self.settings_refused(),
        }
    }
}

pub(super) fn neighbours(discovery: &Discovery) -> Vec<Neighbour> {
    let neighbours = discovery.neighbours().map(|(port, neighbour)| Neighbour {
        port,
        node: neighbour.incarnation.node,
        peer_port: neighbour.port,
        restarting: neighbour.is_restarting(),
    });
    neighbours.collect()
}

pub(super) fn refusals(refusals: &Refusals) -> Counts<Refusal> {
    Counts::of(|refusal| refusals.of(refusal))
}
