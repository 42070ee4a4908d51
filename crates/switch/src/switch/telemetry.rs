//! Telemetry of a switch.

use super::SwitchNode;
use crate::static_mode::StaticControl;
use crate::telemetry::{neighbours, refusals};
use axon_node::Dataplane;
use axon_node::telemetry::{EdgeCounters, EdgeHost, EdgeRoute, SwitchTelemetry};
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
            settings_refused: self.chassis.settings.refusals(),
            alone: self.alone().map(StaticControl::telemetry),
        }
    }
}
