//! Looking at ports, and counting what ended elsewhere.

use super::core::{Port, Ports};
use crate::ports::buffers::Egress;
use axon_node::PortKind;
use axon_node::counters::Counters;
use axon_node::{Drop, PortEvent};
use axon_wire::priority::{Priority, TrafficClass};
use axon_wire::{Bytes, PortNo};

impl Ports {
    /// What is plugged into `port`; `None` if there is no such port.
    #[inline]
    pub fn kind(&self, port: PortNo) -> Option<PortKind> {
        self.tx.get(port.index()).map(|tx| tx.kind)
    }

    /// Whether `port` exists and has carrier.
    pub fn is_up(&self, port: PortNo) -> bool {
        self.tx.get(port.index()).is_some_and(|tx| tx.up)
    }

    /// Whether a frame waits for the wire of `port`.
    pub fn waits_for(&self, port: PortNo) -> bool {
        self.tx.get(port.index()).is_some_and(|tx| tx.waiting)
    }

    /// Bytes that wait for the wire of `port`.
    pub fn queued_bytes(&self, port: PortNo) -> Bytes {
        let waiting = |state: &Port| state.classes.iter().map(Egress::bytes).sum();
        Bytes(self.ports.get(port.index()).map_or(0, waiting))
    }

    /// Frames that wait for the wire of `port`, refused ones that their input keeps included.
    pub fn queued_frames(&self, port: PortNo) -> u64 {
        let waiting =
            |state: &Port| state.classes.iter().map(|class| class.frames() + class.kept()).sum();
        self.ports.get(port.index()).map_or(0, waiting)
    }

    /// What waits for the wire of `port`: of which class, and by which port it came in.
    pub fn waiting(&self, port: PortNo) -> impl Iterator<Item = (TrafficClass, PortNo, Bytes)> {
        let classes = self.ports.get(port.index()).map_or(&[][..], |state| &state.classes);
        let numbered = TrafficClass::ALL.into_iter().zip(classes);
        numbered.flat_map(|(class, egress)| {
            egress.by_ingress().map(move |(ingress, bytes)| (class, ingress, bytes))
        })
    }

    /// In which classes frames wait for the wire of `port` that came in by `ingress` and use the
    /// memory of `priority`.
    pub fn waiting_of(
        &self,
        port: PortNo,
        (ingress, priority): (PortNo, Priority),
    ) -> impl Iterator<Item = TrafficClass> {
        let classes = self.ports.get(port.index()).map_or(&[][..], |state| &state.classes);
        let numbered = TrafficClass::ALL.into_iter().zip(classes);
        numbered.filter_map(move |(class, egress)| egress.holds(ingress, priority).then_some(class))
    }

    /// Bytes of frames that came in by `port`, that outputs refused, and that it keeps.
    pub fn nacked_bytes(&self, port: PortNo) -> Bytes {
        Bytes(self.ports.get(port.index()).map_or(0, |state| state.nacked_bytes))
    }

    /// Punted frames that wait for their last byte.
    pub fn held_frames(&self) -> u64 {
        self.hold.len() as u64
    }

    /// What has been counted.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Counts a frame that ended in the control plane after a punt, so that every drop of a
    /// switch is in one place.
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

    /// Counts a CNM made of a frame that is to wait for `egress`.
    pub(crate) fn count_cnm(&mut self, egress: PortNo) {
        self.counters.count(egress, PortEvent::Cnm);
    }

    /// Counts a PAUSE frame made for the hosts of `port`.
    pub(crate) fn count_pause(&mut self, port: PortNo) {
        self.counters.count(port, PortEvent::Pause);
    }
}
