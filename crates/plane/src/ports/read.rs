//! Accessors of ports, and counters of events elsewhere.

use super::core::{Port, Ports};
use crate::ports::buffers::Egress;
use axon_node::PortKind;
use axon_node::counters::Counters;
use axon_node::{Drop, PortEvent};
use axon_wire::priority::{Priority, TrafficClass};
use axon_wire::{Bytes, PortNo};

impl Ports {
    /// Returns the kind of `port`; `None` if there is no such port.
    #[inline]
    pub fn kind(&self, port: PortNo) -> Option<PortKind> {
        self.tx.get(port.index()).map(|tx| tx.kind)
    }

    /// Returns whether `port` exists and has carrier.
    pub fn is_up(&self, port: PortNo) -> bool {
        self.tx.get(port.index()).is_some_and(|tx| tx.up)
    }

    /// Returns whether a frame waits for the wire of `port`.
    pub fn waits_for(&self, port: PortNo) -> bool {
        self.tx.get(port.index()).is_some_and(|tx| tx.waiting)
    }

    /// Returns the bytes queued for the wire of `port`.
    pub fn queued_bytes(&self, port: PortNo) -> Bytes {
        let waiting = |state: &Port| state.classes.iter().map(Egress::bytes).sum();
        Bytes(self.ports.get(port.index()).map_or(0, waiting))
    }

    /// Returns the frames queued for the wire of `port`, refused ones kept by inputs included.
    pub fn queued_frames(&self, port: PortNo) -> u64 {
        let waiting =
            |state: &Port| state.classes.iter().map(|class| class.frames() + class.kept()).sum();
        self.ports.get(port.index()).map_or(0, waiting)
    }

    /// Iterates over the bytes queued for the wire of `port`, by class and ingress port.
    pub fn waiting(&self, port: PortNo) -> impl Iterator<Item = (TrafficClass, PortNo, Bytes)> {
        let classes = self.ports.get(port.index()).map_or(&[][..], |state| &state.classes);
        let numbered = TrafficClass::ALL.into_iter().zip(classes);
        numbered.flat_map(|(class, egress)| {
            egress.by_ingress().map(move |(ingress, bytes)| (class, ingress, bytes))
        })
    }

    /// Returns the classes in which frames from `ingress` that use the memory of `priority` are
    /// queued for the wire of `port`.
    pub fn waiting_of(
        &self,
        port: PortNo,
        (ingress, priority): (PortNo, Priority),
    ) -> impl Iterator<Item = TrafficClass> {
        let classes = self.ports.get(port.index()).map_or(&[][..], |state| &state.classes);
        let numbered = TrafficClass::ALL.into_iter().zip(classes);
        numbered.filter_map(move |(class, egress)| egress.holds(ingress, priority).then_some(class))
    }

    /// Returns the bytes of refused frames that the input `port` keeps.
    pub fn nacked_bytes(&self, port: PortNo) -> Bytes {
        Bytes(self.ports.get(port.index()).map_or(0, |state| state.nacked_bytes))
    }

    /// Returns the number of punted frames whose last byte has not arrived.
    pub fn held_frames(&self) -> u64 {
        self.hold.len() as u64
    }

    /// Returns the counters.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Counts a frame that the control plane dropped after a punt, so that all drops of a switch
    /// are counted in one place.
    pub fn count_drop(&mut self, ingress: PortNo, reason: Drop) {
        self.counters.count(ingress, PortEvent::Drop(reason));
    }

    /// Counts a copy that the control plane has made of a punted frame.
    pub fn count_copy(&mut self, ingress: PortNo) {
        self.counters.count(ingress, PortEvent::Copy);
    }

    /// Counts a congestion message that a frame from `ingress` has caused.
    pub(crate) fn count_congestion(&mut self, ingress: PortNo) {
        self.counters.count(ingress, PortEvent::CongestionMessage);
    }

    /// Counts a CNM generated for a frame to be queued for `egress`.
    pub(crate) fn count_cnm(&mut self, egress: PortNo) {
        self.counters.count(egress, PortEvent::Cnm);
    }

    /// Counts a PAUSE frame made for the hosts of `port`.
    pub(crate) fn count_pause(&mut self, port: PortNo) {
        self.counters.count(port, PortEvent::Pause);
    }
}
