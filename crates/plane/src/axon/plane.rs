//! Data plane of a switch: the way of a frame from ingress to wire (thesis 000 §3.2).
//!
//! A frame is parsed once, according to the kind of its ingress port. One from another Axon has its
//! route; one from a host is looked up, and its route is prepended. Then it takes a hop, and goes
//! to the wire or the queue of its egress, or to the control plane. If that queue is full or too
//! long, congestion is signalled first.

mod control;
mod dataplane;

pub use dataplane::capabilities;

use super::guards::Guards;
use super::lookups::Lookups;
use super::route_memory::RouteMemory;
use super::routes::RouteTables;
use super::settings::Settings;
use super::{congestion, ethernet, pass};
use crate::axon::forward::Step;
use crate::config::{OnFull, PlaneConfig};
use crate::ports::{FrameMeta, HeaderKind, Ports};
use crate::probe::ProbeStamps;
use alloc::vec::Vec;
use axon_node::{Action, Drop, PortEvent, PortKind, Punt, RouteKey};
use axon_wire::header::{self, HeaderFields, PacketType};
use axon_wire::link::ETHERNET_BYTES;
use axon_wire::probe::ProbeUnit;
use axon_wire::vlan::{self, VlanId};
use axon_wire::{Bytes, FrameBuf, MacAddr, PortNo, Time, cn, masquerade};

/// Data plane of one switch: its ports, and the lookups `T` that hold the routes of its hosts.
///
/// Every call takes the time, and appends its actions to `out`. None blocks, fails, or copies a
/// frame; only the queues allocate, when they grow.
#[derive(Clone, Debug)]
pub struct Plane<T = RouteTables> {
    config: PlaneConfig,
    ports: Ports,
    tables: T,
    memory: RouteMemory,
    guards: Guards,
    /// Settings of the control plane, by port.
    settings: Vec<Settings>,
}

impl Plane {
    /// Returns a plane whose ports are all unknown and without carrier, and whose tables are empty.
    ///
    /// # Panics
    /// As [`Plane::with_lookups`].
    pub fn new(config: PlaneConfig) -> Plane {
        let tables = RouteTables::with_config(&config);
        Plane::with_lookups(config, tables)
    }
}

impl<T: Lookups> Plane<T> {
    /// Returns a plane whose ports are all unknown and without carrier, with these lookups, which
    /// must be of the same configuration.
    ///
    /// # Panics
    /// If hops of this width cannot represent all the ports, or DCB is configured for other ports
    /// or is invalid: `ScheduleConfig::check`, `CnConfig::check`, `ecn::Profile::check`.
    pub fn with_lookups(config: PlaneConfig, lookups: T) -> Plane<T> {
        assert!(usize::from(config.ports) <= config.hop_width.ports_max(), "too many ports");
        let mut ports = Ports::new(config.ports, config.queue_bytes_max);
        let probes = ProbeStamps::new(config.probe_units, config.probe_bytes_max());
        let keeps = config.on_full == OnFull::Nack;
        ports.set_options(probes, if keeps { config.nack_bytes_max } else { Bytes(0) });
        if let Some(dcb) = &config.dcb {
            let set = ports.set_dcb((**dcb).clone(), config.control_priority);
            set.expect("a configuration that was checked");
        }
        Plane {
            tables: lookups,
            memory: RouteMemory::new(&config),
            ports,
            guards: Guards::new(&config),
            settings: alloc::vec![Settings::default(); usize::from(config.ports)],
            config,
        }
    }

    /// Receives a frame from a port.
    ///
    /// The path of a transit packet from here to its `Transmit` is inlined and passes no reference
    /// to the descriptor to functions that are not. Rare cases take it by value, in separate
    /// functions.
    #[inline]
    pub fn receive(
        &mut self,
        now: Time,
        port: PortNo,
        frame: FrameBuf,
        complete_at: Time,
        intact: bool,
        out: &mut Vec<Action>,
    ) {
        let meta = FrameMeta::new(frame, port, complete_at, intact);
        if let Err(reason) = self.ports.receive(now, &meta) {
            return self.ports.discard(meta.elsewhere(), reason, out);
        }
        match self.kind(port) {
            Some(PortKind::Axon) => self.axon_ingress(now, meta, out),
            Some(PortKind::Host) => self.host_ingress(now, meta.elsewhere(), out),
            Some(PortKind::Unknown) | None => {
                let kind = HeaderKind::of_ethernet(meta.frame.bytes());
                self.link_ingress(now, FrameMeta { kind, ..meta }, Drop::PortUnknown, out);
            }
        }
    }

