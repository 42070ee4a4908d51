//! Other inputs of a plane, and requests of the control plane: packets and frames of its own,
//! punted frames, and PAUSE.

use super::Plane;
use crate::axon::lookups::Lookups;
use crate::axon::{congestion, pause, routes};
use crate::config::PlaneConfig;
use crate::ports::{FrameMeta, HeaderKind, Ports};
use alloc::vec::Vec;
use axon_node::counters::Counters;
use axon_node::{Action, Awaited, Drop, PortEvent, PortKind, RouteError, RouteKey};
use axon_wire::header::HeaderFields;
use axon_wire::mac_control::MacControl;
use axon_wire::{FrameBuf, PortNo, Route, Time, vlan};

impl<T: Lookups> Plane<T> {
    /// Reports that the wire of `port` is free: the next scheduled frame is sent.
    #[inline]
    pub fn tx_done(&mut self, now: Time, port: PortNo, out: &mut Vec<Action>) {
        self.ports.tx_done(now, port, out);
    }

    /// Sets the carrier of `port`. Without carrier its queues are emptied and its wire counts as
    /// free: no `TxDone` follows for a frame that was on it.
    pub fn link(&mut self, now: Time, port: PortNo, up: bool, out: &mut Vec<Action>) {
        self.ports.link(now, port, up, out);
        if !up {
            self.guards.link_lost(port);
        }
    }

    /// Handles an expired deadline: packets for the control plane whose tail has arrived are
    /// punted.
    #[inline]
    pub fn timeout(&mut self, now: Time, out: &mut Vec<Action>) {
        self.ports.timeout(now, out);
    }

    /// Returns the time of the next [`Plane::timeout`]. Early or repeated calls are harmless.
    #[inline]
    pub fn deadline(&self) -> Option<Time> {
        self.ports.deadline()
    }

    /// Takes one of the ports whose wire a frame has begun to wait for; see
    /// [`Shortcuts::awaited`](axon_node::Shortcuts::awaited).
    #[inline]
    pub fn awaited(&mut self) -> Awaited {
        self.ports.awaited()
    }

    /// Sends an Axon packet of the control plane. If its first hop is the control plane, it is
    /// returned as [`Punt::Addressed`](axon_node::Punt).
    pub fn inject_packet(&mut self, now: Time, frame: FrameBuf, out: &mut Vec<Action>) {
        let mut meta = self.ports.originate(now, frame);
        match HeaderFields::parse(meta.frame.bytes(), self.config.hop_width) {
            Ok(header) => {
                meta.set_header(&header);
                self.step(now, meta, &header, out);
            }
            Err(_) => self.ports.discard(meta, Drop::Malformed, out),
        }
    }

    /// Sends an Ethernet frame of the control plane out of `port`: a link-local frame on any port,
    /// or another to the hosts of a host port.
    pub fn send_raw(&mut self, now: Time, port: PortNo, frame: FrameBuf, out: &mut Vec<Action>) {
        let mut meta = self.ports.originate(now, frame);
        meta.kind = HeaderKind::of_ethernet(meta.frame.bytes());
        let link_local = meta.kind.is_link_local();
        let refused = match self.kind(port) {
            None => Some(Drop::NoSuchPort),
            Some(PortKind::Axon) if !link_local => Some(Drop::KindChanged),
            Some(PortKind::Unknown) if !link_local => Some(self.unknown_egress(port)),
            Some(_) => self.ethernet_fault(&meta.frame),
        };
        if let Some(reason) = refused {
            return self.ports.discard(meta, reason, out);
        }
        if axon_wire::probe::is_ether(meta.frame.bytes()) {
            meta.kind = HeaderKind::EtherProbe;
        }
        let kind = (!link_local).then_some(PortKind::Host);
        self.ports.deliver(now, meta, port, kind, out);
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
        let (ports, config) = (&mut self.ports, &self.config);
        let fields = congestion::set_host_priority(ports, config, ingress, &mut meta.frame, fields);
        meta.set_header(&fields);
        self.step(now, meta, &fields, out);
    }

    /// Sends PAUSE to the hosts of `port` for the time of a maximum frame; has no effect if it is
    /// not a host port.
    pub(super) fn send_pause(&mut self, now: Time, port: PortNo, out: &mut Vec<Action>) {
        if self.kind(port) == Some(PortKind::Host) {
            let quanta = pause::quanta_for(self.config.frame_bytes_max);
            let frame = MacControl::Pause(quanta).emit(self.config.mac);
            self.ports.count(port, PortEvent::Pause);
            self.send_raw(now, port, FrameBuf::with_headroom(0, &frame), out);
        }
    }

    /// Sets the kind of `port`. Frames queued there that do not suit the new kind are dropped as
    /// [`Drop::KindChanged`] when they are scheduled, so a host never receives an Axon header.
    /// Routes are unchanged.
    pub fn set_kind(&mut self, port: PortNo, kind: PortKind) {
        self.ports.set_kind(port, kind);
        self.tables.set_kind(port, kind);
    }

    /// Installs `route` for frames from `port` with this key or destination; for a plane without a
    /// control plane.
    ///
    /// # Errors
    /// See [`Lookups::install`].
    pub fn install(
        &mut self,
        port: PortNo,
        key: impl Into<RouteKey>,
        route: &Route,
    ) -> Result<(), RouteError> {
        self.tables.install(port, key.into(), route)
    }

    /// Returns the route tables.
    pub fn tables(&self) -> &T {
        &self.tables
    }

    /// Returns the counters.
    pub fn counters(&self) -> &Counters {
        self.ports.counters()
    }

    /// Returns the ports.
    pub fn ports(&self) -> &Ports {
        &self.ports
    }

    /// Returns the ports, to change their settings.
    pub fn ports_mut(&mut self) -> &mut Ports {
        &mut self.ports
    }

    /// Returns the initial configuration.
    pub fn config(&self) -> &PlaneConfig {
        &self.config
    }
}
