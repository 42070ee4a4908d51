//! Path of a frame through the reference.
//!
//! A frame is kept until its last byte has arrived, and dropped if its FCS is wrong. Then the kind
//! of its ingress port decides: a frame from a host is an Ethernet frame, which is looked up; one
//! from an Axon is a packet, which takes a hop; on a port of unknown kind, only link-local frames
//! are accepted. A frame that leaves goes to the wire if that is free, and into the FIFO of its
//! port otherwise, as far as there is room.

mod dataplane;

pub use dataplane::capabilities;

use super::arrivals::{Arrivals, Arriving};
use super::port::{Port, Queued, bytes_of, queue_of};
use super::probes;
use super::rules;
use super::step::{self, Verdict};
use crate::config::{OnFull, PlaneConfig};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use axon_node::{
    Action, Counters, Drop, Input, Node, NodeKind, PortEvent, PortKind, Punt, RouteKey,
};
use axon_wire::header::{self, PacketType};
use axon_wire::link::ETHERNET_BYTES;
use axon_wire::mac_control::{self, MacControl, Quanta};
use axon_wire::probe::ProbeUnit;
use axon_wire::vlan::VlanId;
use axon_wire::{Bytes, FrameBuf, MacAddr, PortNo, Route, Time};

/// Bytes per quantum of PAUSE, 512 bit times (IEEE 802.3 annex 31B).
const QUANTUM_BYTES: usize = 64;
/// Bytes of preamble, FCS and the shortest gap, which every frame takes on the wire beside its own.
const WIRE_OVERHEAD_BYTES: usize = 24;

/// Simple data plane for comparison; see [the module](crate::reference).
#[derive(Clone, Debug)]
pub struct Reference {
    config: PlaneConfig,
    ports: Vec<Port>,
    counters: Counters,
    arrivals: Arrivals,
}

impl Reference {
    /// Returns a data plane whose ports are all of unknown kind and without carrier, and whose
    /// tables are empty.
    ///
    /// # Panics
    /// If the configuration contains features that the reference does not have: traffic classes, or
    /// refused frames ([`OnFull`]); or more ports than hops of this width can represent.
    pub fn new(config: PlaneConfig) -> Reference {
        assert!(config.dcb.is_none(), "the reference has no traffic classes");
        assert!(config.on_full == OnFull::Drop, "the reference keeps and reports no refused frame");
        assert!(usize::from(config.ports) <= config.hop_width.ports_max(), "too many ports");
        Reference {
            ports: (0..config.ports).map(|_| Port::new(&config)).collect(),
            counters: Counters::new(config.ports),
            arrivals: Arrivals::default(),
            config,
        }
    }

    fn port(&self, port: PortNo) -> Option<&Port> {
        self.ports.get(port.index())
    }

    /// Receives a frame from a wire.
    fn arrive(&mut self, now: Time, complete_at: Time, frame: Arriving, out: &mut Vec<Action>) {
        self.counters.received(frame.ingress, frame.frame.bytes().len());
        if complete_at > now {
            self.arrivals.push(complete_at, frame);
        } else {
            self.whole(now, frame, out);
        }
    }

    /// Processes the frames whose last byte has arrived.
    fn release(&mut self, now: Time, out: &mut Vec<Action>) {
        while let Some(frame) = self.arrivals.pop(now) {
            self.whole(now, frame, out);
        }
    }

    /// Processes a complete frame.
    fn whole(&mut self, now: Time, arriving: Arriving, out: &mut Vec<Action>) {
        let Arriving { mut frame, ingress, came, intact } = arriving;
        if !intact {
            return self.end(ingress, Drop::BadFcs, frame, out);
        }
        match self.port(ingress).map(|port| port.kind) {
            None => self.end(ingress, Drop::NoSuchPort, frame, out),
            Some(PortKind::Host) => self.host_frame((came, now), ingress, frame, out),
            Some(PortKind::Axon) if header::is_axon(frame.bytes()) => {
                if rules::header_bytes(frame.bytes(), self.config.hop_width)
                    > self.config.route_bytes_max
                {
                    return self.end(ingress, Drop::RouteTooLong, frame, out);
                }
                if let Some(head) = probes::head_of(frame.bytes(), self.config.hop_width) {
                    self.stamp(came, (&mut frame, head), (ProbeUnit::Ingress, ingress));
                }
                self.take_hop(now, ingress, frame, out);
            }
            Some(_) if rules::is_link_local(frame.bytes()) => {
                self.link_frame(now, ingress, frame, out);
            }
            Some(PortKind::Axon) => self.end(ingress, Drop::Malformed, frame, out),
            Some(PortKind::Unknown) => self.end(ingress, Drop::PortUnknown, frame, out),
        }
    }

