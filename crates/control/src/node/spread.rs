//! Frames to groups are copied: see `edge/senders.rs`.

use super::chassis::Chassis;
use super::switch::SwitchNode;
use crate::edge::Fate;
use alloc::vec::Vec;
use axon_node::{Action, Dataplane};
use axon_wire::{Frame, FrameBuf, MacAddr, PortNo, Time};

impl<B: Frame, D: Dataplane<B>> SwitchNode<B, D> {
    /// Makes the copies of a frame, each to its fate.
    pub(super) fn copies(
        &mut self,
        now: Time,
        port: PortNo,
        (fates, frame): (Vec<Fate>, &B),
        out: &mut Vec<Action<B>>,
    ) {
        for fate in fates {
            let copy = B::with_headroom(FrameBuf::HEADROOM, frame.bytes());
            self.fate(now, port, copy, Ok(fate), out);
        }
    }

    /// Frames that waited for a list of their group are copied.
    pub(super) fn spread(
        &mut self,
        now: Time,
        (port, group): (PortNo, MacAddr),
        out: &mut Vec<Action<B>>,
    ) {
        for frame in self.waiting.take(port, group) {
            let Chassis { plane, effects, .. } = &mut self.chassis;
            let fate = self.edge.waited_for_list((now, port), frame.bytes(), plane, effects);
            self.fate(now, port, frame, fate, out);
        }
    }
}
