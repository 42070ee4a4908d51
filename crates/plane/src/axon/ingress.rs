//! Ingress: a frame is parsed once, according to the kind of its ingress port.

use super::lookups::Lookups;
use super::plane::Plane;
use crate::axon::routes;
use crate::ports::{FrameMeta, HeaderKind};
use alloc::vec::Vec;
use axon_node::{Action, Drop, PortEvent, Punt, RouteKey};
use axon_wire::cn;
use axon_wire::header::{self, HeaderFields, PacketType};
use axon_wire::host_frame::{Kind, classify};
use axon_wire::link::ETHERNET_BYTES;
use axon_wire::masquerade;
use axon_wire::probe::ProbeUnit;
use axon_wire::vlan::{self, VlanId};
use axon_wire::{Bytes, FrameBuf, PortNo, Route, Time};

impl<T: Lookups> Plane<T> {
    /// Receives a frame on an Axon port: an Axon packet or a link-local frame.
    #[inline(always)]
    pub(super) fn axon_ingress(&mut self, now: Time, mut meta: FrameMeta, out: &mut Vec<Action>) {
        let Ok(header) = HeaderFields::parse(meta.frame.bytes(), self.config.hop_width) else {
            return self.packet_without_header(now, meta.elsewhere(), out);
        };
        if header.header_bytes > self.config.route_bytes_max {
            return self.ports.discard(meta.elsewhere(), Drop::RouteTooLong, out);
        }
        meta.set_header(&header);
        if meta.kind.is_probe() {
            return self.probe_ingress(now, meta.elsewhere(), &header, out);
        }
        self.step(now, meta, &header, out);
    }

    /// Receives a frame on an Axon port without a valid Axon header.
    #[cold]
    #[inline(never)]
    fn packet_without_header(&mut self, now: Time, mut meta: FrameMeta, out: &mut Vec<Action>) {
        if !header::is_axon(meta.frame.bytes()) {
            meta.kind = HeaderKind::of_ethernet(meta.frame.bytes());
        }
        if meta.kind.is_link_local() {
            self.link_ingress(now, meta, out);
        } else {
            self.ports.discard(meta, Drop::Malformed, out);
        }
    }

    /// Receives a probe on an Axon port.
    #[cold]
    #[inline(never)]
    fn probe_ingress(
        &mut self,
        now: Time,
        mut meta: FrameMeta,
        header: &HeaderFields,
        out: &mut Vec<Action>,
    ) {
        self.stamp_ingress(now, &mut meta);
        self.step(now, meta, header, out);
    }

    /// Appends the record of the ingress probe unit to a probe.
    #[cold]
    fn stamp_ingress(&mut self, now: Time, meta: &mut FrameMeta) {
        let unit = (ProbeUnit::Ingress, meta.ingress);
        if !self.ports.probes().stamp(meta, unit, (now, Bytes(0))) {
            self.ports.count(meta.ingress, PortEvent::Unstamped);
        }
    }

    /// Receives a frame on a port whose peer is unknown; only link-local frames are accepted.
    pub(super) fn unknown_ingress(
        &mut self,
        now: Time,
        mut meta: FrameMeta,
        out: &mut Vec<Action>,
    ) {
        meta.kind = HeaderKind::of_ethernet(meta.frame.bytes());
        if meta.kind.is_link_local() {
            self.link_ingress(now, meta, out);
        } else {
            self.ports.discard(meta, Drop::PortUnknown, out);
        }
    }