    /// Processes a frame from a host, which gets the route of its destination.
    fn host_frame(
        &mut self,
        (came, now): (Time, Time),
        ingress: PortNo,
        frame: FrameBuf,
        out: &mut Vec<Action>,
    ) {
        if let Some(reason) = rules::fault(frame.bytes(), self.config.frame_bytes_max) {
            return self.end(ingress, reason, frame, out);
        }
        if rules::is_link_local(frame.bytes()) {
            return self.link_frame(now, ingress, frame, out);
        }
        let port = &mut self.ports[ingress.index()];
        let Some(vlan) = port.vlan_of(&frame) else {
            return self.end(ingress, Drop::ForeignVlan, frame, out);
        };
        let any = RouteKey::of_frame(vlan, frame.bytes());
        let pair = any.from_source(MacAddr::source_of(frame.bytes()));
        let key = if port.routes.contains_key(&pair) { pair } else { any };
        let route = port.routes.get(&key).cloned();
        match route.filter(|_| !key.destination.is_multicast()) {
            Some(route) => {
                port.used.insert(key);
                self.attach(now, (ingress, vlan), &route, frame, out);
            }
            None => self.miss((came, now), ingress, frame, out),
        }
    }

    /// Gives a host's frame its egress tag and the header of `route`; then it takes its first hop.
    /// `ingress` is the control plane for a frame that was punted.
    fn attach(
        &mut self,
        now: Time,
        (ingress, vlan): (PortNo, VlanId),
        route: &Route,
        mut frame: FrameBuf,
        out: &mut Vec<Action>,
    ) {
        if !rules::retag(&mut frame, vlan, route.tagged) {
            return self.end(ingress, Drop::NoHeadroom, frame, out);
        }
        let header = step::header_of(route, self.config.hop_width);
        let Some(header) = header.filter(|header| frame.push_front(header.len()).is_ok()) else {
            return self.end(ingress, Drop::NoHeadroom, frame, out);
        };
        frame.bytes_mut()[..header.len()].copy_from_slice(&header);
        let to_an_axon = self.take_hop(now, ingress, frame, out);
        let from_host = ingress != PortNo::CONTROL;
        if to_an_axon && from_host && self.config.self_congestion_pause {
            self.count_header(now, ingress, header.len(), out);
        }
    }

    /// Processes a host's frame without a route, which goes to the control plane, with its port as
    /// the way back; an ether probe goes there with its record.
    fn miss(
        &mut self,
        (came, now): (Time, Time),
        ingress: PortNo,
        mut frame: FrameBuf,
        out: &mut Vec<Action>,
    ) {
        if !self.ports[ingress.index()].misses.admit(now) {
            return self.end(ingress, Drop::PuntLimit, frame, out);
        }
        if axon_wire::probe::is_ether(frame.bytes()) {
            self.stamp(came, (&mut frame, ETHERNET_BYTES), (ProbeUnit::Ingress, ingress));
            return self.punt(ingress, (Punt::EtherProbe, 0), frame, out);
        }
        let width = self.config.hop_width;
        if frame.push_front(width.header_bytes(1)).is_err() {
            return self.end(ingress, Drop::NoHeadroom, frame, out);
        }
        match header::emit(frame.bytes_mut(), width, PacketType::Ethernet, &[], &[ingress]) {
            Ok(bytes) => self.punt(ingress, (Punt::Miss, bytes), frame, out),
            Err(_) => self.end(ingress, Drop::Malformed, frame, out),
        }
    }

    /// Punts a frame of this link alone to the control plane; MAC control is not passed on.
    fn link_frame(&mut self, now: Time, ingress: PortNo, frame: FrameBuf, out: &mut Vec<Action>) {
        if frame.bytes().len() < ETHERNET_BYTES {
            self.end(ingress, Drop::Malformed, frame, out);
        } else if mac_control::is_mac_control(frame.bytes()) {
            self.end(ingress, Drop::MacControl, frame, out);
        } else if !self.ports[ingress.index()].link_frames.admit(now) {
            self.end(ingress, Drop::PuntLimit, frame, out);
        } else {
            self.punt(ingress, (Punt::LinkLocal, 0), frame, out);
        }
    }

