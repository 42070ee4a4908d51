//! Data plane of a switch: the path of a frame from ingress to wire (thesis 000 §3.2).

use super::settings::Settings;
use crate::axon::cnm_meter::CnmMeter;
use crate::axon::ethernet;
use crate::axon::lookups::Lookups;
use crate::axon::meter::Pace;
use crate::axon::pause::{self, SelfCongestion};
use crate::axon::route_memory::RouteMemory;
use crate::axon::routes::RouteTables;
use crate::config::{OnFull, PlaneConfig};
use crate::congestion::qcn::Treatment;
use crate::ports::{FrameMeta, HeaderKind, Ports};
use crate::probe::ProbeStamps;
use alloc::vec::Vec;
use axon_node::PortKind;
use axon_node::counters::Counters;
use axon_node::{Action, Awaited, Drop, PortEvent, RouteError, RouteKey};
use axon_wire::header::HeaderFields;
use axon_wire::mac_control::MacControl;
use axon_wire::priority::PRIORITIES;
use axon_wire::{Bytes, FrameBuf, PortNo, Route, Time};

/// Data plane of one switch: its ports, and the lookups `T` that hold the routes of its hosts.
///
/// Every call takes the time, and appends its actions to `out`. None blocks, fails, or copies a
/// frame; only the queues allocate, when they grow.
#[derive(Clone, Debug)]
pub struct Plane<T = RouteTables> {
    pub(super) ports: Ports,
    pub(super) config: PlaneConfig,
    pub(super) tables: T,
    pub(super) memory: RouteMemory,
    pub(super) guards: Vec<Guard>,
    pub(super) paces: Paces,
    /// Settings of the control plane, by port.
    pub(super) settings: Vec<Settings>,
}

/// State of the rate limits of one port.
#[derive(Clone, Debug, Default)]
pub(super) struct Guard {
    /// Next send time of a sender exactly at the limit ([`Pace`]), by kind of frame. Misses and
    /// link frames have separate limits, so that a host that floods cannot block discovery.
    pub(super) misses: Time,
    pub(super) link_frames: Time,
    /// Next send times of packets from other control planes, and of packets in error.
    pub(super) addressed: Time,
    pub(super) errors: Time,
    /// Next send time of congestion messages caused by frames of the port.
    pub(super) congestion: Time,
    /// Limit of CNMs to the hosts of the port.
    pub(super) cnms: CnmMeter,
    pub(super) load: SelfCongestion,
}

