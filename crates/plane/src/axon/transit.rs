//! Step of every Axon packet, with its effects on the ports.

use super::lookups::Lookups;
use super::plane::Plane;
use crate::axon::forward::Step;
use crate::config::OnFull;
use crate::ports::FrameMeta;
use alloc::vec::Vec;
use axon_node::{Action, Drop, PortKind, Punt};
use axon_wire::header::HeaderFields;
use axon_wire::{PortNo, Time};

impl<T: Lookups> Plane<T> {
    /// Takes one hop of an Axon packet that begins with `header`; returns whether it is now on its
    /// way to another Axon.
    #[inline(always)]
    pub(super) fn step(
        &mut self,
        now: Time,
        mut meta: FrameMeta,
        header: &HeaderFields,
        out: &mut Vec<Action>,
    ) -> bool {
        let wires = self.ports.wires();
        let kind_of = |port: PortNo| wires.kind(port);
        let (width, ingress) = (self.config.hop_width, meta.ingress);
        let bytes = meta.frame.bytes_mut();
        match self.tables.forward(bytes, width, header, ingress, kind_of) {
            Step::Egress(port) if self.may_signal_congestion(port) => {
                self.egress_signalled(now, meta.elsewhere(), port, out)
            }
            Step::Egress(port) => {
                self.ports.deliver(now, meta, port, Some(PortKind::Axon), out);
            }
            Step::Strip { port, .. } => {
                self.egress_to_hosts(now, meta.elsewhere(), port, out);
                return false;
            }
            Step::Punt(punt) => {
                self.punt_metered(now, meta.elsewhere(), punt, out);
                return false;
            }
            Step::Drop(reason) => {
                self.step_refused(meta.elsewhere(), reason, out);
                return false;
            }
        }
        true
    }

    /// Handles a packet that cannot take its hop; its bytes are unchanged. The step does not check
    /// carriers: a cut link is detected here, off the fast path.
    #[cold]
    #[inline(never)]
    fn step_refused(&mut self, meta: FrameMeta, reason: Drop, out: &mut Vec<Action>) {
        let reason = match (reason, self.next_hop(meta.frame.bytes())) {
            (Drop::EgressUnknown, Some(port)) => self.unknown_egress(port),
            _ => reason,
        };
        self.ports.discard(meta, reason, out);
    }

    /// Punts a packet to the control plane; packets of other nodes are rate-limited by port.
    #[inline(never)]
    fn punt_metered(&mut self, now: Time, meta: FrameMeta, punt: Punt, out: &mut Vec<Action>) {
        // The control plane itself has no limit.
        if let Some(guard) = self.guards.get_mut(meta.ingress.index()) {
            let (pace, next) = match punt {
                Punt::Addressed => (&self.paces.addressed, &mut guard.addressed),
                _ => (&self.paces.punt, &mut guard.errors),
            };
            if !pace.admit(next, now) {
                return self.ports.discard(meta, Drop::PuntLimit, out);
            }
        }
        self.ports.punt(now, meta, punt, out);
    }

    /// Returns whether congestion may have to be signalled before a packet goes to `port`.
    #[inline]
    fn may_signal_congestion(&self, port: PortNo) -> bool {
        self.config.on_full == OnFull::CongestionMessage || self.ports.wires().is_watched(port)
    }

    /// Sends a packet to the Axon at `port` after congestion signalling.
    #[cold]
    #[inline(never)]
    fn egress_signalled(
        &mut self,
        now: Time,
        mut meta: FrameMeta,
        port: PortNo,
        out: &mut Vec<Action>,
    ) {
        match self.signal_congestion(now, &mut meta, (port, None), out) {
            Some(reason) => self.ports.discard(meta, reason, out),
            None => self.ports.deliver(now, meta, port, Some(PortKind::Axon), out),
        }
    }

    /// Sends a packet to the hosts of `port`, without its header.
    #[inline(never)]
    fn egress_to_hosts(
        &mut self,
        now: Time,
        mut meta: FrameMeta,
        port: PortNo,
        out: &mut Vec<Action>,
    ) {
        let before = Some(meta.ingress);
        if let Some(reason) = self.signal_congestion(now, &mut meta, (port, before), out) {
            return self.ports.discard(meta, reason, out);
        }
        self.strip(&mut meta, port);
        if self.exceeds_cnms(&meta, port) {
            return self.ports.discard(meta, Drop::CnmLimit, out);
        }
        match self.ethernet_fault(&meta.frame) {
            Some(reason) => self.ports.discard(meta, reason, out),
            None => self.ports.deliver(now, meta, port, Some(PortKind::Host), out),
        }
    }
}
