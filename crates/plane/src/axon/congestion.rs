//! Congestion signalling to a packet's source when an output queue is full or too long; host ports
//! are the edge of the congestion notification domain.

use super::lookups::Lookups;
use super::plane::Plane;
use crate::config::OnFull;
use crate::congestion::cnm::{self, Sample};
use crate::congestion::ecn::Verdict;
use crate::congestion::message as congestion;
use crate::congestion::qcn::Feedback;
use crate::ports::{FrameMeta, HeaderKind};
use alloc::vec::Vec;
use axon_node::{Action, Drop, PortEvent};
use axon_wire::header::PacketType;
use axon_wire::priority::Priority;
use axon_wire::{Bytes, HopWidth, PortNo, Time, cn, vlan};

impl<T: Lookups> Plane<T> {
    /// Signals congestion of `egress` before a packet is queued there: a full output or a growing
    /// queue. `before` is the ingress of a packet that has not taken its hop. Returns the drop
    /// reason if the packet is to be dropped.
    #[inline]
    pub(super) fn signal_congestion(
        &mut self,
        now: Time,
        meta: &mut FrameMeta,
        (egress, before): (PortNo, Option<PortNo>),
        out: &mut Vec<Action>,
    ) -> Option<Drop> {
        if self.config.on_full == OnFull::CongestionMessage {
            self.answer_refusal(now, meta, (egress, before), out);
        }
        if self.ports.wires().is_watched(egress) {
            return self.watch(now, meta, (egress, before), out);
        }
        None
    }

    /// Sends a congestion message to the edge that a packet came from, if the output has no room
    /// for it.
    pub(super) fn answer_refusal(
        &mut self,
        now: Time,
        meta: &mut FrameMeta,
        (egress, before): (PortNo, Option<PortNo>),
        out: &mut Vec<Action>,
    ) {
        let header_bytes = before.map_or(0, |_| usize::from(meta.header_bytes));
        let bytes = meta.frame.length() - header_bytes;
        let is_full = self.ports.queues().is_full(egress, meta.ingress, bytes);
        if !is_full || !self.ports.wires().is_busy(egress) {
            return;
        }
        let full = congestion::Full {
            egress,
            queued: self.ports.queues().bytes(egress),
            switch: self.config.mac,
        };
        let width = self.config.hop_width;
        meta.frame.make_whole();
        let Some(message) = congestion::message(meta.frame.bytes(), width, before, &full) else {
            return;
        };
        let guard = self.guards.get_mut(meta.ingress.index());
        if guard.is_some_and(|guard| self.paces.congestion.admit(&mut guard.congestion, now)) {
            self.ports.count(meta.ingress, PortEvent::CongestionMessage);
            self.inject_packet(now, message, out);
        }
    }

    /// Passes a host's frame that will be queued to the marker and the congestion point of its
    /// queue. Other senders would not react.
    pub(super) fn watch(
        &mut self,
        now: Time,
        meta: &mut FrameMeta,
        (egress, before): (PortNo, Option<PortNo>),
        out: &mut Vec<Action>,
    ) -> Option<Drop> {
        if meta.kind != HeaderKind::Axon(PacketType::Ethernet) {
            return None;
        }
        let (header_bytes, priority) = (usize::from(meta.header_bytes), self.priority_within(meta));
        let length = meta.frame.length();
        let packet = meta.frame.bytes_mut();
        let taken_off = if before.is_some() { header_bytes } else { 0 };
        let bytes = Bytes((length - taken_off) as u64);
        let shown = (&mut packet[header_bytes..], bytes);
        let class = self.ports.dcb()?.class_of(egress, priority)?;
        let queue = (class, Bytes(self.ports.queues().of((egress, class)).bytes()));
        let outcome = self.ports.dcb_mut()?.observe(now, (egress, priority), queue, shown);
        if outcome.verdict == Verdict::Marked {
            self.ports.count(egress, PortEvent::EcnMarked);
        }
        if let Some(feedback) = outcome.feedback {
            self.send_cnm(now, meta, (egress, priority, before), feedback, out);
        }
        (outcome.verdict == Verdict::Drop).then_some(Drop::Ecn)
    }

    /// Sends a CNM to the host that a sampled packet came from, if the host acts on CNMs.
    #[cold]
    pub(super) fn send_cnm(
        &mut self,
        now: Time,
        meta: &mut FrameMeta,
        (egress, priority, before): (PortNo, Priority, Option<PortNo>),
        feedback: Feedback,
        out: &mut Vec<Action>,
    ) {
        let dcb = self.config.dcb.as_ref();
        let Some((dcb, config)) = dcb.and_then(|dcb| Some((dcb, dcb.cn.as_ref()?))) else { return };
        let class_of = self.ports.dcb().and_then(|dcb| dcb.class_of(egress, priority));
        let sample = Sample {
            feedback,
            priority,
            switch: self.config.mac,
            egress,
            class: class_of.unwrap_or(dcb.prio_tc[priority.index()]),
            point: &config.points[egress.index()],
            cnm_priority: config.cnm_priority,
        };
        meta.frame.make_whole();
        let (packet, width) = (meta.frame.bytes(), self.config.hop_width);
        let Some(cnm) = cnm::message(packet, width, before, &sample) else { return };
        self.ports.count(egress, PortEvent::Cnm);
        self.inject_packet(now, cnm, out);
    }

    /// Returns whether a frame to the hosts of `port` is a CNM beyond the limit of `CnmMeter`.
    #[inline]
    pub(super) fn exceeds_cnms(&mut self, meta: &FrameMeta, port: PortNo) -> bool {
        let cn = self.config.dcb.as_ref().and_then(|dcb| dcb.cn.as_ref());
        let Some(cn) = cn.filter(|_| cn::is_cnm(meta.frame.bytes())) else { return false };
        let sent = self.ports.counters().port(port).rx_bytes;
        let base = cn.points.get(port.index()).map_or(0, |point| point.sample_base.0);
        let guard = self.guards.get_mut(port.index());
        guard.is_some_and(|guard| !guard.cnms.admit(sent, base))
    }

    /// Removes the header of a packet to the hosts of `port`. The descriptor keeps the priority,
    /// since the tag of the frame may differ; hosts outside the domain get no CN-TAG.
    #[inline]
    pub(super) fn strip(&mut self, meta: &mut FrameMeta, port: PortNo) {
        meta.priority = self.priority_within(meta);
        meta.kind = HeaderKind::Ethernet;
        meta.frame.pop_front(core::mem::take(&mut meta.header_bytes).into());
        let edge = self.ports.dcb().and_then(|dcb| dcb.edge(port));
        if edge.is_some_and(|edge| edge.strips_tag(meta.priority)) {
            cn::untag(&mut meta.frame);
        }
    }

    /// Returns the priority of an Axon packet with a frame in it. A header with hops of four bits
    /// has no priority field; then the priority is that of the frame.
    fn priority_within(&self, meta: &FrameMeta) -> Priority {
        match self.config.hop_width {
            HopWidth::Four => vlan::priority_of(&meta.frame.bytes()[meta.header_bytes.into()..]),
            HopWidth::Eight | HopWidth::Sixteen => meta.priority,
        }
    }
}
