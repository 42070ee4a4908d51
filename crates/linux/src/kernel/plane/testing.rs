//! Test support for kernel tables next to a software plane: failing tables, and a bench.

use super::*;
use crate::kernel::Traffic;
use crate::kernel::{HEADER_BYTES_MAX, Hook, KernelSettings};
use axon_node::random::Random;
use axon_plane::{Plane, PlaneConfig};
use axon_wire::HopWidth;
use std::collections::BTreeSet;
use std::io;

pub(super) const PORTS: u16 = 3;
pub(super) const ROOM: usize = 3;

/// Kernel tables, as maps.
#[derive(Clone)]
pub(super) struct Fake {
    pub(super) settings: KernelSettings,
    pub(super) ports: BTreeMap<PortNo, (u32, PortKind)>,
    pub(super) routes: BTreeMap<Key, Route>,
    pub(super) used: BTreeSet<Key>,
    pub(super) traffic: Traffic,
    /// Queue drops, by ifindex of the egress.
    pub(super) queue_drops: Vec<(u32, (PortNo, u64))>,
    pub(super) node_drops: u64,
    /// Failure rate of changes: one in this many fails. 0 means none.
    pub(super) fails_of: u64,
    pub(super) random: Random,
}

/// Returns a random number below `count`.
pub(super) fn below(random: &mut Random, count: u64) -> u64 {
    random.next_u64() % count
}

pub(super) fn failed() -> KernelError {
    KernelError::System { call: "test".into(), source: io::Error::other("as the test wants") }
}

impl Fake {
    pub(super) fn new() -> Fake {
        let settings = KernelSettings {
            hook: Hook::Tc,
            hop_width: HopWidth::Eight,
            ports: PORTS,
            routes_per_port_max: ROOM,
            route_bytes_max: 100,
            frame_bytes_max: 1514,
            node_frames_per_ms: 0,
        };
        Fake {
            settings,
            ports: BTreeMap::new(),
            routes: BTreeMap::new(),
            used: BTreeSet::new(),
            traffic: Traffic::default(),
            queue_drops: Vec::new(),
            node_drops: 0,
            fails_of: 0,
            random: Random::new(1),
        }
    }

    pub(super) fn may_fail(&mut self) -> Result<(), KernelError> {
        let fails = self.fails_of > 0 && below(&mut self.random, self.fails_of) == 0;
        if fails { Err(failed()) } else { Ok(()) }
    }
}

impl Tables for Fake {
    fn settings(&self) -> &KernelSettings {
        &self.settings
    }

    fn set_port(&mut self, port: PortNo, ifindex: u32, kind: PortKind) -> Result<(), KernelError> {
        self.may_fail()?;
        self.ports.insert(port, (ifindex, kind));
        Ok(())
    }

    fn port(&self, port: PortNo) -> Result<(u32, PortKind), KernelError> {
        Ok(self.ports.get(&port).copied().unwrap_or_default())
    }

    fn set_route(&mut self, port: PortNo, to: MacAddr, route: &Route) -> Result<(), KernelError> {
        self.may_fail()?;
        let bytes = HopWidth::Eight.header_bytes(route.hops.len());
        if bytes > HEADER_BYTES_MAX {
            return Err(KernelError::RouteTooLong { bytes, bytes_max: HEADER_BYTES_MAX });
        }
        let there = self.routes.keys().filter(|key| key.0 == port).count();
        if there >= ROOM && !self.routes.contains_key(&(port, to)) {
            return Err(RouteError::Full.into());
        }
        self.routes.insert((port, to), route.clone());
        Ok(())
    }

    fn remove_route(&mut self, port: PortNo, to: MacAddr) -> Result<bool, KernelError> {
        self.may_fail()?;
        Ok(self.routes.remove(&(port, to)).is_some())
    }

    fn take_used(&mut self, port: PortNo, to: MacAddr) -> Result<bool, KernelError> {
        Ok(self.used.remove(&(port, to)))
    }

    fn traffic(&self, _: PortNo) -> Result<Traffic, KernelError> {
        Ok(self.traffic)
    }

    fn queue_drops(&self, ifindex: u32) -> Result<Vec<(PortNo, u64)>, KernelError> {
        Ok(self.queue_drops.iter().filter(|drop| drop.0 == ifindex).map(|drop| drop.1).collect())
    }

    fn node_drops(&self) -> u64 {
        self.node_drops
    }

    fn routes(&self) -> Result<Vec<(PortNo, MacAddr, Route)>, KernelError> {
        Ok(self.routes.iter().map(|(&(port, to), route)| (port, to, route.clone())).collect())
    }
}

pub(super) type Software = Plane;

pub(super) fn software() -> Software {
    Plane::new(PlaneConfig::with_ports(PORTS, MacAddr([2, 0, 0, 0, 0, 99])))
}

pub(super) fn devices() -> Devices {
    let devices = Devices::new(PORTS);
    (0..PORTS).for_each(|port| devices.set(PortNo(port), 10 + u32::from(port)));
    devices
}

pub(super) fn mac(host: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, host])
}

pub(super) fn key(port: u16, host: u8) -> Key {
    (PortNo(port), mac(host))
}

/// Plane over `tables`, and the answers from it.
pub(super) struct Bench {
    pub(super) plane: KernelPlane<Software, Fake>,
    pub(super) now: Time,
    pub(super) tickets: u64,
}

impl Bench {
    pub(super) fn new(tables: Fake) -> Bench {
        let plane = KernelPlane::new(software(), tables, devices()).unwrap();
        Bench { plane, now: Time::ZERO, tickets: 0 }
    }

    pub(super) fn ask(&mut self, change: RouteChange) -> Result<(), RouteError> {
        self.tickets += 1;
        let answer = self.plane.change_route(self.now, RouteTicket(self.tickets), change);
        answer.expect("an immediate answer")
    }

    pub(super) fn install(
        &mut self,
        (port, destination): Key,
        hops: &[u16],
    ) -> Result<(), RouteError> {
        let route = hops.iter().map(|&hop| PortNo(hop)).collect();
        self.ask(RouteChange::Install { port, key: destination.into(), route })
    }

    pub(super) fn remove(&mut self, (port, destination): Key) -> Result<(), RouteError> {
        self.ask(RouteChange::Remove { port, key: destination.into() })
    }

    pub(super) fn input(&mut self, input: Input) {
        self.plane.handle(self.now, input, &mut Vec::new());
    }

    pub(super) fn kind(&mut self, port: u16, kind: PortKind) -> Result<(), SettingError> {
        let setting = PortSetting::Kind(kind);
        self.plane.set_port(self.now, PortNo(port), setting, &mut Vec::new())
    }

    pub(super) fn link(&mut self, port: u16, up: bool) {
        self.input(Input::Link { port: PortNo(port), up });
    }

    /// Advances the time and runs due timers.
    pub(super) fn pass(&mut self, span: Span) {
        let until = self.now + span;
        while let Some(at) = Node::deadline(&self.plane).filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.input(Input::Timeout);
        }
        self.now = until;
    }

    pub(super) fn in_kernel(&self, key: Key) -> Option<&Route> {
        self.plane.tables.routes.get(&key)
    }

    pub(super) fn in_software(&self, port: u16) -> usize {
        Dataplane::routes(&self.plane, PortNo(port))
    }
}
