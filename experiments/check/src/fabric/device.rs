//! Data plane of a switch: its route tables and port kinds.

use super::wiring::{HOST, PORTS, Wiring};
use axon_node::{
    Capabilities, FeatureSet, PortKind, PortSnapshot, PortView, RouteAnswer, RouteChange,
    RouteError, RouteTicket, Snapshot,
};
use axon_wire::{HopWidth, MacAddr, PortNo, Rate, Route};
use std::collections::BTreeMap;

/// Data plane tables that accept every change at once.
#[derive(Clone, Debug)]
pub(super) struct Device {
    kinds: Vec<PortKind>,
    pub(super) routes: BTreeMap<(PortNo, MacAddr), Route>,
}

impl Device {
    /// Creates the device of a switch whose port kinds are known.
    pub(super) fn new(wiring: &Wiring, switch: usize) -> Device {
        let kind = |port: u16| {
            let at = axon_wire::message::LinkEnd {
                node: super::wiring::node_id(switch),
                port: PortNo(port),
            };
            match wiring.host_of(at).is_some() || PortNo(port) == HOST {
                true => PortKind::Host,
                false => PortKind::Axon,
            }
        };
        Device { kinds: (0..PORTS).map(kind).collect(), routes: BTreeMap::new() }
    }

    pub(super) fn capabilities() -> Capabilities {
        Capabilities {
            name: "check",
            ports: PORTS,
            hop_width: HopWidth::Eight,
            frame_bytes_max: 1514,
            route_bytes_max: 128,
            routes_per_port_max: 4,
            masqueraded_per_port_max: 0,
            port_rate_max: Rate::FASTEST,
            queues_per_port: 1,
            lossless_classes: 0,
            features: FeatureSet::EMPTY,
        }
    }

    pub(super) fn change(&mut self, ticket: RouteTicket, change: RouteChange) -> RouteAnswer {
        match change {
            RouteChange::Install { port, key, route } => {
                self.routes.insert((port, key.destination), route);
            }
            RouteChange::Remove { port, key } => {
                self.routes.remove(&(port, key.destination));
            }
            RouteChange::Masquerade { .. } => {
                return RouteAnswer { ticket, result: Err(RouteError::Full) };
            }
        }
        RouteAnswer { ticket, result: Ok(()) }
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        let port = |(port, kind): (u16, &PortKind)| PortSnapshot {
            kind: *kind,
            routes: (self.routes.iter())
                .filter(|((at, _), _)| at.0 == port)
                .map(|((_, mac), route)| ((*mac).into(), route.clone()))
                .collect(),
            ..PortSnapshot::default()
        };
        Snapshot { ports: (0..).zip(&self.kinds).map(port).collect() }
    }

    pub(super) fn host_ports(&self) -> Vec<PortNo> {
        let hosts = (0..).zip(&self.kinds).filter(|(_, kind)| **kind == PortKind::Host);
        hosts.map(|(port, _)| PortNo(port)).collect()
    }
}

impl PortView for Device {
    fn count(&self) -> u16 {
        PORTS
    }

    fn kind(&self, port: PortNo) -> Option<PortKind> {
        self.kinds.get(port.index()).copied()
    }

    fn is_up(&self, port: PortNo) -> bool {
        port.0 < PORTS
    }
}
