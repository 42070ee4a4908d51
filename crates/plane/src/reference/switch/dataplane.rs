//! Implementation of the data plane interface by the reference.

use super::Reference;
use crate::config::PlaneConfig;
use crate::reference::step;
use alloc::vec::Vec;
use axon_node::{
    Action, Capabilities, Counters, Dataplane, Drop, Feature, FeatureSet, PortEvent, PortKind,
    PortSetting, PortSnapshot, PortView, QueueState, RouteChange, RouteError, RouteKey,
    RouteTicket, SettingError, Shortcuts, Snapshot,
};
use axon_wire::header::{self, PacketType};
use axon_wire::vlan::VlanId;
use axon_wire::{Bytes, FrameBuf, Hops, PortNo, Rate, Route, Time};

/// Returns the capabilities of a reference of this size: one queue per port, and nothing lossless.
pub const fn capabilities(config: &PlaneConfig) -> Capabilities {
    Capabilities {
        name: "reference",
        ports: config.ports,
        hop_width: config.hop_width,
        frame_bytes_max: config.frame_bytes_max,
        route_bytes_max: config.route_bytes_max,
        routes_per_port_max: config.routes_per_port_max,
        masqueraded_per_port_max: 0,
        port_rate_max: Rate::FASTEST,
        queues_per_port: 1,
        lossless_classes: 0,
        features: FeatureSet::EMPTY
            .with(Feature::SelfCongestionPause)
            .with(Feature::Vlans)
            .with(Feature::RoutesBySource),
    }
}

impl PortView for Reference {
    fn count(&self) -> u16 {
        self.config.ports
    }

    fn kind(&self, port: PortNo) -> Option<PortKind> {
        self.port(port).map(|port| port.kind)
    }

    fn is_up(&self, port: PortNo) -> bool {
        self.port(port).is_some_and(|port| port.up)
    }
}

impl Reference {
    fn install(&mut self, port: PortNo, key: RouteKey, route: Route) -> Result<(), RouteError> {
        step::header_of(&route, self.config.hop_width).ok_or(RouteError::Unrepresentable)?;
        let most = self.config.routes_per_port_max;
        let port = self.ports.get_mut(port.index()).ok_or(RouteError::NoSuchPort)?;
        if port.routes.len() >= most && !port.routes.contains_key(&key) {
            return Err(RouteError::Full);
        }
        port.routes.insert(key, route);
        port.used.remove(&key);
        Ok(())
    }
}

impl Shortcuts for Reference {}

impl Dataplane for Reference {
    fn capabilities(&self) -> Capabilities {
        capabilities(&self.config)
    }

    /// Applies the change immediately.
    fn change_route(
        &mut self,
        _now: Time,
        _ticket: RouteTicket,
        change: RouteChange,
    ) -> Option<Result<(), RouteError>> {
        Some(match change {
            RouteChange::Install { port, key, route } => self.install(port, key, route),
            // The reference has no route memory.
            RouteChange::Masquerade { .. } => Err(RouteError::Unavailable),
            RouteChange::Remove { port, key } => {
                if let Some(port) = self.ports.get_mut(port.index()) {
                    port.routes.remove(&key);
                    port.used.remove(&key);
                }
                Ok(())
            }
        })
    }

    /// Sets the kind of a port, and its VLANs; other settings are unsupported.
    fn set_port(
        &mut self,
        _now: Time,
        port: PortNo,
        setting: PortSetting,
        _out: &mut Vec<Action>,
    ) -> Result<(), SettingError> {
        let state = self.ports.get_mut(port.index()).ok_or(SettingError::NoSuchPort)?;
        match setting {
            PortSetting::Kind(kind) => state.kind = kind,
            PortSetting::Vlans(vlans) => state.vlans = vlans.map(|vlans| *vlans),
            PortSetting::Classes(_)
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
        let width = self.config.hop_width;
        let header_bytes = width.header_bytes(hops.len());
        let mut frame = FrameBuf::with_headroom(header_bytes, payload);
        let built = frame.push_front(header_bytes).is_ok()
            && header::emit(frame.bytes_mut(), width, kind, hops, &[]).is_ok();
        self.counters.received(PortNo::CONTROL, frame.bytes().len());
        if !built {
            return self.end(PortNo::CONTROL, Drop::NoHeadroom, frame, out);
        }
        header::set_priority(frame.bytes_mut(), width, self.config.control_priority);
        self.take_hop(now, PortNo::CONTROL, frame, out);
    }

    fn send(&mut self, now: Time, port: PortNo, frame: FrameBuf, out: &mut Vec<Action>) {
        self.send_ethernet(now, port, frame, out);
    }

    fn forward(
        &mut self,
        now: Time,
        ingress: PortNo,
        route: &Route,
        frame: FrameBuf,
        out: &mut Vec<Action>,
    ) {
        let vlan = self.port(ingress).map_or(Some(VlanId::NONE), |port| port.vlan_of(&frame));
        let Some(vlan) = vlan else {
            return self.end(PortNo::CONTROL, Drop::ForeignVlan, frame, out);
        };
        // Priorities are not supported, so the host port does not matter here.
        self.attach(now, (PortNo::CONTROL, vlan), route, frame, out);
    }

    fn pause_hosts(&mut self, now: Time, port: PortNo, out: &mut Vec<Action>) {
        self.pause(now, port, out);
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

    fn queue(&self, port: PortNo) -> QueueState {
        let Some(port) = self.port(port) else {
            return QueueState::default();
        };
        let (frames, bytes) = (port.queued_frames(), Bytes(port.queued_bytes()));
        QueueState { frames, bytes, refused_bytes: Bytes(0) }
    }

    /// Returns the number of frames whose last byte has not arrived, for the control plane or not.
    fn held_frames(&self) -> u64 {
        self.arrivals.len() as u64
    }

    fn routes(&self, port: PortNo) -> usize {
        self.port(port).map_or(0, |port| port.routes.len())
    }

    fn take_used(&mut self, port: PortNo, key: RouteKey) -> bool {
        let port = self.ports.get_mut(port.index());
        port.is_some_and(|port| port.used.remove(&key))
    }

    fn snapshot(&self) -> Snapshot {
        let ports = self.ports.iter().map(|port| PortSnapshot {
            kind: port.kind,
            vlans: port.vlans.clone(),
            routes: port.routes.iter().map(|(&key, route)| (key, route.clone())).collect(),
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
        for index in 0..self.config.ports {
            let wanted = wanted.ports.get(usize::from(index)).unwrap_or(&nothing);
            let port = &mut self.ports[usize::from(index)];
            port.kind = wanted.kind;
            port.vlans = wanted.vlans.clone();
            port.routes.clear();
            for (key, route) in &wanted.routes {
                // A route that does not fit is missing in the next snapshot.
                let _ = self.install(PortNo(index), *key, route.clone());
            }
            let priorities = wanted.defence.is_some() || wanted.regeneration.is_some();
            if wanted.classes.is_some() || wanted.pfc.is_some() || priorities {
                result = Err(SettingError::Unsupported);
            }
        }
        result
    }
}
