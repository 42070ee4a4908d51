//! Implementation of the data plane interface by the software plane.

use super::Plane;
use crate::axon::lookups::Lookups;
use crate::axon::settings::{At, Settings};
use crate::config::PlaneConfig;
use crate::ports::telemetry;
use alloc::boxed::Box;
use alloc::vec::Vec;
use axon_node::telemetry::{PlaneTelemetry, PortTelemetry};
use axon_node::{
    Action, Capabilities, Counters, Dataplane, Drop, Feature, FeatureSet, Masqueraded, PortEvent,
    PortKind, PortSetting, PortSnapshot, PortView, QueueState, RouteChange, RouteError, RouteKey,
    RouteTicket, SettingError, Snapshot,
};
use axon_wire::header::{self, PacketType};
use axon_wire::priority::{PRIORITIES, Priority};
use axon_wire::{FrameBuf, Hops, PortNo, Rate, Route, Time};

impl<T: Lookups> PortView for Plane<T> {
    fn count(&self) -> u16 {
        self.config().ports
    }

    #[inline]
    fn kind(&self, port: PortNo) -> Option<PortKind> {
        Plane::kind(self, port)
    }

    fn is_up(&self, port: PortNo) -> bool {
        self.ports.wires().is_up(port)
    }
}

/// Capabilities of the software plane of this size, independent of other configuration. It has no
/// shaper: it sends when a wire is reported free.
pub const fn capabilities(config: &PlaneConfig) -> Capabilities {
    Capabilities {
        name: "software",
        ports: config.ports,
        hop_width: config.hop_width,
        frame_bytes_max: config.frame_bytes_max,
        route_bytes_max: config.route_bytes_max,
        routes_per_port_max: config.routes_per_port_max,
        masqueraded_per_port_max: config.masqueraded_per_port_max,
        port_rate_max: Rate::FASTEST,
        queues_per_port: PRIORITIES as u8,
        lossless_classes: PRIORITIES as u8,
        features: FeatureSet::ALL.without(Feature::Shaping),
    }
}

impl<T: Lookups> Dataplane for Plane<T> {
    fn capabilities(&self) -> Capabilities {
        Capabilities { name: T::NAME, ..capabilities(&self.config) }
    }

    /// Applies the change immediately.
    fn change_route(
        &mut self,
        _now: Time,
        _ticket: RouteTicket,
        change: RouteChange,
    ) -> Option<Result<(), RouteError>> {
        Some(match change {
            RouteChange::Install { port, key, route } => self.tables.install(port, key, &route),
            RouteChange::Masquerade { port, key, destination, route } => {
                self.memory.install(port, key, destination, &route)
            }
            RouteChange::Remove { port, key } => {
                self.tables.remove(port, key);
                self.memory.remove(port, key);
                Ok(())
            }
        })
    }

    fn set_port(
        &mut self,
        now: Time,
        port: PortNo,
        setting: PortSetting,
        out: &mut Vec<Action>,
    ) -> Result<(), SettingError> {
        if port.index() >= usize::from(self.config.ports) {
            return Err(SettingError::NoSuchPort);
        }
        let settings = &mut self.settings[port.index()];
        let (config, ports) = (&self.config, &mut self.ports);
        let mut at = config.dcb.as_deref().map(|own| At { now, port, own, ports });
        match (setting, &mut at) {
            (PortSetting::Kind(kind), _) => self.set_kind(port, kind),
            (PortSetting::Vlans(vlans), _) => settings.set_vlans(vlans),
            (_, None) => return Err(SettingError::Unsupported),
            (PortSetting::Classes(ets), Some(at)) => settings.set_classes(at, ets, out)?,
            (PortSetting::Pfc(pfc), Some(at)) => settings.set_pfc(at, Some(pfc), out),
            (PortSetting::Defence(set), Some(at)) => settings.set_defence(at, Some(set)),
            (PortSetting::Regeneration(table), Some(at)) => {
                settings.set_regeneration(at, Some(table));
            }
        }
        Ok(())
    }

    fn inject(
        &mut self,
        now: Time,
        kind: PacketType,
        hops: &Hops,
        payload: &[u8],
        out: &mut Vec<Action>,
    ) {
        let width = self.config.hop_width;
        let length = width.header_bytes(hops.len());
        let mut frame = FrameBuf::with_headroom(length, payload);
        let built = frame
            .push_front(length)
            .is_ok_and(|()| header::emit(frame.bytes_mut(), width, kind, hops, &[]).is_ok());
        if !built {
            let meta = self.ports.originate(now, frame);
            return self.ports.discard(meta, Drop::NoHeadroom, out);
        }
        if self.config.control_priority != Priority::ZERO {
            header::set_priority(frame.bytes_mut(), width, self.config.control_priority);
        }
        self.inject_packet(now, frame, out);
    }

