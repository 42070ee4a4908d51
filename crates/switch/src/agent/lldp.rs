//! LLDP frames and timers of the port to the fabric.

use super::config::{FABRIC, HOST};
use super::node::AgentNode;
use alloc::vec::Vec;
use axon_dcbx::{DcbEvent, DcbPort};
use axon_node::Drop;
use axon_plane::FrameMeta;
use axon_wire::{FrameBuf, Time, lldp};

impl AgentNode {
    /// Returns whether the frame is an LLDP frame and the agent runs LLDP.
    pub(super) fn is_for_neighbour(&self, frame: &[u8]) -> bool {
        self.neighbour.is_some() && lldp::is_lldp(frame)
    }

    /// Handles an LLDP frame of the fabric, up to a rate limit. A frame of the host is discarded.
    pub(super) fn receive_lldp(&mut self, now: Time, meta: FrameMeta) {
        let mut reason = Drop::Refused;
        if meta.ingress != HOST && !self.lldp_meter.admit(now) {
            reason = Drop::PuntLimit;
        } else if meta.ingress != HOST {
            self.with_neighbour(now, |port, out| {
                let before = port.agent().counters().received;
                port.receive(now, meta.frame.bytes(), out);
                if port.agent().counters().received > before {
                    reason = Drop::Consumed;
                }
            });
        }
        self.ports.discard(meta, reason, &mut self.actions);
    }

    /// Processes a carrier change of the port to the fabric.
    pub(super) fn neighbour_link(&mut self, now: Time, up: bool) {
        self.with_neighbour(now, |port, out| port.link(now, up, out));
    }

    /// Sends the LLDPDU that is due.
    pub(super) fn neighbour_timeout(&mut self, now: Time) {
        let due = |port: &DcbPort| port.deadline().is_some_and(|at| at <= now);
        if self.neighbour.as_ref().is_some_and(due) {
            self.with_neighbour(now, |port, out| port.timeout(now, out));
        }
    }

    /// Runs `work` on the LLDP port and applies its events.
    fn with_neighbour(&mut self, now: Time, work: impl FnOnce(&mut DcbPort, &mut Vec<DcbEvent>)) {
        let Some(port) = &mut self.neighbour else { return };
        let mut events = Vec::new();
        work(port, &mut events);
        if events.contains(&DcbEvent::Operational) {
            let operational = port.operational();
            let (pfc, rules) =
                (operational.pfc, self.config.rules.and(&operational.peer_applications));
            self.rules = rules;
            self.set_pfc(now, pfc);
        }
        for event in events {
            if let DcbEvent::Send(frame) = event {
                let meta = self.ports.originate(now, FrameBuf::with_headroom(0, &frame));
                self.ports.deliver(now, meta, FABRIC, None, &mut self.actions);
            }
        }
    }
}
