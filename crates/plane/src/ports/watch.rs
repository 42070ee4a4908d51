//! Watched queues of ports, and host ports as the edge of the congestion notification domain; see
//! `congestion/notification.rs`.

use super::core::Ports;
use crate::congestion::ecn::Verdict;
use crate::congestion::notification::CongestionSignal;
use crate::congestion::qcn::{InputPriority, Treatment};
use axon_node::PortEvent;
use axon_wire::Time;
use axon_wire::priority::{PRIORITIES, Priority};
use axon_wire::{Bytes, PortNo, vlan};

impl Ports {
    /// Returns whether a frame to `port` must be [observed](Self::observe): it will be queued, and
    /// some queue there is watched.
    #[inline]
    pub(crate) fn is_watched(&self, port: PortNo) -> bool {
        let watched = |tx: &super::core::TxState| tx.watched && (tx.busy || tx.held) && tx.up;
        self.tx.get(port.index()).is_some_and(watched)
    }

    /// Passes a host's `frame` that will be queued for `port` to the marker and congestion point of
    /// its queue, where it takes `bytes` bytes.
    pub(crate) fn observe(
        &mut self,
        now: Time,
        (port, priority): (PortNo, Priority),
        (frame, bytes): (&mut [u8], Bytes),
    ) -> Option<CongestionSignal> {
        let dcb = self.dcb.as_mut()?;
        let class = dcb.ports.get(port.index())?.class_of(priority);
        let sampled = dcb.config.cn.as_ref().is_some_and(|cn| cn.cnpvs.contains(priority));
        let queue = Bytes(self.ports.get(port.index())?.classes[class.index()].bytes());
        let watch = &mut dcb.ports.get_mut(port.index())?.watch;
        let outcome = watch.arrives(now, (class, queue), (frame, bytes), sampled);
        if outcome.verdict == Verdict::Marked {
            self.counters.count(port, PortEvent::EcnMarked);
        }
        Some(outcome)
    }

    /// Returns the number of frames that the congestion points of `port` have sampled.
    pub(crate) fn congestion_samples(&self, port: PortNo) -> u64 {
        let state = self.dcb.as_ref().and_then(|dcb| dcb.ports.get(port.index()));
        state.map_or(0, |state| state.watch.samples())
    }

    /// Sets the treatment of frames of the hosts of `port` at the edge of the domain, by priority:
    /// that of [`Defences`](crate::congestion::qcn::Defences) after a change by LLDP. Has no effect
    /// without DCB or without such a port.
    pub fn set_treatments(&mut self, port: PortNo, treatments: [Treatment; PRIORITIES]) {
        let state = self.dcb.as_mut().and_then(|dcb| dcb.ports.get_mut(port.index()));
        if let Some(state) = state {
            state.treatments = treatments;
        }
    }

    /// Sets the priority regeneration table of `port` (IEEE 802.1Q clause 6.9.4), for frames of its
    /// hosts. Has no effect without DCB or without such a port.
    pub fn set_regeneration(&mut self, port: PortNo, table: [Priority; PRIORITIES]) {
        let state = self.dcb.as_mut().and_then(|dcb| dcb.ports.get_mut(port.index()));
        if let Some(state) = state {
            state.regeneration = table;
        }
    }

    /// Returns the regenerated priority of a frame of the hosts at `port`.
    #[inline]
    fn regenerated(&self, port: PortNo, priority: Priority) -> Priority {
        let state = self.dcb.as_ref().and_then(|dcb| dcb.ports.get(port.index()));
        state.map_or(priority, |state| state.regeneration[priority.index()])
    }

    /// Returns the priority of a frame of a host at `port` from here on. If its tag has another
    /// one, the tag is rewritten.
    #[inline]
    pub(crate) fn defend(&mut self, port: PortNo, frame: &mut [u8]) -> Priority {
        let tagged = vlan::priority_of(frame);
        let priority = self.regenerated(port, tagged);
        if priority != tagged {
            vlan::set_priority(frame, priority);
            self.counters.count(port, PortEvent::Regenerated);
        }
        match self.treatment(port, priority).input {
            InputPriority::Moved(to) => {
                vlan::set_priority(frame, to);
                self.counters.count(port, PortEvent::CnMoved);
                to
            }
            InputPriority::Kept | InputPriority::Regenerated => priority,
        }
    }

    /// Returns whether frames of `priority` to the hosts of `port` lose their CN-TAGs.
    #[inline]
    pub(crate) fn strips_tag(&self, port: PortNo, priority: Priority) -> bool {
        self.treatment(port, priority).strip_tag
    }

    #[inline]
    pub(super) fn treatment(&self, port: PortNo, priority: Priority) -> Treatment {
        let state = self.dcb.as_ref().and_then(|dcb| dcb.ports.get(port.index()));
        state.map_or(crate::congestion::notification::UNDEFENDED, |state| {
            state.treatments[priority.index()]
        })
    }
}
