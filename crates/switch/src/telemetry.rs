//! Telemetry of whole nodes.

use super::chassis::Refusals;
use super::controller::ControllerNode;
use super::switch::SwitchNode;
use crate::static_mode::StaticControl;
use alloc::vec::Vec;
use axon_link::discovery::Discovery;
use axon_node::telemetry::{
    ControllerHost, ControllerTelemetry, Counts, EdgeCounters, EdgeHost, EdgeRoute, Neighbour,
    SwitchTelemetry,
};
use axon_node::{Dataplane, Refusal};
use axon_wire::{PortNo, Time};

impl<D: Dataplane> SwitchNode<D> {
    /// Returns the telemetry of the switch at `now`.
    pub fn telemetry(&self, now: Time) -> SwitchTelemetry {
        let edges = self.edges();
        let ports = (0..self.plane().count()).map(PortNo);
        let host = |(vlan, mac, host): (_, _, &axon_edge::Host)| EdgeHost {
            mac,
            vlan,
            port: host.port,
            ip: host.ips.ipv4(),
        };
        let routes = edges.iter().flat_map(|(vlan, edge)| {
            edge.keyed_flows().map(move |((port, key), flow)| EdgeRoute {
                port,
                vlan,
                destination: key.destination,
                source: key.source,
                hops: flow.route.hops.clone(),
                placed: flow.is_placed(),
            })
        });
        let [lacpdus_sent, lacpdus_received, lacpdus_refused] = self.chassis.lacp.counts;
        SwitchTelemetry {
            id: self.incarnation().node,
            controller_path: self.uplink().path().map(|path| path.hops.clone()),
            neighbours: neighbours(self.discovery()),
            dcbx: ports.filter_map(|port| Some(self.dcbx(port)?.telemetry(port))).collect(),
            hosts: edges.hosts().map(host).collect(),
            routes: routes.collect(),
            waiting_frames: self.waiting_frames(),
            waiting_bytes: self.waiting_bytes() as u64,
            unacknowledged: self.unacknowledged() as u64,
            plane: self.plane().telemetry(now),
            probes: self.probes().cloned().collect(),
            refusals: refusals(self.refusals()),
            edge: EdgeCounters {
                lacpdus_sent,
                lacpdus_received,
                lacpdus_refused,
                ..edges.counters()
            },
            debts: edges.debts(),
            refused_settings: self.refused_settings(),
            settings_refused: self.settings_refused(),
            alone: self.alone().map(StaticControl::telemetry),
        }
    }
}

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

fn neighbours(discovery: &Discovery) -> Vec<Neighbour> {
    let neighbours = discovery.neighbours().map(|(port, neighbour)| Neighbour {
        port,
        node: neighbour.incarnation.node,
        peer_port: neighbour.port,
        restarting: neighbour.is_restarting(),
    });
    neighbours.collect()
}

fn refusals(refusals: &Refusals) -> Counts<Refusal> {
    Counts::of(|refusal| refusals.of(refusal))
}