    /// Takes one hop of a packet; returns whether it is now for another Axon.
    fn take_hop(
        &mut self,
        now: Time,
        ingress: PortNo,
        mut frame: FrameBuf,
        out: &mut Vec<Action>,
    ) -> bool {
        let probe = probes::head_of(frame.bytes(), self.config.hop_width);
        let kind_of = |port: PortNo| self.ports.get(port.index()).map(|port| port.kind);
        match step::step(frame.bytes_mut(), self.config.hop_width, ingress, kind_of) {
            Verdict::Transit(port) => {
                let kind = Some(PortKind::Axon);
                self.leave(now, port, Queued { frame, ingress, kind, probe }, out);
                return true;
            }
            Verdict::Deliver { port, header_bytes } => {
                frame.pop_front(header_bytes);
                match rules::fault(frame.bytes(), self.config.frame_bytes_max) {
                    Some(reason) => self.end(ingress, reason, frame, out),
                    None => {
                        let kind = Some(PortKind::Host);
                        self.leave(now, port, Queued { frame, ingress, kind, probe: None }, out);
                    }
                }
            }
            Verdict::Punt(punt) => self.punt_metered(now, ingress, punt, frame, out),
            Verdict::Unknown(port) => {
                let reason = rules::unknown_egress(self.ports[port.index()].up);
                self.end(ingress, reason, frame, out);
            }
            Verdict::Drop(reason) => self.end(ingress, reason, frame, out),
        }
        false
    }

    /// Sends an Ethernet frame of the control plane out of `port`.
    fn send_ethernet(&mut self, now: Time, port: PortNo, frame: FrameBuf, out: &mut Vec<Action>) {
        let ingress = PortNo::CONTROL;
        self.counters.received(ingress, frame.bytes().len());
        let link_local = rules::is_link_local(frame.bytes());
        let refused = match self.port(port).map(|port| (port.kind, port.up)) {
            None => Some(Drop::NoSuchPort),
            Some((PortKind::Axon, _)) if !link_local => Some(Drop::KindChanged),
            Some((PortKind::Unknown, up)) if !link_local => Some(rules::unknown_egress(up)),
            Some(_) => rules::fault(frame.bytes(), self.config.frame_bytes_max),
        };
        let kind = (!link_local).then_some(PortKind::Host);
        match refused {
            Some(reason) => self.end(ingress, reason, frame, out),
            None => {
                let probe = axon_wire::probe::is_ether(frame.bytes()).then_some(ETHERNET_BYTES);
                self.leave(now, port, Queued { frame, ingress, kind, probe }, out);
            }
        }
    }

    /// Sends a frame on the wire of a port, or queues it.
    fn leave(&mut self, now: Time, port: PortNo, queued: Queued, out: &mut Vec<Action>) {
        let Some(state) = self.ports.get_mut(port.index()) else {
            return self.end(queued.ingress, Drop::NoSuchPort, queued.frame, out);
        };
        if !state.up {
            return self.end(queued.ingress, Drop::PortDown, queued.frame, out);
        }
        let queue = &mut state.queues[queue_of(&queued, self.config.hop_width)];
        let bytes = bytes_of(queue) + queued.frame.bytes().len() as u64;
        if state.busy && bytes > self.config.queue_bytes_max.0 {
            return self.end(queued.ingress, Drop::QueueFull, queued.frame, out);
        }
        queue.push_back(queued);
        self.send_next(now, port, out);
    }

    /// Sends the first frame that suits the port, if the wire of `port` is free.
    fn send_next(&mut self, now: Time, port: PortNo, out: &mut Vec<Action>) {
        while let Some(state) = self.ports.get_mut(port.index()).filter(|state| !state.busy)
            && let Some(Queued { mut frame, ingress, kind, probe }) =
                state.queues.iter_mut().find_map(VecDeque::pop_front)
        {
            if kind.is_some_and(|kind| kind != state.kind) {
                self.end(ingress, Drop::KindChanged, frame, out);
                continue;
            }
            state.busy = true;
            if let Some(head) = probe {
                self.stamp(now, (&mut frame, head), (ProbeUnit::Egress, port));
            }
            self.counters.sent(port, frame.bytes().len());
            out.push(Action::Transmit { port, frame, complete_at: now, intact: true });
        }
    }

