//! Implementation of the data plane interface by the device.

use super::{BUFFER_MARGIN_BYTES, RtlDataplane};
use crate::model::{BUFFER_BYTES, PORTS_MAX, ROUTES};
use crate::routes::HEADER_BYTES_MAX;
use axon_node::dataplane::telemetry_of;
use axon_node::telemetry::PlaneTelemetry;
use axon_node::{
    Action, Capabilities, Counters, Dataplane, Drop, Feature, FeatureSet, Masqueraded, PortEvent,
    PortKind, PortSetting, PortSnapshot, PortView, QueueState, RouteChange, RouteError,
    RouteTicket, SettingError, Shortcuts, Snapshot,
};
use axon_plane::PlaneConfig;
use axon_wire::header::PacketType;
use axon_wire::{Bytes, FrameBuf, Hops, PortNo, Rate, Route, Time};

/// The longest frame: it fits a buffer with any route in front of it.
const FRAME_BYTES_MAX: usize = BUFFER_BYTES - BUFFER_MARGIN_BYTES - FrameBuf::HEADROOM;

/// Returns the capabilities of the device with this configuration: each limit as it is alone, since
/// routes and masqueraded addresses share the entries of a port.
pub fn capabilities(config: &PlaneConfig) -> Capabilities {
    Capabilities {
        name: "rtl",
        ports: config.ports.min(PORTS_MAX as u16),
        hop_width: config.hop_width,
        frame_bytes_max: config.frame_bytes_max.min(FRAME_BYTES_MAX),
        route_bytes_max: config.route_bytes_max.min(HEADER_BYTES_MAX),
        routes_per_port_max: config.routes_per_port_max.min(ROUTES),
        masqueraded_per_port_max: config.masqueraded_per_port_max.min(ROUTES - 1),
        port_rate_max: Rate::gbps(1),
        queues_per_port: 1,
        lossless_classes: 0,
        features: FeatureSet::EMPTY.with(Feature::RoutesBySource),
    }
}

impl PortView for RtlDataplane {
    fn count(&self) -> u16 {
        self.config.ports
    }

    fn kind(&self, port: PortNo) -> Option<PortKind> {
        self.kind_of(port)
    }

    fn is_up(&self, port: PortNo) -> bool {
        self.wires.get(port.index()).is_some_and(|wire| wire.is_up())
    }
}

impl Shortcuts for RtlDataplane {}

impl Dataplane for RtlDataplane {
    fn capabilities(&self) -> Capabilities {
        let has = capabilities(&self.config);
        let remaining = ROUTES - has.routes_per_port_max;
        Capabilities {
            masqueraded_per_port_max: has.masqueraded_per_port_max.min(remaining),
            ..has
        }
    }

    /// Writes the change to the tables in gates.
    fn change_route(
        &mut self,
        _now: Time,
        _ticket: RouteTicket,
        change: RouteChange,
    ) -> Option<Result<(), RouteError>> {
        Some(match change {
            RouteChange::Install { port, key, route } => {
                self.driver.install(self.pins.get_mut(), port, key, route)
            }
            RouteChange::Masquerade { port, key, destination, route } => {
                let route = Masqueraded { key, destination, route };
                self.driver.masquerade(self.pins.get_mut(), port, route)
            }
            RouteChange::Remove { port, key } => {
                self.driver.remove(self.pins.get_mut(), port, key);
                Ok(())
            }
        })
    }

    /// Sets the kind of a port; other settings are unsupported, except that there are no VLANs.
    fn set_port(
        &mut self,
        _now: Time,
        port: PortNo,
        setting: PortSetting,
        _out: &mut Vec<Action>,
    ) -> Result<(), SettingError> {
        self.kind_of(port).ok_or(SettingError::NoSuchPort)?;
        match setting {
            PortSetting::Kind(kind) => self.driver.set_kind(self.pins.get_mut(), port, kind),
            PortSetting::Vlans(None) => {}
            PortSetting::Vlans(Some(_))
            | PortSetting::Classes(_)
            | PortSetting::Pfc(_)
            | PortSetting::Defence(_)
            | PortSetting::Regeneration(_) => return Err(SettingError::Unsupported),
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
        self.wake(now);
        self.inject_packet(kind, hops, payload, out);
    }

    fn send(&mut self, now: Time, port: PortNo, frame: FrameBuf, out: &mut Vec<Action>) {
        self.wake(now);
        self.send_frame(port, frame, out);
    }

    fn forward(
        &mut self,
        now: Time,
        _ingress: PortNo,
        route: &Route,
        frame: FrameBuf,
        out: &mut Vec<Action>,
    ) {
        self.wake(now);
        self.forward_punted(route, frame, out);
    }

    fn pause_hosts(&mut self, now: Time, port: PortNo, out: &mut Vec<Action>) {
        self.wake(now);
        self.send_pause(port, out);
    }

    fn count_drop(&mut self, ingress: PortNo, reason: Drop) {
        self.counters.count(ingress, PortEvent::Drop(reason));
    }

    fn count_copy(&mut self, ingress: PortNo) {
        self.counters.count(ingress, PortEvent::Copy);
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Returns the frames that wait outside of the gates.
    fn queue(&self, port: PortNo) -> QueueState {
        let Some(wire) = self.wires.get(port.index()) else {
            return QueueState::default();
        };
        let (frames, bytes) = self.outgoing.queued(port);
        QueueState {
            frames: frames + wire.frames(),
            bytes: Bytes(bytes + wire.bytes()),
            refused_bytes: Bytes(0),
        }
    }

    fn telemetry(&self, _now: Time) -> PlaneTelemetry {
        let registers = Some(self.read_registers());
        PlaneTelemetry { registers, ..telemetry_of(self) }
    }

    /// Returns the number of frames in the gates, for the control plane or not.
    fn held_frames(&self) -> u64 {
        self.inside()
    }

    fn routes(&self, port: PortNo) -> usize {
        self.driver.len(port)
    }

    fn snapshot(&self) -> Snapshot {
        let ports = (0..self.config.ports).map(PortNo).map(|port| PortSnapshot {
            kind: self.kind_of(port).unwrap_or_default(),
            routes: self.driver.routes(port),
            masqueraded: self.driver.masqueraded(port),
            ..PortSnapshot::default()
        });
        Snapshot { ports: ports.collect() }
    }

    fn resynchronise(
        &mut self,
        _now: Time,
        wanted: &Snapshot,
        _out: &mut Vec<Action>,
    ) -> Result<(), SettingError> {
        let mut result = Ok(());
        let nothing = PortSnapshot::default();
        for port in (0..self.config.ports).map(PortNo) {
            let wanted = wanted.ports.get(port.index()).unwrap_or(&nothing);
            self.driver.set_kind(self.pins.get_mut(), port, wanted.kind);
            self.driver.clear(self.pins.get_mut(), port);
            for (key, route) in &wanted.routes {
                // A route that does not fit is missing in the next snapshot.
                let _ = self.driver.install(self.pins.get_mut(), port, *key, route.clone());
            }
            for route in &wanted.masqueraded {
                let _ = self.driver.masquerade(self.pins.get_mut(), port, route.clone());
            }
            let only = PortSnapshot {
                kind: wanted.kind,
                routes: wanted.routes.clone(),
                masqueraded: wanted.masqueraded.clone(),
                ..PortSnapshot::default()
            };
            if *wanted != only {
                result = Err(SettingError::Unsupported);
            }
        }
        result
    }
}
