//! A switch's data plane: what happens to a frame from ingress to wire (thesis 000 §3.2).

use crate::buffers::{Egress, Queued};
use crate::config::{PlaneConfig, PortKind};
use crate::contract::{Action, Drop, Punt};
use crate::counters::Counters;
use crate::forward::{Step, forward};
use crate::meter::Meter;
use crate::pause::{self, SelfCongestion};
use crate::routes::RouteTables;
use alloc::vec::Vec;
use axon_wire::header::{self, PacketType};
use axon_wire::link::ETHERNET_BYTES;
use axon_wire::{Bytes, Frame, MacAddr, PortNo, Time};

/// Bytes of an IEEE 802.1Q tag, which a frame may have on top of its longest length.
const TAG_BYTES: usize = 4;
/// EtherTypes of the customer and the service tag (IEEE 802.1Q table 9-1).
const TAGS: [[u8; 2]; 2] = [[0x81, 0x00], [0x88, 0xa8]];

/// The data plane of one switch.
///
/// Every call takes the time, and appends what is to be done to `out`. None blocks, fails,
/// or copies a frame; only the queues allocate, when they grow.
#[derive(Clone, Debug)]
pub struct Plane<B> {
    config: PlaneConfig,
    tables: RouteTables,
    ports: Vec<Port<B>>,
    counters: Counters,
}

#[derive(Clone, Debug)]
struct Port<B> {
    kind: PortKind,
    /// Has carrier.
    up: bool,
    /// A frame is on the wire.
    busy: bool,
    egress: Egress<B>,
    /// Two meters, so that a host that floods cannot keep discovery from being heard.
    misses: Meter,
    link_frames: Meter,
    load: SelfCongestion,
}

/// A frame on its way through the plane.
struct Moving<B> {
    frame: B,
    ingress: PortNo,
    complete_at: Time,
    intact: bool,
}

impl<B: Frame> Plane<B> {
    /// A plane whose ports are all unknown and without carrier, and whose tables are empty.
    ///
    /// # Panics
    /// If hops of this width cannot name all the ports.
    pub fn new(config: PlaneConfig) -> Plane<B> {
        assert!(usize::from(config.ports) <= config.hop_width.ports_max(), "too many ports");
        let port = || Port {
            kind: PortKind::default(),
            up: false,
            busy: false,
            egress: Egress::new(),
            misses: Meter::new(config.punt),
            link_frames: Meter::new(config.punt),
            load: SelfCongestion::default(),
        };
        Plane {
            tables: RouteTables::new(config.hop_width, config.ports, config.routes_per_port_max),
            ports: (0..config.ports).map(|_| port()).collect(),
            counters: Counters::new(config.ports),
            config,
        }
    }

    /// Takes a frame from a port.
    #[inline]
    pub fn receive(
        &mut self,
        now: Time,
        port: PortNo,
        frame: B,
        complete_at: Time,
        intact: bool,
        out: &mut Vec<Action<B>>,
    ) {
        self.counters.port_mut(port).received(frame.bytes().len());
        let moving = Moving { frame, ingress: port, complete_at, intact };
        match self.kind(port) {
            Some(PortKind::Axon) => self.axon_ingress(now, moving, out),
            Some(PortKind::Host) => self.host_ingress(now, moving, out),
            Some(PortKind::Unknown) => self.unknown_ingress(now, moving, out),
            None => self.discard(moving, Drop::NoSuchPort, out),
        }
    }

    /// The wire of `port` is free: the next frame in turn goes out.
    #[inline]
    pub fn tx_done(&mut self, _now: Time, port: PortNo, out: &mut Vec<Action<B>>) {
        let Some(state) = self.ports.get_mut(port.index()) else {
            return;
        };
        state.busy = false;
        if !state.up {
            return;
        }
        let kind = state.kind;
        while let Some(item) = self.ports[port.index()].egress.pop() {
            let Queued { frame, ingress, complete_at, intact, .. } = item;
            let moving = Moving { frame, ingress, complete_at, intact };
            if item.kind.is_none_or(|wanted| wanted == kind) {
                return self.transmit(moving, port, out);
            }
            self.discard(moving, Drop::KindChanged, out);
        }
    }