    /// Sets the carrier of `port`. Without carrier its queued frames are dropped, and frames that
    /// were still arriving are broken.
    fn link(&mut self, port: PortNo, up: bool, out: &mut Vec<Action>) {
        let Some(state) = self.ports.get_mut(port.index()) else {
            return;
        };
        state.up = up;
        if up {
            return;
        }
        (state.busy, state.header_bytes) = (false, 0);
        let queues = core::mem::take(&mut state.queues);
        for Queued { frame, ingress, .. } in queues.into_iter().flatten() {
            self.end(ingress, Drop::PortDown, frame, out);
        }
        self.arrivals.break_off(port);
    }

    /// Appends the record of a probe unit to a probe, and counts it if there is no room.
    fn stamp(
        &mut self,
        now: Time,
        probe: (&mut FrameBuf, usize),
        (unit, port): (ProbeUnit, PortNo),
    ) {
        let queued = Bytes(self.port(port).map_or(0, Port::queued_bytes));
        if !probes::stamp(&self.config, probe, (unit, port), (now, queued)) {
            self.counters.count(port, PortEvent::Unstamped);
        }
    }

    /// Sends PAUSE to the hosts of `port` for the time of one frame of maximum length, if it is a
    /// host port.
    fn pause(&mut self, now: Time, port: PortNo, out: &mut Vec<Action>) {
        if self.port(port).is_some_and(|state| state.kind == PortKind::Host) {
            let bytes = self.config.frame_bytes_max + WIRE_OVERHEAD_BYTES;
            let quanta = u16::try_from(bytes.div_ceil(QUANTUM_BYTES)).unwrap_or(u16::MAX);
            let frame = MacControl::Pause(Quanta(quanta)).emit(self.config.mac);
            self.counters.count(port, PortEvent::Pause);
            self.send_ethernet(now, port, FrameBuf::with_headroom(0, &frame), out);
        }
    }

    /// Pauses hosts whose frames have grown by a frame of maximum length (thesis 000 §3.3.3).
    fn count_header(&mut self, now: Time, port: PortNo, bytes: usize, out: &mut Vec<Action>) {
        let frame_bytes_max = self.config.frame_bytes_max;
        let state = &mut self.ports[port.index()];
        state.header_bytes += bytes;
        if state.header_bytes >= frame_bytes_max {
            state.header_bytes -= frame_bytes_max;
            self.pause(now, port, out);
        }
    }

    /// Punts a packet to the control plane; packets of other nodes are rate-limited by port.
    fn punt_metered(
        &mut self,
        now: Time,
        ingress: PortNo,
        punt: Punt,
        frame: FrameBuf,
        out: &mut Vec<Action>,
    ) {
        let port = self.ports.get_mut(ingress.index());
        let admitted = port.is_none_or(|port| match punt {
            Punt::Addressed => port.addressed.admit(now),
            _ => port.errors.admit(now),
        });
        if !admitted {
            return self.end(ingress, Drop::PuntLimit, frame, out);
        }
        let header_bytes = rules::header_bytes(frame.bytes(), self.config.hop_width);
        self.punt(ingress, (punt, header_bytes), frame, out);
    }

    /// Punts a frame to the control plane, with the length of its header in bytes: 16 bits there.
    fn punt(
        &mut self,
        ingress: PortNo,
        why: (Punt, usize),
        frame: FrameBuf,
        out: &mut Vec<Action>,
    ) {
        let (punt, header_bytes) = (why.0, why.1 as u16);
        self.counters.count(ingress, PortEvent::Punt(punt));
        out.push(Action::Punt { ingress, frame, punt, header_bytes });
    }

    fn end(&mut self, ingress: PortNo, reason: Drop, frame: FrameBuf, out: &mut Vec<Action>) {
        self.counters.count(ingress, PortEvent::Drop(reason));
        out.push(Action::Dropped { ingress, reason, frame });
    }
}

impl Node for Reference {
    fn handle(&mut self, now: Time, input: Input, out: &mut Vec<Action>) {
        self.release(now, out);
        match input {
            Input::Frame { port, frame, complete_at, intact } => {
                self.arrive(
                    now,
                    complete_at,
                    Arriving { frame, ingress: port, came: now, intact },
                    out,
                );
            }
            Input::TxDone { port } => {
                if let Some(state) = self.ports.get_mut(port.index()) {
                    state.busy = false;
                    self.send_next(now, port, out);
                }
            }
            Input::Link { port, up } => self.link(port, up, out),
            Input::Timeout => {}
            Input::Command(command) => {
                out.push(Action::Reply(command.unsupported_by(NodeKind::Switch)));
            }
        }
    }

    fn deadline(&self) -> Option<Time> {
        self.arrivals.deadline()
    }
}