    /// Receives a frame on an Axon port: an Axon packet or a link-local frame.
    #[inline(always)]
    fn axon_ingress(&mut self, now: Time, mut meta: FrameMeta, out: &mut Vec<Action>) {
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
        self.link_ingress(now, meta, Drop::Malformed, out);
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
        let unit = (ProbeUnit::Ingress, meta.ingress);
        self.ports.stamp(now, &mut meta, unit);
        self.step(now, meta, header, out);
    }

    /// Receives a link-local frame, which is never forwarded; drops a frame that is none for the
    /// reason `other`.
    fn link_ingress(&mut self, now: Time, meta: FrameMeta, other: Drop, out: &mut Vec<Action>) {
        if !meta.kind.is_link_local() {
            self.ports.discard(meta, other, out);
        } else if meta.frame.length() < ETHERNET_BYTES {
            self.ports.discard(meta, Drop::Malformed, out);
        } else if meta.kind == HeaderKind::MacControl {
            self.ports.mac_control(now, meta, out);
        } else if !self.guards.admit_link_frame(now, meta.ingress) {
            self.ports.discard(meta, Drop::PuntLimit, out);
        } else {
            self.ports.punt(now, meta, Punt::LinkLocal, out);
        }
    }

    /// Receives a frame from a host and looks it up once. With a route its header is prepended, and
    /// the frame takes its first hop; without one it goes to the control plane.
    #[inline(always)]
    fn host_ingress(&mut self, now: Time, meta: FrameMeta, out: &mut Vec<Action>) {
        let (ingress, bytes) = (meta.ingress, meta.frame.bytes());
        if let Some(reason) = self.ethernet_fault(&meta.frame) {
            return self.ports.discard(meta.elsewhere(), reason, out);
        }
        let kind = HeaderKind::of_ethernet(bytes);
        if kind.is_link_local() {
            return self.link_ingress(now, FrameMeta { kind, ..meta }, Drop::Malformed, out);
        }
        if self.config.dcb.is_some() && cn::is_cnm(bytes) {
            return self.ports.discard(meta.elsewhere(), Drop::ForgedCnm, out);
        }
        let Some(vlan) = self.vlan_of(ingress, bytes) else {
            return self.ports.discard(meta.elsewhere(), Drop::ForeignVlan, out);
        };
        let key = RouteKey::of_frame(vlan, bytes);
        if key.destination.is_multicast()
            || self.config.punts_resolution && ethernet::is_resolution(bytes)
        {
            return self.miss(now, meta.elsewhere(), out);
        }
        let (mut destination, found) = (None, self.tables.lookup(ingress, key, bytes));
        let found = found.or_else(|| {
            let (true_one, route, tagged) = masqueraded(&mut self.memory, ingress, key, bytes)?;
            destination = Some(true_one);
            Some((route, tagged))
        });
        let Some((route, tagged)) = found else {
            return self.miss(now, meta.elsewhere(), out);
        };
        // Read the stored header: a load from the bytes just copied would stall.
        let Ok(header) = HeaderFields::parse(route, self.config.hop_width) else {
            return self.ports.discard(meta.elsewhere(), Drop::Malformed, out);
        };
        let FrameMeta { mut frame, complete_at, came_bytes, intact, .. } = meta;
        if let Some(MacAddr(destination)) = destination {
            frame.bytes_mut()[..destination.len()].copy_from_slice(&destination);
        }
        let retagged = vlan::leave(&mut frame, vlan, tagged);
        let pushed = retagged.and_then(|()| frame.push_front(route.len()));
        let header = match pushed {
            Ok(()) => {
                frame.bytes_mut()[..route.len()].copy_from_slice(route);
                let (ports, config) = (&mut self.ports, &self.config);
                congestion::set_host_priority(ports, config, ingress, &mut frame, header)
            }
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
            let frame_bytes_max = self.config.frame_bytes_max;
            if self.guards.burden(ingress, header.header_bytes, frame_bytes_max) {
                self.send_pause(now, ingress, out);
            }
        }
    }

