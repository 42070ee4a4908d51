//! Frames of the control plane, and their first step.

use super::RtlDataplane;
use axon_node::{Action, Drop, PortEvent, PortKind};
use axon_plane::routes::header_of;
use axon_plane::{HeaderKind, Step, ethernet, forward, pause};
use axon_wire::header::{self, HeaderFields, PacketType};
use axon_wire::mac_control::MacControl;
use axon_wire::priority::Priority;
use axon_wire::{FrameBuf, Hops, PortNo, Route};

impl RtlDataplane {
    /// Sends an Axon packet of the control plane.
    pub(super) fn inject_packet(
        &mut self,
        kind: PacketType,
        hops: &Hops,
        payload: &[u8],
        out: &mut Vec<Action>,
    ) {
        let width = self.config.hop_width;
        let length = width.header_bytes(hops.len());
        let mut frame = FrameBuf::with_headroom(length, payload);
        let built = frame.push_front(length).is_ok()
            && header::emit(frame.bytes_mut(), width, kind, hops, &[]).is_ok();
        self.counters.received(PortNo::CONTROL, frame.length());
        if !built {
            return self.end(PortNo::CONTROL, Drop::NoHeadroom, frame, out);
        }
        if self.config.control_priority != Priority::ZERO {
            header::set_priority(frame.bytes_mut(), width, self.config.control_priority);
        }
        self.step(frame, out);
    }

    /// Forwards a punted frame by a route of the control plane.
    pub(super) fn forward_punted(
        &mut self,
        route: &Route,
        mut frame: FrameBuf,
        out: &mut Vec<Action>,
    ) {
        frame.make_whole();
        let header = header_of(route, self.config.hop_width).ok();
        let Some(header) = header.filter(|header| frame.push_front(header.len()).is_ok()) else {
            return self.end(PortNo::CONTROL, Drop::NoHeadroom, frame, out);
        };
        frame.bytes_mut()[..header.len()].copy_from_slice(&header);
        self.step(frame, out);
    }

    /// Sends an Ethernet frame of the control plane out of `port`.
    pub(super) fn send_frame(&mut self, port: PortNo, mut frame: FrameBuf, out: &mut Vec<Action>) {
        frame.make_whole();
        self.counters.received(PortNo::CONTROL, frame.length());
        let kind = HeaderKind::of_ethernet(frame.bytes());
        let is_link_local = matches!(kind, HeaderKind::LinkLocal | HeaderKind::MacControl);
        let refused = match self.kind_of(port) {
            None => Some(Drop::NoSuchPort),
            Some(PortKind::Axon) if !is_link_local => Some(Drop::KindChanged),
            Some(PortKind::Unknown) if !is_link_local => Some(self.unknown_egress(port)),
            Some(_) => ethernet::fault(frame.bytes(), self.config.frame_bytes_max),
        };
        match refused {
            Some(reason) => self.end(PortNo::CONTROL, reason, frame, out),
            None => self.queue_for(port, frame, out),
        }
    }

    /// Pauses the hosts of `port` for the time of a frame of maximum length.
    pub(super) fn send_pause(&mut self, port: PortNo, out: &mut Vec<Action>) {
        if self.kind_of(port) == Some(PortKind::Host) {
            let quanta = pause::quanta_for(self.config.frame_bytes_max);
            let frame = MacControl::Pause(quanta).emit(self.config.mac);
            self.counters.count(port, PortEvent::Pause);
            self.send_frame(port, FrameBuf::with_headroom(0, &frame), out);
        }
    }

    /// Takes the first hop of a packet of the control plane.
    fn step(&mut self, mut frame: FrameBuf, out: &mut Vec<Action>) {
        let (width, ingress) = (self.config.hop_width, PortNo::CONTROL);
        let hop = HeaderFields::parse(frame.bytes(), width).ok();
        let hop = hop.and_then(|fields| fields.next_hop(frame.bytes(), width));
        let reason = match forward(frame.bytes_mut(), width, ingress, |port| self.kind_of(port)) {
            Step::Egress(port) => return self.queue_for(port, frame, out),
            Step::Strip { port, header_bytes } => {
                frame.pop_front(header_bytes);
                match ethernet::fault(frame.bytes(), self.config.frame_bytes_max) {
                    None => return self.queue_for(port, frame, out),
                    Some(reason) => reason,
                }
            }
            Step::Punt(punt) => {
                let fields = HeaderFields::parse(frame.bytes(), width);
                let header_bytes = fields.map_or(0, |fields| fields.header_bytes) as u16;
                self.counters.count(ingress, PortEvent::Punt(punt));
                return out.push(Action::Punt { ingress, frame, punt, header_bytes });
            }
            Step::Drop(Drop::EgressUnknown) => {
                hop.map_or(Drop::EgressUnknown, |port| self.unknown_egress(port))
            }
            Step::Drop(reason) => reason,
        };
        self.end(ingress, reason, frame, out);
    }

    /// Queues a frame for the gates.
    fn queue_for(&mut self, port: PortNo, frame: FrameBuf, out: &mut Vec<Action>) {
        let reason = match self.wires.get(port.index()) {
            None => Drop::NoSuchPort,
            Some(wire) if !wire.is_up() => Drop::PortDown,
            Some(_) => {
                let (frames, bytes) = self.outgoing.queued(port);
                let bytes = bytes + frame.length() as u64;
                if frames == 0 || bytes <= self.config.queue_bytes_max.0 {
                    return self.outgoing.push(port, frame);
                }
                Drop::QueueFull
            }
        };
        self.end(PortNo::CONTROL, reason, frame, out);
    }

    /// Returns the drop reason of a frame to `port`, whose kind is not known.
    fn unknown_egress(&self, port: PortNo) -> Drop {
        let is_up = self.wires.get(port.index()).is_some_and(|wire| wire.is_up());
        if is_up { Drop::EgressUnknown } else { Drop::PortDown }
    }
}
