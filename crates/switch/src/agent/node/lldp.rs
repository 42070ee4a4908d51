//! LLDP frames and timers of the port to the fabric.

use super::{AgentNode, FABRIC, HOST};
use crate::agent::neighbour::Neighbour;
use alloc::vec::Vec;
use axon_dcbx::DcbEvent;
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
        if meta.ingress != HOST {
            self.with_neighbour(now, |neighbour, out| {
                reason = neighbour.receive(now, meta.frame.bytes(), out);
            });
        }
        self.ports.discard(meta, reason, &mut self.actions);
    }

    /// Calls the neighbour, if the agent runs LLDP, and applies its events.
    pub(super) fn with_neighbour(
        &mut self,
        now: Time,
        work: impl FnOnce(&mut Neighbour, &mut Vec<DcbEvent>),
    ) {
        let Some(neighbour) = &mut self.neighbour else { return };
        let mut events = Vec::new();
        work(neighbour, &mut events);
        if events.contains(&DcbEvent::Operational) {
            let operational = neighbour.port().operational();
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
