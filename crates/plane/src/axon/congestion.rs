//! Congestion signalling to a packet's source when an output queue is full or too long; host ports
//! are the edge of the congestion notification domain.
//!
//! A packet that is to be queued for `egress` may not have taken its hop yet; then its ingress is
//! `before`.

use super::routes;
use crate::config::PlaneConfig;
use crate::congestion::cnm::{self, Sample};
use crate::congestion::ecn::Verdict;
use crate::congestion::message as congestion;
use crate::congestion::qcn::Feedback;
use crate::ports::{FrameMeta, HeaderKind, Ports};
use axon_node::{Drop, PortEvent};
use axon_wire::header::{HeaderFields, PacketType};
use axon_wire::priority::Priority;
use axon_wire::{Bytes, FrameBuf, HopWidth, PortNo, Time, cn, vlan};

/// Returns the message to the edge that a packet came from, if its output has no room for it.
pub(super) fn refusal(
    ports: &Ports,
    config: &PlaneConfig,
    meta: &mut FrameMeta,
    (egress, before): (PortNo, Option<PortNo>),
) -> Option<FrameBuf> {
    let header_bytes = before.map_or(0, |_| usize::from(meta.header_bytes));
    let bytes = meta.frame.length() - header_bytes;
    let is_full = ports.queues().is_full(egress, meta.ingress, bytes);
    if !is_full || !ports.wires().is_busy(egress) {
        return None;
    }
    let queued = ports.queues().bytes(egress);
    let full = congestion::Full { egress, queued, switch: config.mac };
    meta.frame.make_whole();
    congestion::message(meta.frame.bytes(), config.hop_width, before, &full)
}

/// Passes a host's frame that will be queued to the marker and the congestion point of its queue;
/// other senders would not react. Returns the CNM to send, and the reason if the frame is to be
/// dropped.
pub(super) fn watch(
    ports: &mut Ports,
    config: &PlaneConfig,
    now: Time,
    meta: &mut FrameMeta,
    (egress, before): (PortNo, Option<PortNo>),
) -> Option<(Option<FrameBuf>, Option<Drop>)> {
    if meta.kind != HeaderKind::Axon(PacketType::Ethernet) {
        return None;
    }
    let header_bytes = usize::from(meta.header_bytes);
    let priority = priority_within(meta, config.hop_width);
    let length = meta.frame.length();
    let packet = meta.frame.bytes_mut();
    let taken_off = if before.is_some() { header_bytes } else { 0 };
    let bytes = Bytes((length - taken_off) as u64);
    let shown = (&mut packet[header_bytes..], bytes);
    let class = ports.dcb()?.class_of(egress, priority)?;
    let queue = (class, Bytes(ports.queues().of((egress, class)).bytes()));
    let outcome = ports.dcb_mut()?.observe(now, (egress, priority), queue, shown);
    if outcome.verdict == Verdict::Marked {
        ports.count(egress, PortEvent::EcnMarked);
    }
    let cnm = outcome
        .feedback
        .and_then(|feedback| cnm_for(ports, config, meta, (egress, priority, before), feedback));
    Some((cnm, (outcome.verdict == Verdict::Drop).then_some(Drop::Ecn)))
}

/// Returns the CNM to the host that a sampled packet came from, counted, if the host acts on CNMs.
#[cold]
fn cnm_for(
    ports: &mut Ports,
    config: &PlaneConfig,
    meta: &mut FrameMeta,
    (egress, priority, before): (PortNo, Priority, Option<PortNo>),
    feedback: Feedback,
) -> Option<FrameBuf> {
    let dcb = config.dcb.as_ref()?;
    let cn = dcb.cn.as_ref()?;
    let class_of = ports.dcb().and_then(|dcb| dcb.class_of(egress, priority));
    let sample = Sample {
        feedback,
        priority,
        switch: config.mac,
        egress,
        class: class_of.unwrap_or(dcb.prio_tc[priority.index()]),
        point: &cn.points[egress.index()],
        cnm_priority: cn.cnm_priority,
    };
    meta.frame.make_whole();
    let cnm = cnm::message(meta.frame.bytes(), config.hop_width, before, &sample)?;
    ports.count(egress, PortEvent::Cnm);
    Some(cnm)
}

/// Returns the sample base of the congestion point that a frame to the hosts of `port` is limited
/// by; `None` if it is not a CNM.
#[inline]
pub(super) fn cnm_base(config: &PlaneConfig, frame: &[u8], port: PortNo) -> Option<u64> {
    let cn = config.dcb.as_ref()?.cn.as_ref().filter(|_| cn::is_cnm(frame))?;
    Some(cn.points.get(port.index()).map_or(0, |point| point.sample_base.0))
}

/// Removes the header of a packet to the hosts of `port`. The descriptor keeps the priority, since
/// the tag of the frame may differ; hosts outside the domain get no CN-TAG.
#[inline]
pub(super) fn strip(ports: &Ports, width: HopWidth, meta: &mut FrameMeta, port: PortNo) {
    meta.priority = priority_within(meta, width);
    meta.kind = HeaderKind::Ethernet;
    meta.frame.pop_front(core::mem::take(&mut meta.header_bytes).into());
    let edge = ports.dcb().and_then(|dcb| dcb.edge(port));
    if edge.is_some_and(|edge| edge.strips_tag(meta.priority)) {
        cn::untag(&mut meta.frame);
    }
}

/// Sets the priority of a frame of the hosts at `ingress` behind its new route to that of the
/// route's layer, header fields included.
#[inline]
pub(super) fn set_host_priority(
    ports: &mut Ports,
    config: &PlaneConfig,
    ingress: PortNo,
    frame: &mut FrameBuf,
    header: HeaderFields,
) -> HeaderFields {
    let Some(dcb) = &config.dcb else { return header };
    let bytes = frame.bytes_mut();
    let layer = routes::layer_of(&header);
    let Some(edge) = ports.dcb().and_then(|dcb| dcb.edge(ingress)) else { return header };
    let (priority, events) = edge.defend(&mut bytes[header.header_bytes..]);
    events.into_iter().flatten().for_each(|event| ports.count(ingress, event));
    header.with_priority(bytes, config.hop_width, dcb.layers.on(priority, layer))
}

/// Returns the priority of an Axon packet with a frame in it. A header with hops of four bits has
/// no priority field; then the priority is that of the frame.
#[inline]
fn priority_within(meta: &FrameMeta, width: HopWidth) -> Priority {
    match width {
        HopWidth::Four => vlan::priority_of(&meta.frame.bytes()[meta.header_bytes.into()..]),
        HopWidth::Eight | HopWidth::Sixteen => meta.priority,
    }
}
