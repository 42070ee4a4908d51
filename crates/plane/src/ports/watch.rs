//! Ports whose queues are watched, and host ports as the edge of the congestion notification
//! domain; see `congestion/notification.rs`.

use super::core::Ports;
use crate::congestion::ecn::Verdict;
use crate::congestion::notification::CongestionSignal;
use crate::congestion::qcn::{InputPriority, Treatment};
use axon_node::PortEvent;
use axon_wire::Time;
use axon_wire::priority::{PRIORITIES, Priority};
use axon_wire::{Bytes, PortNo, vlan};

impl Ports {
    /// Whether a frame that goes to `port` now is to be [shown](Self::observe): it will wait, and
    /// some queue there is watched.
    #[inline]
    pub(crate) fn is_watched(&self, port: PortNo) -> bool {
        let watched = |tx: &super::core::TxState| tx.watched && (tx.busy || tx.held) && tx.up;
        self.tx.get(port.index()).is_some_and(watched)
    }

    /// A host's `frame` that will wait for `port` is shown to what watches its queue, where it
    /// takes `bytes` bytes.
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

    /// How many frames the congestion points of `port` have sampled.
    pub(crate) fn congestion_samples(&self, port: PortNo) -> u64 {
        let state = self.dcb.as_ref().and_then(|dcb| dcb.ports.get(port.index()));
        state.map_or(0, |state| state.watch.samples())
    }

    /// Changes how the domain is defended against the hosts of `port`, by priority: the treatments
    /// of [`Defences`](crate::congestion::qcn::Defences) when LLDP has changed them. Nothing
    /// happens without DCB or without such a port.
    pub fn set_treatments(&mut self, port: PortNo, treatments: [Treatment; PRIORITIES]) {
        let state = self.dcb.as_mut().and_then(|dcb| dcb.ports.get_mut(port.index()));
        if let Some(state) = state {
            state.treatments = treatments;
        }
    }

    /// Sets the priority regeneration table of `port` (IEEE 802.1Q clause 6.9.4), for frames of
    /// its hosts. Nothing happens without DCB or without such a port.
    pub fn set_regeneration(&mut self, port: PortNo, table: [Priority; PRIORITIES]) {
        let state = self.dcb.as_mut().and_then(|dcb| dcb.ports.get_mut(port.index()));
        if let Some(state) = state {
            state.regeneration = table;
        }
    }

    /// The priority that hosts at `port` may use for a frame of this one.
    #[inline]
    fn regenerated(&self, port: PortNo, priority: Priority) -> Priority {
        let state = self.dcb.as_ref().and_then(|dcb| dcb.ports.get(port.index()));
        state.map_or(priority, |state| state.regeneration[priority.index()])
    }

    /// The priority that a frame of a host at `port` has from here on. If that is not what its
    /// tag says, the tag is rewritten.
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

    /// Whether frames of `priority` lose their CN-TAGs as they go to the hosts of `port`.
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