    /// Handles a frame without a route: it gets the default header, with no forward hops and the
    /// ingress port as the way back. An ether probe, which has no route, is stamped and goes to the
    /// control plane unchanged.
    fn miss(&mut self, now: Time, mut meta: FrameMeta, out: &mut Vec<Action>) {
        let (ingress, width) = (meta.ingress, self.config.hop_width);
        if !self.guards.admit_miss(now, ingress) {
            return self.ports.discard(meta, Drop::PuntLimit, out);
        }
        if axon_wire::probe::is_ether(meta.frame.bytes()) {
            meta.kind = HeaderKind::EtherProbe;
            self.ports.stamp(now, &mut meta, (ProbeUnit::Ingress, ingress));
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

    /// Takes one hop of an Axon packet that begins with `header`; returns whether it is now on its
    /// way to another Axon.
    #[inline(always)]
    fn step(
        &mut self,
        now: Time,
        mut meta: FrameMeta,
        header: &HeaderFields,
        out: &mut Vec<Action>,
    ) -> bool {
        let wires = self.ports.wires();
        let kind_of = |port: PortNo| wires.kind(port);
        let (width, ingress) = (self.config.hop_width, meta.ingress);
        let bytes = meta.frame.bytes_mut();
        match self.tables.forward(bytes, width, header, ingress, kind_of) {
            Step::Egress(port) if self.may_signal_congestion(port) => {
                self.egress_signalled(now, meta.elsewhere(), port, out);
            }
            Step::Egress(port) => {
                self.ports.deliver(now, meta, port, Some(PortKind::Axon), out);
            }
            Step::Strip { port, .. } => {
                self.egress_to_hosts(now, meta.elsewhere(), port, out);
                return false;
            }
            Step::Punt(punt) => {
                self.punt_packet(now, meta.elsewhere(), punt, out);
                return false;
            }
            Step::Drop(reason) => {
                self.step_refused(meta.elsewhere(), reason, out);
                return false;
            }
        }
        true
    }

    /// Returns whether congestion may have to be signalled before a packet goes to `port`.
    #[inline]
    fn may_signal_congestion(&self, port: PortNo) -> bool {
        self.config.on_full == OnFull::CongestionMessage || self.ports.wires().is_watched(port)
    }

    /// Sends a packet to the Axon at `port` after congestion signalling.
    #[cold]
    #[inline(never)]
    fn egress_signalled(
        &mut self,
        now: Time,
        mut meta: FrameMeta,
        port: PortNo,
        out: &mut Vec<Action>,
    ) {
        match self.signal_congestion(now, &mut meta, (port, None), out) {
            Some(reason) => self.ports.discard(meta, reason, out),
            None => self.ports.deliver(now, meta, port, Some(PortKind::Axon), out),
        }
    }

    /// Sends a packet to the hosts of `port`, without its header.
    #[inline(never)]
    fn egress_to_hosts(
        &mut self,
        now: Time,
        mut meta: FrameMeta,
        port: PortNo,
        out: &mut Vec<Action>,
    ) {
        let before = Some(meta.ingress);
        if let Some(reason) = self.signal_congestion(now, &mut meta, (port, before), out) {
            return self.ports.discard(meta, reason, out);
        }
        congestion::strip(&self.ports, self.config.hop_width, &mut meta, port);
        if let Some(base) = congestion::cnm_base(&self.config, meta.frame.bytes(), port)
            && !self.guards.admit_cnm(port, self.ports.counters().port(port).rx_bytes, base)
        {
            return self.ports.discard(meta, Drop::CnmLimit, out);
        }
        match self.ethernet_fault(&meta.frame) {
            Some(reason) => self.ports.discard(meta, reason, out),
            None => self.ports.deliver(now, meta, port, Some(PortKind::Host), out),
        }
    }

    /// Signals congestion of `egress` before a packet is queued there: a full output or a growing
    /// queue. `before` is the ingress of a packet that has not taken its hop. Returns the drop
    /// reason if the packet is to be dropped.
    #[inline]
    fn signal_congestion(
        &mut self,
        now: Time,
        meta: &mut FrameMeta,
        to: (PortNo, Option<PortNo>),
        out: &mut Vec<Action>,
    ) -> Option<Drop> {
        if self.config.on_full == OnFull::CongestionMessage
            && let Some(message) = congestion::refusal(&self.ports, &self.config, meta, to)
            && self.guards.admit_congestion(now, meta.ingress)
        {
            self.ports.count(meta.ingress, PortEvent::CongestionMessage);
            self.inject_packet(now, message, out);
        }
        if !self.ports.wires().is_watched(to.0) {
            return None;
        }
        let (cnm, drop) = congestion::watch(&mut self.ports, &self.config, now, meta, to)?;
        if let Some(cnm) = cnm {
            self.inject_packet(now, cnm, out);
        }
        drop
    }

    /// Punts a packet to the control plane; packets of other nodes are rate-limited by port.
    #[inline(never)]
    fn punt_packet(&mut self, now: Time, meta: FrameMeta, punt: Punt, out: &mut Vec<Action>) {
        if self.guards.admit_packet(now, meta.ingress, punt) {
            self.ports.punt(now, meta, punt, out);
        } else {
            self.ports.discard(meta, Drop::PuntLimit, out);
        }
    }

    /// Handles a packet that cannot take its hop; its bytes are unchanged. The step does not check
    /// carriers: a cut link is detected here, off the fast path.
    #[cold]
    #[inline(never)]
    fn step_refused(&mut self, meta: FrameMeta, reason: Drop, out: &mut Vec<Action>) {
        let (packet, width) = (meta.frame.bytes(), self.config.hop_width);
        let header = HeaderFields::parse(packet, width).ok();
        let reason = match (reason, header.and_then(|header| header.next_hop(packet, width))) {
            (Drop::EgressUnknown, Some(port)) => self.unknown_egress(port),
            _ => reason,
        };
        self.ports.discard(meta, reason, out);
    }

    /// Returns the drop reason of a frame to `port`, whose kind is not known.
    fn unknown_egress(&self, port: PortNo) -> Drop {
        if self.ports.wires().is_up(port) { Drop::EgressUnknown } else { Drop::PortDown }
    }

    /// Forwards a valid frame received on `ingress` that may leave now; returns its egress port.
    /// `None` if nothing has changed and the frame must be [received](Plane::receive). `is_free`
    /// returns whether the wire of a port that was busy is free now.
    #[inline]
    pub fn pass(
        &mut self,
        ingress: PortNo,
        frame: &mut FrameBuf,
        is_free: impl Fn(PortNo) -> bool,
    ) -> Option<PortNo> {
        if !T::STATELESS_STEP || self.config.on_full == OnFull::CongestionMessage {
            return None;
        }
        let came_bytes = frame.length();
        let (config, wires) = (&self.config, self.ports.wires());
        let egress = match wires.kind(ingress)? {
            PortKind::Axon => pass::packet(config, wires, ingress, frame, is_free)?,
            PortKind::Host if self.settings[ingress.index()].has_vlans() => return None,
            PortKind::Host => {
                pass::host_frame(config, wires, &mut self.tables, ingress, frame, is_free)?
            }
            PortKind::Unknown => return None,
        };
        self.ports.passed((ingress, came_bytes), (egress, frame.length()));
        Some(egress)
    }

    /// Returns the kind of `port`; `None` if there is no such port.
    #[inline]
    pub fn kind(&self, port: PortNo) -> Option<PortKind> {
        self.ports.wires().kind(port)
    }

    /// Returns the VLAN of a frame of the hosts at `ingress`. `None` if its tags do not match the
    /// VLANs of the port.
    #[inline]
    fn vlan_of(&self, ingress: PortNo, frame: &[u8]) -> Option<VlanId> {
        let settings = self.settings.get(ingress.index());
        settings.map_or(Some(VlanId::NONE), |settings| settings.vlan_of(frame))
    }

    /// Returns the reason why a frame is not valid Ethernet from or to a host; `None` if it is.
    #[inline]
    fn ethernet_fault(&self, frame: &FrameBuf) -> Option<Drop> {
        ethernet::fault_of((frame.bytes(), frame.length()), self.config.frame_bytes_max)
    }
}

/// Returns the true destination of a frame whose destination, a masqueraded address, is an index
/// into route memory; its route; and whether frames in VLANs leave tagged. `None` for ARP and
/// neighbour discovery, which go to the control plane: the addresses in them would be wrong at the
/// other end.
#[inline(never)]
fn masqueraded<'a>(
    memory: &'a mut RouteMemory,
    ingress: PortNo,
    key: RouteKey,
    frame: &[u8],
) -> Option<(MacAddr, &'a [u8], bool)> {
    masquerade::index_of(key.destination)?;
    if ethernet::is_resolution(frame) {
        return None;
    }
    memory.lookup(ingress, key)
}