    /// Receives a frame from a host and looks it up once. With a route its header is prepended, and
    /// the frame takes its first hop; without one it goes to the control plane.
    #[inline(always)]
    pub(super) fn host_ingress(&mut self, now: Time, meta: FrameMeta, out: &mut Vec<Action>) {
        let (ingress, bytes) = (meta.ingress, meta.frame.bytes());
        if let Some(reason) = self.ethernet_fault(&meta.frame) {
            return self.ports.discard(meta.elsewhere(), reason, out);
        }
        let kind = HeaderKind::of_ethernet(bytes);
        if kind.is_link_local() {
            return self.link_ingress(now, FrameMeta { kind, ..meta }, out);
        }
        if self.config.dcb.is_some() && cn::is_cnm(bytes) {
            return self.ports.discard(meta.elsewhere(), Drop::ForgedCnm, out);
        }
        let Some(vlan) = self.vlan_of(ingress, bytes) else {
            return self.ports.discard(meta.elsewhere(), Drop::ForeignVlan, out);
        };
        let key = RouteKey::of_frame(vlan, bytes);
        if key.destination.is_multicast() || self.config.punts_resolution && is_resolution(bytes) {
            return self.miss(now, meta.elsewhere(), out);
        }
        let Some((route, tagged)) = self.tables.lookup(ingress, key, bytes) else {
            return self.masquerade_ingress(now, meta.elsewhere(), key, out);
        };
        // Read the stored header: a load from the bytes just copied would stall.
        let Ok(header) = HeaderFields::parse(route, self.config.hop_width) else {
            return self.ports.discard(meta.elsewhere(), Drop::Malformed, out);
        };
        let FrameMeta { mut frame, complete_at, came_bytes, intact, .. } = meta;
        let retagged = vlan::leave(&mut frame, vlan, tagged);
        let pushed = retagged.and_then(|()| frame.push_front(route.len()));
        if pushed.is_ok() {
            frame.bytes_mut()[..route.len()].copy_from_slice(route);
        }
        let header = match pushed {
            Ok(()) => self.set_host_priority(ingress, &mut frame, header),
            Err(_) => header,
        };
        // Make a new descriptor: fields just written to the old one would have to be reloaded.
        let mut meta = FrameMeta::new(frame, ingress, complete_at, intact);
        meta.came_bytes = came_bytes;
        if pushed.is_err() {
            return self.ports.discard(meta.elsewhere(), Drop::NoHeadroom, out);
        }
        meta.set_header(&header);
        let left_for_axon = self.step(now, meta, &header, out);
        if left_for_axon && self.config.self_congestion_pause {
            self.burden(now, ingress, header.header_bytes, out);
        }
    }

    /// Forwards a punted frame of the host port `ingress` by a route of the control plane. It is
    /// queued as the control plane's own: its host cannot be paused in time, since many frames may
    /// have been held for one route, and no headroom is reserved for them.
    pub(super) fn forward_punted(
        &mut self,
        now: Time,
        ingress: PortNo,
        route: &Route,
        frame: FrameBuf,
        out: &mut Vec<Action>,
    ) {
        let vlan = self.vlan_of(ingress, frame.bytes());
        let mut meta = FrameMeta::from_control(frame, now);
        // The VLANs of the port have changed since the frame arrived.
        let Some(vlan) = vlan else {
            return self.ports.discard(meta, Drop::ForeignVlan, out);
        };
        if vlan::leave(&mut meta.frame, vlan, route.tagged).is_err() {
            return self.ports.discard(meta, Drop::NoHeadroom, out);
        }
        let Ok(header) = routes::header_of(route, self.config.hop_width) else {
            return self.ports.discard(meta, Drop::NoHeadroom, out);
        };
        let Ok(fields) = HeaderFields::parse(&header, self.config.hop_width) else {
            return self.ports.discard(meta, Drop::Malformed, out);
        };
        if meta.frame.push_front(header.len()).is_err() {
            return self.ports.discard(meta, Drop::NoHeadroom, out);
        }
        meta.frame.bytes_mut()[..header.len()].copy_from_slice(&header);
        let fields = self.set_host_priority(ingress, &mut meta.frame, fields);
        meta.set_header(&fields);
        self.step(now, meta, &fields, out);
    }

    /// Returns the VLAN of a frame of the hosts at `ingress`. `None` if its tags do not match the
    /// VLANs of the port. Where no VLANs are set, tags are ignored.
    #[inline]
    fn vlan_of(&self, ingress: PortNo, frame: &[u8]) -> Option<VlanId> {
        let settings = self.settings.get(ingress.index());
        match settings.and_then(|settings| settings.vlans.as_deref()) {
            None => Some(VlanId::NONE),
            Some(vlans) => vlans.of_frame(frame),
        }
    }

    /// Sets the priority of a host's frame behind its new route to that of the route's layer,
    /// header fields included.
    #[inline]
    fn set_host_priority(
        &mut self,
        ingress: PortNo,
        frame: &mut FrameBuf,
        header: HeaderFields,
    ) -> HeaderFields {
        let Some(dcb) = &self.config.dcb else { return header };
        let bytes = frame.bytes_mut();
        let layer = routes::layer_of(&header);
        let edge = self.ports.dcb().and_then(|dcb| dcb.edge(ingress));
        let Some(edge) = edge else { return header };
        let (priority, events) = edge.defend(&mut bytes[header.header_bytes..]);
        events.into_iter().flatten().for_each(|event| self.ports.count(ingress, event));
        header.with_priority(bytes, self.config.hop_width, dcb.layers.on(priority, layer))
    }