/// Rate limits common to all ports; their state is in the [`Guard`]s.
#[derive(Clone, Debug)]
pub(super) struct Paces {
    /// Limit of misses, link frames and errors, each by itself.
    pub(super) punt: Pace,
    pub(super) addressed: Pace,
    pub(super) congestion: Pace,
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
            guards: alloc::vec![Guard::default(); usize::from(config.ports)],
            paces: Paces {
                punt: Pace::new(config.punt),
                addressed: Pace::new(config.addressed),
                congestion: Pace::new(config.congestion),
            },
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
            Some(PortKind::Unknown) | None => self.unknown_ingress(now, meta.elsewhere(), out),
        }
    }

    /// Reports that the wire of `port` is free: the next scheduled frame is sent.
    #[inline]
    pub fn tx_done(&mut self, now: Time, port: PortNo, out: &mut Vec<Action>) {
        self.ports.tx_done(now, port, out);
    }

    /// Sets the carrier of `port`. Without carrier its queues are emptied and its wire counts as
    /// free: no `TxDone` follows for a frame that was on it.
    pub fn link(&mut self, now: Time, port: PortNo, up: bool, out: &mut Vec<Action>) {
        self.ports.link(now, port, up, out);
        if let Some(guard) = self.guards.get_mut(port.index()).filter(|_| !up) {
            guard.load = SelfCongestion::default();
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
        match self.kind(port) {
            None => self.ports.discard(meta, Drop::NoSuchPort, out),
            Some(PortKind::Axon) if !link_local => self.ports.discard(meta, Drop::KindChanged, out),
            Some(PortKind::Unknown) if !link_local => {
                self.ports.discard(meta, self.unknown_egress(port), out);
            }
            Some(_) => match self.ethernet_fault(&meta.frame) {
                Some(reason) => self.ports.discard(meta, reason, out),
                None => {
                    if axon_wire::probe::is_ether(meta.frame.bytes()) {
                        meta.kind = HeaderKind::EtherProbe;
                    }
                    let kind = (!link_local).then_some(PortKind::Host);
                    self.ports.deliver(now, meta, port, kind, out);
                }
            },
        }
    }

    /// Sets the kind of `port`. Frames queued there that do not suit the new kind are dropped as
    /// [`Drop::KindChanged`] when they are scheduled, so a host never receives an Axon header.
    /// Routes are unchanged.
    pub fn set_kind(&mut self, port: PortNo, kind: PortKind) {
        self.ports.set_kind(port, kind);
        self.tables.set_kind(port, kind);
    }

    /// Returns the drop reason of a frame to `port`, whose kind is not known.
    pub(super) fn unknown_egress(&self, port: PortNo) -> Drop {
        if self.is_up(port) { Drop::EgressUnknown } else { Drop::PortDown }
    }

    /// Returns the kind of `port`; `None` if there is no such port.
    #[inline]
    pub fn kind(&self, port: PortNo) -> Option<PortKind> {
        self.ports.wires().kind(port)
    }

    /// Sets the treatment of frames of the hosts of `port` at the edge of the congestion
    /// notification domain: that of [`Defences`](crate::qcn::Defences) after a change by LLDP.
    pub fn set_treatments(&mut self, port: PortNo, treatments: [Treatment; PRIORITIES]) {
        if let Some(edge) = self.ports.dcb_mut().and_then(|dcb| dcb.edge_mut(port)) {
            edge.set_treatments(treatments);
        }
    }

    /// Returns whether `port` exists and has carrier.
    pub fn is_up(&self, port: PortNo) -> bool {
        self.ports.wires().is_up(port)
    }

    /// Takes one of the ports whose wire a frame has begun to wait for; see
    /// [`Shortcuts::awaited`](axon_node::Shortcuts::awaited).
    #[inline]
    pub fn awaited(&mut self) -> Awaited {
        self.ports.awaited()
    }

    /// Returns whether a frame waits for the wire of `port`.
    pub fn waits_for(&self, port: PortNo) -> bool {
        self.ports.wires().is_waiting(port)
    }

    /// Returns the egress port of a packet, by its header alone.
    #[inline]
    pub(super) fn next_hop(&self, packet: &[u8]) -> Option<PortNo> {
        let width = self.config.hop_width;
        HeaderFields::parse(packet, width).ok()?.next_hop(packet, width)
    }

    /// Returns the route tables.
    pub fn tables(&self) -> &T {
        &self.tables
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

    /// Returns the counters.
    pub fn counters(&self) -> &Counters {
        self.ports.counters()
    }

    /// Counts a frame that the control plane dropped after a punt, so that all drops of a switch
    /// are counted in one place.
    pub fn count_drop(&mut self, ingress: PortNo, reason: Drop) {
        self.ports.count(ingress, PortEvent::Drop(reason));
    }

    /// Counts a copy that the control plane has made of a frame from `ingress`.
    pub fn count_copy(&mut self, ingress: PortNo) {
        self.ports.count(ingress, PortEvent::Copy);
    }

    /// Returns the number of frames sampled by the congestion points of `port` since configuration.
    pub fn congestion_samples(&self, port: PortNo) -> u64 {
        self.ports.dcb().map_or(0, |dcb| dcb.congestion_samples(port))
    }

    /// Returns the bytes queued for the wire of `port`.
    pub fn queued_bytes(&self, port: PortNo) -> Bytes {
        self.ports.queues().bytes(port)
    }

    /// Returns the frames queued for the wire of `port`.
    pub fn queued_frames(&self, port: PortNo) -> u64 {
        self.ports.queues().frames(port)
    }

    /// Returns the bytes of refused frames that the input `port` keeps.
    pub fn nacked_bytes(&self, port: PortNo) -> Bytes {
        self.ports.queues().nacked_bytes(port)
    }

    /// Returns the number of punted packets whose last byte has not arrived.
    pub fn held_frames(&self) -> u64 {
        self.ports.held_frames()
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

    /// Returns the reason why a frame is not valid Ethernet from or to a host; `None` if it is.
    #[inline]
    pub(super) fn ethernet_fault(&self, frame: &FrameBuf) -> Option<Drop> {
        self.fault_of((frame.bytes(), frame.length()))
    }

    /// Checks a frame like [`Plane::ethernet_fault`], given its first bytes and its length.
    #[inline]
    pub(super) fn fault_of(&self, frame: (&[u8], usize)) -> Option<Drop> {
        ethernet::fault_of(frame, self.config.frame_bytes_max)
    }

    /// Sends PAUSE to the hosts of `port` for the time of a maximum frame; has no effect if it is
    /// not a host port.
    pub fn pause_hosts(&mut self, now: Time, port: PortNo, out: &mut Vec<Action>) {
        if self.kind(port) == Some(PortKind::Host) {
            let quanta = pause::quanta_for(self.config.frame_bytes_max);
            let frame = MacControl::Pause(quanta).emit(self.config.mac);
            self.ports.count(port, PortEvent::Pause);
            self.send_raw(now, port, FrameBuf::with_headroom(0, &frame), out);
        }
    }

    /// Charges header bytes to the hosts of `port`, and pauses them when due.
    pub(super) fn burden(
        &mut self,
        now: Time,
        port: PortNo,
        header_bytes: usize,
        out: &mut Vec<Action>,
    ) {
        let frame_bytes_max = self.config.frame_bytes_max;
        if self.guards[port.index()].load.add(header_bytes, frame_bytes_max) {
            self.pause_hosts(now, port, out);
        }
    }
}