    /// The carrier of `port` came or went. Without carrier its queues are emptied and its
    /// wire counts as free: no `TxDone` is owed for a frame that was on it.
    pub fn link(&mut self, _now: Time, port: PortNo, up: bool, out: &mut Vec<Action<B>>) {
        let Some(state) = self.ports.get_mut(port.index()) else {
            return;
        };
        state.up = up;
        if up {
            return;
        }
        state.busy = false;
        state.load = SelfCongestion::default();
        while let Some(item) = self.ports[port.index()].egress.pop() {
            let Queued { frame, ingress, complete_at, intact, .. } = item;
            self.discard(Moving { frame, ingress, complete_at, intact }, Drop::PortDown, out);
        }
    }

    /// Sends an Axon packet of the control plane on its way. If its first hop is the control
    /// plane, it comes straight back as [`Punt::Addressed`].
    pub fn inject(&mut self, now: Time, frame: B, out: &mut Vec<Action<B>>) {
        self.counters.port_mut(PortNo::CONTROL).received(frame.bytes().len());
        let moving = Moving { frame, ingress: PortNo::CONTROL, complete_at: now, intact: true };
        self.step(moving, out);
    }

    /// Sends an Ethernet frame of the control plane out of `port`: a link-local frame on any
    /// port, or another to the hosts of a host port.
    pub fn send_raw(&mut self, now: Time, port: PortNo, frame: B, out: &mut Vec<Action<B>>) {
        self.counters.port_mut(PortNo::CONTROL).received(frame.bytes().len());
        let moving = Moving { frame, ingress: PortNo::CONTROL, complete_at: now, intact: true };
        let link_local = is_link_local(moving.frame.bytes());
        match self.kind(port) {
            None => self.discard(moving, Drop::NoSuchPort, out),
            Some(PortKind::Axon) if !link_local => self.discard(moving, Drop::KindChanged, out),
            Some(PortKind::Unknown) if !link_local => {
                self.discard(moving, Drop::PortUnknown, out);
            }
            Some(_) => match self.ethernet_fault(moving.frame.bytes()) {
                Some(reason) => self.discard(moving, reason, out),
                None => {
                    let kind = (!link_local).then_some(PortKind::Host);
                    self.deliver(moving, port, kind, out);
                }
            },
        }
    }

    /// Says what is plugged into `port`. Frames queued there that do not suit the new kind
    /// are dropped as [`Drop::KindChanged`] when their turn comes: a host never sees an Axon
    /// header. Routes are left alone.
    pub fn set_kind(&mut self, port: PortNo, kind: PortKind) {
        if let Some(state) = self.ports.get_mut(port.index()) {
            state.kind = kind;
        }
    }

    /// What is plugged into `port`; `None` if there is no such port.
    pub fn kind(&self, port: PortNo) -> Option<PortKind> {
        self.ports.get(port.index()).map(|state| state.kind)
    }

    /// Whether `port` exists and has carrier.
    pub fn is_up(&self, port: PortNo) -> bool {
        self.ports.get(port.index()).is_some_and(|state| state.up)
    }

    /// The route tables.
    pub fn tables(&self) -> &RouteTables {
        &self.tables
    }

    /// The route tables, to change.
    pub fn tables_mut(&mut self) -> &mut RouteTables {
        &mut self.tables
    }

    /// What has been counted.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Counts a frame that ended in the control plane after a punt, so that every drop of a
    /// switch is in one place.
    pub fn count_drop(&mut self, ingress: PortNo, reason: Drop) {
        self.counters.port_mut(ingress).drop_one(reason);
    }

    /// Bytes that wait for the wire of `port`.
    pub fn queued_bytes(&self, port: PortNo) -> Bytes {
        Bytes(self.ports.get(port.index()).map_or(0, |state| state.egress.bytes()))
    }