    /// Receives a link-local frame, which is never forwarded.
    fn link_ingress(&mut self, now: Time, meta: FrameMeta, out: &mut Vec<Action>) {
        if meta.frame.length() < ETHERNET_BYTES {
            return self.ports.discard(meta, Drop::Malformed, out);
        }
        if meta.kind == HeaderKind::MacControl {
            return self.ports.mac_control(now, meta, out);
        }
        let guard = &mut self.guards[meta.ingress.index()];
        if !self.paces.punt.admit(&mut guard.link_frames, now) {
            return self.ports.discard(meta, Drop::PuntLimit, out);
        }
        self.ports.punt(now, meta, Punt::LinkLocal, out);
    }

    /// Receives a frame whose destination is not in the table; it may be a masqueraded address, an
    /// index into route memory. The frame gets the true address before it takes the route. ARP and
    /// neighbour discovery go to the control plane: the addresses in them would be wrong at the
    /// other end.
    fn masquerade_ingress(
        &mut self,
        now: Time,
        meta: FrameMeta,
        key: RouteKey,
        out: &mut Vec<Action>,
    ) {
        let ingress = meta.ingress;
        if masquerade::index_of(key.destination).is_none() || is_resolution(meta.frame.bytes()) {
            return self.miss(now, meta, out);
        }
        let Some((destination, route, tagged)) = self.memory.lookup(ingress, key) else {
            return self.miss(now, meta, out);
        };
        let Ok(header) = HeaderFields::parse(route, self.config.hop_width) else {
            return self.ports.discard(meta, Drop::Malformed, out);
        };
        let FrameMeta { mut frame, complete_at, came_bytes, intact, .. } = meta;
        frame.bytes_mut()[..destination.0.len()].copy_from_slice(&destination.0);
        let retagged = vlan::leave(&mut frame, key.vlan, tagged);
        let pushed = retagged.and_then(|()| frame.push_front(route.len()));
        if pushed.is_ok() {
            frame.bytes_mut()[..route.len()].copy_from_slice(route);
        }
        let header = match pushed {
            Ok(()) => self.set_host_priority(ingress, &mut frame, header),
            Err(_) => header,
        };
        let mut meta = FrameMeta::new(frame, ingress, complete_at, intact);
        meta.came_bytes = came_bytes;
        if pushed.is_err() {
            return self.ports.discard(meta, Drop::NoHeadroom, out);
        }
        meta.set_header(&header);
        let left_for_axon = self.step(now, meta, &header, out);
        if left_for_axon && self.config.self_congestion_pause {
            self.burden(now, ingress, header.header_bytes, out);
        }
    }

    /// Handles a frame without a route: it gets the default header, with no forward hops and the
    /// ingress port as the way back. An ether probe, which has no route, is stamped and goes to the
    /// control plane unchanged.
    fn miss(&mut self, now: Time, mut meta: FrameMeta, out: &mut Vec<Action>) {
        let (ingress, width) = (meta.ingress, self.config.hop_width);
        if !self.paces.punt.admit(&mut self.guards[ingress.index()].misses, now) {
            return self.ports.discard(meta, Drop::PuntLimit, out);
        }
        if axon_wire::probe::is_ether(meta.frame.bytes()) {
            meta.kind = HeaderKind::EtherProbe;
            self.stamp_ingress(now, &mut meta);
            return self.ports.punt(now, meta, Punt::EtherProbe, out);
        }
        if meta.frame.push_front(width.header_bytes(1)).is_err() {
            return self.ports.discard(meta, Drop::NoHeadroom, out);
        }
        let bytes = meta.frame.bytes_mut();
        match header::emit(bytes, width, PacketType::Ethernet, &[], &[ingress]) {
            Ok(header_bytes) => {
                meta.header_bytes = header_bytes as u16;
                self.ports.punt(now, meta, Punt::Miss, out);
            }
            Err(_) => self.ports.discard(meta, Drop::Malformed, out),
        }
    }
}

/// Returns whether a frame is ARP, or a neighbour solicitation or advertisement.
pub(super) fn is_resolution(frame: &[u8]) -> bool {
    matches!(classify(frame), Kind::Arp(_) | Kind::BadArp | Kind::Nd(_) | Kind::BadNd)
}
