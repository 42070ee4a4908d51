//! Copies of a frame, for a program that floods.

use super::core::Ports;
use super::frame_meta::FrameMeta;
use alloc::vec::Vec;
use axon_node::{Action, Drop, PortEvent, PortKind};
use axon_wire::{FrameBuf, PortNo, Time};

/// Returns a copy of a frame, counted at its ingress.
pub fn copy(ports: &mut Ports, meta: &FrameMeta) -> FrameMeta {
    debug_assert_eq!(meta.frame.length(), meta.frame.bytes().len(), "a light frame is copied");
    ports.count(meta.ingress, PortEvent::Copy);
    FrameMeta { frame: FrameBuf::with_headroom(FrameBuf::HEADROOM, meta.frame.bytes()), ..*meta }
}

/// Delivers a frame to all ports of `to`: copies, and last the frame itself. Without any port it is
/// dropped as [`Drop::Filtered`].
pub fn flood(
    ports: &mut Ports,
    now: Time,
    meta: FrameMeta,
    to: (&[PortNo], Option<PortKind>),
    out: &mut Vec<Action>,
) {
    let (to, kind) = to;
    let Some((&last, others)) = to.split_last() else {
        return ports.discard(meta, Drop::Filtered, out);
    };
    for &port in others {
        let copy = copy(ports, &meta);
        ports.deliver(now, copy, port, kind, out);
    }
    ports.deliver(now, meta, last, kind, out);
}