    fn send(&mut self, now: Time, port: PortNo, frame: FrameBuf, out: &mut Vec<Action>) {
        self.send_raw(now, port, frame, out);
    }

    fn forward(
        &mut self,
        now: Time,
        ingress: PortNo,
        route: &Route,
        frame: FrameBuf,
        out: &mut Vec<Action>,
    ) {
        self.forward_punted(now, ingress, route, frame, out);
    }

    fn pause_hosts(&mut self, now: Time, port: PortNo, out: &mut Vec<Action>) {
        self.send_pause(now, port, out);
    }

    fn count_drop(&mut self, ingress: PortNo, reason: Drop) {
        self.ports.count(ingress, PortEvent::Drop(reason));
    }

    fn count_copy(&mut self, ingress: PortNo) {
        self.ports.count(ingress, PortEvent::Copy);
    }

    fn counters(&self) -> &Counters {
        Plane::counters(self)
    }

    fn queue(&self, port: PortNo) -> QueueState {
        QueueState {
            frames: self.ports.queues().frames(port),
            bytes: self.ports.queues().bytes(port),
            refused_bytes: self.ports.queues().nacked_bytes(port),
        }
    }

    fn held_frames(&self) -> u64 {
        self.ports.held_frames()
    }

    fn routes(&self, port: PortNo) -> usize {
        self.tables.len(port)
    }

    fn telemetry(&self, now: Time) -> PlaneTelemetry {
        let port = |port: PortNo| PortTelemetry {
            routes: self.tables.len(port) as u64,
            ..telemetry::of_port(&self.ports, now, port)
        };
        PlaneTelemetry {
            total: self.counters().total(),
            memory: telemetry::of_memory(&self.ports),
            ports: (0..self.config.ports).map(PortNo).map(port).collect(),
            registers: None,
        }
    }

    fn take_used(&mut self, port: PortNo, key: RouteKey) -> bool {
        let by_index = self.memory.take_used(port, key);
        self.tables.take_used(port, key) || by_index
    }

    fn snapshot(&self) -> Snapshot {
        let port = |(number, settings): (u16, &Settings)| PortSnapshot {
            kind: self.kind(PortNo(number)).unwrap_or_default(),
            routes: self.tables.routes(PortNo(number)),
            masqueraded: self.memory.routes(PortNo(number)),
            ..settings.snapshot()
        };
        Snapshot { ports: (0..).zip(&self.settings).map(port).collect() }
    }

    fn resynchronise(
        &mut self,
        now: Time,
        wanted: &Snapshot,
        out: &mut Vec<Action>,
    ) -> Result<(), SettingError> {
        let mut first = Ok(());
        let unknown = PortSnapshot::default();
        for port in (0..self.config.ports).map(PortNo) {
            let wanted = wanted.ports.get(port.index()).unwrap_or(&unknown);
            let set = self.resynchronise_port(now, port, wanted, out);
            first = first.and(set);
        }
        first
    }
}

impl<T: Lookups> Plane<T> {
    fn resynchronise_port(
        &mut self,
        now: Time,
        port: PortNo,
        wanted: &PortSnapshot,
        out: &mut Vec<Action>,
    ) -> Result<(), SettingError> {
        self.settings[port.index()].set_vlans(wanted.vlans.clone().map(Box::new));
        self.set_kind(port, wanted.kind);
        self.tables.clear(port);
        self.memory.clear(port);
        for Masqueraded { key, destination, route } in &wanted.masqueraded {
            let _ = self.memory.install(port, *key, *destination, route);
        }
        for (key, route) in &wanted.routes {
            // Frames of routes that do not fit are punted, as after a refused install.
            let _ = self.tables.install(port, *key, route);
        }
        let Some(own) = self.config.dcb.as_deref() else {
            let any = wanted.classes.is_some() || wanted.pfc.is_some();
            let any = any || wanted.defence.is_some() || wanted.regeneration.is_some();
            return if any { Err(SettingError::Unsupported) } else { Ok(()) };
        };
        let settings = &mut self.settings[port.index()];
        let at = &mut At { now, port, own, ports: &mut self.ports };
        let classes = settings.set_classes(at, wanted.classes.map(Box::new), out);
        settings.set_pfc(at, wanted.pfc, out);
        settings.set_defence(at, wanted.defence.map(Box::new));
        settings.set_regeneration(at, wanted.regeneration.map(Box::new));
        classes
    }
}
