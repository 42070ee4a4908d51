//! Data plane for the tests of this folder.

use super::context::{Cx, Timer};
use super::controller::Controller;
use super::failover::DownLinks;
use super::settings::Settings;
use super::tables::Tables;
use crate::effect::Effect;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use axon_node::agenda::Agenda;
use axon_node::telemetry::EdgeCounters;
use axon_node::{
    Capabilities, FeatureSet, PortKind, PortView, RouteAnswer, RouteChange, RouteError, RouteKey,
    RouteTicket,
};
use axon_wire::Time;
use axon_wire::vlan::VlanId;
use axon_wire::{HopWidth, MacAddr, PortNo, Rate, Route};

/// Number of ports of the switch under test: 0 to 2 for hosts, 3 an Axon port.
pub(super) const PORTS: u16 = 4;

/// A data plane that consists of its tables and the kinds of its ports.
#[derive(Debug)]
pub(super) struct TestDevice {
    pub(super) kinds: [PortKind; PORTS as usize],
    pub(super) routes: BTreeMap<(PortNo, RouteKey), Route>,
    routes_per_port_max: usize,
    /// Number of indexes of route memory.
    pub(super) masqueraded_per_port_max: usize,
    /// Destination and route by port and masqueraded address.
    pub(super) memory: BTreeMap<(PortNo, MacAddr), (MacAddr, Route)>,
    pub(super) features: FeatureSet,
    /// Number of installs to refuse, regardless of room.
    pub(super) refuses: usize,
    /// Number of removals to refuse.
    pub(super) keeps: usize,
    /// Pending changes, if the device answers late.
    pub(super) late: Option<Vec<(RouteTicket, RouteChange)>>,
}

impl TestDevice {
    pub(super) fn new(routes_per_port_max: usize) -> TestDevice {
        let kinds = [PortKind::Host; PORTS as usize];
        TestDevice {
            kinds,
            routes: BTreeMap::new(),
            routes_per_port_max,
            masqueraded_per_port_max: 0,
            memory: BTreeMap::new(),
            features: FeatureSet::ALL,
            refuses: 0,
            keeps: 0,
            late: None,
        }
    }

    /// Carries out a change and returns the answer.
    pub(super) fn change(&mut self, ticket: RouteTicket, change: &RouteChange) -> RouteAnswer {
        let result = match change {
            RouteChange::Install { port, key, route } => {
                let key = (*port, *key);
                let room = self.count(*port) < self.routes_per_port_max;
                if self.refuses > 0 {
                    self.refuses -= 1;
                    Err(RouteError::Unavailable)
                } else if room || self.routes.contains_key(&key) {
                    self.routes.insert(key, route.clone());
                    Ok(())
                } else {
                    Err(RouteError::Full)
                }
            }
            RouteChange::Masquerade { .. } if self.refuses > 0 => {
                self.refuses -= 1;
                Err(RouteError::Unavailable)
            }
            RouteChange::Masquerade {
                port,
                key: RouteKey { destination: mac, .. },
                destination,
                route,
            } => {
                self.memory.insert((*port, *mac), (*destination, route.clone()));
                Ok(())
            }
            RouteChange::Remove { .. } if self.keeps > 0 => {
                self.keeps -= 1;
                Err(RouteError::Unavailable)
            }
            RouteChange::Remove { port, key } => {
                self.routes.remove(&(*port, *key));
                self.memory.remove(&(*port, key.destination));
                Ok(())
            }
        };
        RouteAnswer { ticket, result }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.routes.is_empty()
    }

    pub(super) fn count(&self, port: PortNo) -> usize {
        self.routes.keys().filter(|key| key.0 == port).count()
    }

    pub(super) fn route(&self, key: (PortNo, RouteKey)) -> Option<&Route> {
        self.routes.get(&key)
    }

    pub(super) fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: "test",
            ports: PORTS,
            hop_width: HopWidth::Eight,
            frame_bytes_max: 1514,
            route_bytes_max: 128,
            routes_per_port_max: self.routes_per_port_max,
            masqueraded_per_port_max: self.masqueraded_per_port_max,
            port_rate_max: Rate::FASTEST,
            queues_per_port: 1,
            lossless_classes: 0,
            features: self.features,
        }
    }
}

impl PortView for TestDevice {
    fn count(&self) -> u16 {
        PORTS
    }

    fn kind(&self, port: PortNo) -> Option<PortKind> {
        self.kinds.get(port.index()).copied()
    }

    fn is_up(&self, port: PortNo) -> bool {
        self.kind(port).is_some_and(|kind| kind != PortKind::Unknown)
    }
}

/// Returns the key under which the node queues a frame that waits for a route to `to`.
pub(super) fn waits_by(to: MacAddr, frame: &[u8]) -> RouteKey {
    let source = MacAddr::source_of(frame).filter(|_| !to.is_multicast());
    RouteKey::to(to).from_source(source)
}

/// Builds an IPv4 frame between two hosts, with the fields that an edge reads.
pub(super) fn udp_frame(to: MacAddr, from: MacAddr, content: u8) -> Vec<u8> {
    let mut frame = alloc::vec![content; 60];
    frame[..6].copy_from_slice(&to.0);
    frame[6..12].copy_from_slice(&from.0);
    frame[12..14].copy_from_slice(&[0x08, 0x00]);
    frame
}

/// Everything around a part under test.
pub(super) struct Around {
    settings: Settings,
    controller: Controller,
    agenda: Agenda<Timer>,
    pub(super) tables: Tables,
    down: DownLinks,
    counters: EdgeCounters,
    pub(super) out: Vec<Effect>,
}

impl Around {
    pub(super) fn new(has: &Capabilities) -> Around {
        use super::testing::Bench;
        let config = Bench::config(1000, 4);
        Around {
            settings: Settings::new(&config, has),
            tables: Tables::new(has, 1, false),
            down: DownLinks::default(),
            controller: Controller::new(&config.node.timers),
            agenda: Agenda::new(),
            counters: EdgeCounters::default(),
            out: Vec::new(),
        }
    }

    /// Returns a context at time zero.
    pub(super) fn cx<'a>(&'a mut self, ports: &'a dyn PortView) -> Cx<'a> {
        let Around { settings, controller, agenda, tables, down, counters, out } = self;
        let (now, vlan) = (Time::ZERO, VlanId::NONE);
        Cx { now, vlan, ports, out, settings, agenda, controller, tables, down, counters }
    }
}