    /// Frames that wait for the wire of `port`.
    pub fn queued_frames(&self, port: PortNo) -> u64 {
        self.ports.get(port.index()).map_or(0, |state| state.egress.frames())
    }

    /// What the plane was told at its start.
    pub fn config(&self) -> &PlaneConfig {
        &self.config
    }

    /// A frame on an Axon port is an Axon packet or a link-local frame.
    #[inline]
    fn axon_ingress(&mut self, now: Time, moving: Moving<B>, out: &mut Vec<Action<B>>) {
        if header::is_axon(moving.frame.bytes()) {
            self.step(moving, out);
        } else if is_link_local(moving.frame.bytes()) {
            self.link_ingress(now, moving, out);
        } else {
            self.discard(moving, Drop::Malformed, out);
        }
    }

    /// Until the peer of a port is known, only link-local frames count.
    fn unknown_ingress(&mut self, now: Time, moving: Moving<B>, out: &mut Vec<Action<B>>) {
        if is_link_local(moving.frame.bytes()) {
            self.link_ingress(now, moving, out);
        } else {
            self.discard(moving, Drop::PortUnknown, out);
        }
    }

    /// A frame from a host is looked up once. With a route its header is prepended, and what
    /// follows is the step that every packet takes; without one it goes to the control plane.
    #[inline]
    fn host_ingress(&mut self, now: Time, mut moving: Moving<B>, out: &mut Vec<Action<B>>) {
        let ingress = moving.ingress;
        if let Some(reason) = self.ethernet_fault(moving.frame.bytes()) {
            return self.discard(moving, reason, out);
        }
        let destination = MacAddr::destination_of(moving.frame.bytes()).unwrap_or_default();
        if destination.is_multicast() {
            return if destination.is_link_local() {
                self.link_ingress(now, moving, out)
            } else {
                self.miss(now, moving, out)
            };
        }
        let Some(route) = self.tables.lookup(ingress, destination) else {
            return self.miss(now, moving, out);
        };
        let header_bytes = route.len();
        if moving.frame.push_front(header_bytes).is_err() {
            return self.discard(moving, Drop::NoHeadroom, out);
        }
        moving.frame.bytes_mut()[..header_bytes].copy_from_slice(route);
        let left_for_axon = self.step(moving, out);
        if left_for_axon && self.config.self_congestion_pause {
            self.burden(now, ingress, header_bytes, out);
        }
    }

    /// Why a frame is not Ethernet that a host may send or see, if it is not.
    #[inline]
    fn ethernet_fault(&self, bytes: &[u8]) -> Option<Drop> {
        let most = self.config.frame_bytes_max;
        if bytes.len() < ETHERNET_BYTES {
            return Some(Drop::Malformed);
        }
        if bytes.len() <= most {
            return None;
        }
        let tagged = TAGS.iter().any(|tag| bytes[12..14] == *tag);
        (!tagged || bytes.len() > most + TAG_BYTES).then_some(Drop::Oversized)
    }

    /// A link-local frame belongs to this switch alone.
    fn link_ingress(&mut self, now: Time, moving: Moving<B>, out: &mut Vec<Action<B>>) {
        let bytes = moving.frame.bytes();
        if bytes.len() < ETHERNET_BYTES {
            return self.discard(moving, Drop::Malformed, out);
        }
        if pause::is_mac_control(bytes) {
            return self.discard(moving, Drop::MacControl, out);
        }
        if !self.ports[moving.ingress.index()].link_frames.admit(now) {
            return self.discard(moving, Drop::PuntLimit, out);
        }
        self.punt(moving, Punt::LinkLocal, out);
    }

    /// The default header: no forward hops, and the ingress port as the way back.
    fn miss(&mut self, now: Time, mut moving: Moving<B>, out: &mut Vec<Action<B>>) {
        let (ingress, width) = (moving.ingress, self.config.hop_width);
        if !self.ports[ingress.index()].misses.admit(now) {
            return self.discard(moving, Drop::PuntLimit, out);
        }
        if moving.frame.push_front(width.header_bytes(1)).is_err() {
            return self.discard(moving, Drop::NoHeadroom, out);
        }
        let bytes = moving.frame.bytes_mut();
        match header::emit(bytes, width, PacketType::Ethernet, &[], &[ingress]) {
            Ok(_) => self.punt(moving, Punt::Miss, out),
            Err(_) => self.discard(moving, Drop::Malformed, out),
        }
    }

