//! Route attachment of a host's frame: its VLAN, its tag at the egress, and the header.

use super::switch::Reference;
use super::{rules, step};
use alloc::vec::Vec;
use axon_node::{Action, Drop};
use axon_wire::vlan::VlanId;
use axon_wire::{FrameBuf, PortNo, Route, Time};

impl Reference {
    /// Returns the VLAN of a host's frame, none without VLANs at the port. `None` if not allowed.
    pub(super) fn vlan_of(&self, ingress: PortNo, frame: &FrameBuf) -> Option<VlanId> {
        match self.port(ingress).and_then(|port| port.vlans.as_ref()) {
            Some(vlans) => vlans.of_frame(frame.bytes()),
            None => Some(VlanId::NONE),
        }
    }

    /// Gives a host's frame its egress tag and the header of `route`; then it takes its first hop.
    /// `ingress` is the control plane for a frame that was punted.
    pub(super) fn attach(
        &mut self,
        now: Time,
        (ingress, vlan): (PortNo, VlanId),
        route: &Route,
        mut frame: FrameBuf,
        out: &mut Vec<Action>,
    ) {
        if !rules::retag(&mut frame, vlan, route.tagged) {
            return self.end(ingress, Drop::NoHeadroom, frame, out);
        }
        let header = step::header_of(route, self.config.hop_width);
        let Some(header) = header.filter(|header| frame.push_front(header.len()).is_ok()) else {
            return self.end(ingress, Drop::NoHeadroom, frame, out);
        };
        frame.bytes_mut()[..header.len()].copy_from_slice(&header);
        let to_an_axon = self.take_hop(now, ingress, frame, out);
        let from_host = ingress != PortNo::CONTROL;
        if to_an_axon && from_host && self.config.self_congestion_pause {
            self.count_header(now, ingress, header.len(), out);
        }
    }
}
