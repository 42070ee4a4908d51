//! Implementation of the data plane interface by the software plane.

use super::lookups::Lookups;
use super::plane::Plane;
use super::settings::Settings;
use crate::config::PlaneConfig;
use crate::congestion::notification::UNDEFENDED;
use crate::qos::schedule::ScheduleConfig;
use alloc::boxed::Box;
use alloc::vec::Vec;
use axon_node::telemetry::PlaneTelemetry;
use axon_node::{
    Action, Capabilities, Counters, Dataplane, Drop, Feature, FeatureSet, Masqueraded, PortKind,
    PortSetting, PortSnapshot, PortView, QueueState, RouteChange, RouteError, RouteKey,
    RouteTicket, SettingError, Snapshot, Treatment,
};
use axon_wire::dcbx::ieee::Ets;
use axon_wire::header::{self, PacketType};
use axon_wire::priority::{PRIORITIES, Priority, PrioritySet};
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
        Plane::is_up(self, port)
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
        match setting {
            PortSetting::Kind(kind) => self.set_kind(port, kind),
            PortSetting::Classes(ets) => self.set_classes(now, port, ets.as_deref(), out)?,
            PortSetting::Pfc(pfc) => self.set_pfc(now, port, Some(pfc), out)?,
            PortSetting::Defence(treatments) => self.set_defence(port, Some(treatments))?,
            PortSetting::Regeneration(table) => self.set_regeneration(port, Some(table))?,
            PortSetting::Vlans(vlans) => self.settings[port.index()].vlans = vlans,
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
        Plane::pause_hosts(self, now, port, out);
    }

    fn count_drop(&mut self, ingress: PortNo, reason: Drop) {
        Plane::count_drop(self, ingress, reason);
    }

    fn count_copy(&mut self, ingress: PortNo) {
        Plane::count_copy(self, ingress);
    }

    fn counters(&self) -> &Counters {
        Plane::counters(self)
    }

    fn queue(&self, port: PortNo) -> QueueState {
        QueueState {
            frames: self.queued_frames(port),
            bytes: self.queued_bytes(port),
            refused_bytes: self.nacked_bytes(port),
        }
    }

    fn held_frames(&self) -> u64 {
        Plane::held_frames(self)
    }

    fn routes(&self, port: PortNo) -> usize {
        self.tables.len(port)
    }

    fn telemetry(&self, now: Time) -> PlaneTelemetry {
        self.read_telemetry(now)
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
            classes: settings.classes.as_deref().cloned(),
            pfc: settings.pfc,
            defence: settings.defence.as_deref().copied(),
            regeneration: settings.regeneration.as_deref().copied(),
            vlans: settings.vlans.as_deref().cloned(),
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
    /// Sets the traffic classes of a port; `None` restores the initial configuration.
    fn set_classes(
        &mut self,
        now: Time,
        port: PortNo,
        ets: Option<&Ets>,
        out: &mut Vec<Action>,
    ) -> Result<(), SettingError> {
        let own = self.config.dcb.as_ref().ok_or(SettingError::Unsupported)?;
        let (prio_tc, schedule) = match ets {
            None => (own.prio_tc, own.schedule.clone()),
            Some(ets) => (ets.class_of, ScheduleConfig::of_ets(ets, own.schedule.cost)),
        };
        let set = self.ports.set_classes(now, port, prio_tc, &schedule, out);
        set.map_err(|_| SettingError::Invalid)?;
        self.settings[port.index()].classes = ets.cloned().map(Box::new);
        Ok(())
    }

    /// Sets the priorities with flow control; `None` restores the initial configuration.
    fn set_pfc(
        &mut self,
        now: Time,
        port: PortNo,
        pfc: Option<PrioritySet>,
        out: &mut Vec<Action>,
    ) -> Result<(), SettingError> {
        let own = self.config.dcb.as_ref().ok_or(SettingError::Unsupported)?.pfc;
        self.ports.set_pfc(now, port, pfc.unwrap_or(own), out);
        self.settings[port.index()].pfc = pfc;
        Ok(())
    }

    /// Sets the congestion notification defence; `None` restores the initial configuration.
    fn set_defence(
        &mut self,
        port: PortNo,
        treatments: Option<Box<[Treatment; PRIORITIES]>>,
    ) -> Result<(), SettingError> {
        let own = self.config.dcb.as_ref().ok_or(SettingError::Unsupported)?;
        let own = own.cn.as_ref().and_then(|cn| cn.treatments.get(port.index()));
        let at_start = own.copied().unwrap_or([UNDEFENDED; PRIORITIES]);
        if let Some(edge) = self.ports.dcb_mut().and_then(|dcb| dcb.edge_mut(port)) {
            edge.set_treatments(treatments.as_deref().copied().unwrap_or(at_start));
        }
        self.settings[port.index()].defence = treatments;
        Ok(())
    }

    /// Sets the priority regeneration table for hosts; `None` allows all priorities.
    fn set_regeneration(
        &mut self,
        port: PortNo,
        table: Option<Box<[Priority; PRIORITIES]>>,
    ) -> Result<(), SettingError> {
        self.config.dcb.as_ref().ok_or(SettingError::Unsupported)?;
        if let Some(edge) = self.ports.dcb_mut().and_then(|dcb| dcb.edge_mut(port)) {
            edge.set_regeneration(table.as_deref().copied().unwrap_or(Priority::ALL));
        }
        self.settings[port.index()].regeneration = table;
        Ok(())
    }

    fn resynchronise_port(
        &mut self,
        now: Time,
        port: PortNo,
        wanted: &PortSnapshot,
        out: &mut Vec<Action>,
    ) -> Result<(), SettingError> {
        self.settings[port.index()].vlans = wanted.vlans.clone().map(Box::new);
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
        if self.config.dcb.is_none() {
            let any = wanted.classes.is_some() || wanted.pfc.is_some();
            let any = any || wanted.defence.is_some() || wanted.regeneration.is_some();
            return if any { Err(SettingError::Unsupported) } else { Ok(()) };
        }
        let classes = self.set_classes(now, port, wanted.classes.as_ref(), out);
        let pfc = self.set_pfc(now, port, wanted.pfc, out);
        let defence = self.set_defence(port, wanted.defence.map(Box::new));
        let regeneration = self.set_regeneration(port, wanted.regeneration.map(Box::new));
        classes.and(pfc).and(defence).and(regeneration)
    }
}