    /// Takes one hop of an Axon packet; says whether it is now on its way to another Axon.
    #[inline]
    fn step(&mut self, mut moving: Moving<B>, out: &mut Vec<Action<B>>) -> bool {
        let ports = &self.ports;
        let kind_of = |port: PortNo| ports.get(port.index()).map(|state| state.kind);
        let bytes = moving.frame.bytes_mut();
        match forward(bytes, self.config.hop_width, moving.ingress, kind_of) {
            Step::Egress(port) => {
                self.deliver(moving, port, Some(PortKind::Axon), out);
                return true;
            }
            Step::Strip { port, header_bytes } => {
                moving.frame.pop_front(header_bytes);
                match self.ethernet_fault(moving.frame.bytes()) {
                    Some(reason) => self.discard(moving, reason, out),
                    None => self.deliver(moving, port, Some(PortKind::Host), out),
                }
            }
            Step::Punt(punt) => self.punt(moving, punt, out),
            Step::Drop(reason) => self.discard(moving, reason, out),
        }
        false
    }

    /// Gives a frame to the wire of `port` if that is free, and to its queue otherwise.
    #[inline]
    fn deliver(
        &mut self,
        moving: Moving<B>,
        port: PortNo,
        kind: Option<PortKind>,
        out: &mut Vec<Action<B>>,
    ) {
        let state = &mut self.ports[port.index()];
        if !state.up {
            return self.discard(moving, Drop::PortDown, out);
        }
        if !state.busy {
            return self.transmit(moving, port, out);
        }
        let Moving { frame, ingress, complete_at, intact } = moving;
        let bytes = frame.bytes().len() as u32;
        let item = Queued { frame, bytes, ingress, complete_at, intact, kind };
        if let Err(item) = state.egress.push(item, self.config.queue_bytes_max.0) {
            let Queued { frame, ingress, complete_at, intact, .. } = item;
            self.discard(Moving { frame, ingress, complete_at, intact }, Drop::QueueFull, out);
        }
    }

    #[inline]
    fn transmit(&mut self, moving: Moving<B>, port: PortNo, out: &mut Vec<Action<B>>) {
        let Moving { frame, complete_at, intact, .. } = moving;
        self.ports[port.index()].busy = true;
        self.counters.port_mut(port).sent(frame.bytes().len());
        out.push(Action::Transmit { port, frame, complete_at, intact });
    }

    fn punt(&mut self, moving: Moving<B>, punt: Punt, out: &mut Vec<Action<B>>) {
        let Moving { frame, ingress, .. } = moving;
        self.counters.port_mut(ingress).punt_one(punt);
        out.push(Action::Punt { ingress, frame, punt });
    }

    #[cold]
    fn discard(&mut self, moving: Moving<B>, reason: Drop, out: &mut Vec<Action<B>>) {
        let Moving { frame, ingress, .. } = moving;
        self.counters.port_mut(ingress).drop_one(reason);
        out.push(Action::Dropped { ingress, reason, frame });
    }

    /// Counts header bytes against the hosts of `port`, and tells them to pause when due.
    fn burden(&mut self, now: Time, port: PortNo, header_bytes: usize, out: &mut Vec<Action<B>>) {
        let frame_bytes_max = self.config.frame_bytes_max;
        if !self.ports[port.index()].load.add(header_bytes, frame_bytes_max) {
            return;
        }
        let frame = pause::emit(self.config.mac, pause::quanta_for(frame_bytes_max));
        self.counters.port_mut(port).pauses += 1;
        self.send_raw(now, port, B::with_headroom(0, &frame), out);
    }
}

fn is_link_local(frame: &[u8]) -> bool {
    MacAddr::destination_of(frame).is_some_and(MacAddr::is_link_local)
}
