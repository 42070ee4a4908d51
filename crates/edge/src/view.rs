//! Ports and frames as the edge of one VLAN has them.

use alloc::vec::Vec;
use axon_node::{PortKind, PortView, PortVlans};
use axon_wire::vlan::{self, VlanId};
use axon_wire::{FrameBuf, PortNo};

/// Ports as seen by the edge of one VLAN.
pub(super) struct View<'a> {
    pub(super) ports: &'a dyn PortView,
    pub(super) vlans: &'a [Option<PortVlans>],
    pub(super) vlan: VlanId,
}

impl PortView for View<'_> {
    fn count(&self) -> u16 {
        self.ports.count()
    }

    fn kind(&self, port: PortNo) -> Option<PortKind> {
        let kind = self.ports.kind(port)?;
        let is_in = match self.vlans.get(port.index()).and_then(Option::as_ref) {
            Some(vlans) => vlans.has(self.vlan),
            None => self.vlan.is_none(),
        };
        Some(if kind == PortKind::Host && !is_in { PortKind::Unknown } else { kind })
    }

    fn is_up(&self, port: PortNo) -> bool {
        self.ports.is_up(port)
    }
}

/// Returns a host's frame without the VID, as the edge of its VLAN receives it.
pub(super) fn without_vid(frame: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    vlan::set_vid(&mut frame, 0);
    frame
}

/// Adds the tag of a VLAN to a frame for the hosts of a port with these VLANs, where it is tagged.
pub(super) fn tag(vlan: VlanId, vlans: Option<&PortVlans>, frame: &mut Vec<u8>) {
    if !vlan.is_none() && vlans.is_some_and(|vlans| vlans.is_tagged(vlan)) {
        let mut tagged = FrameBuf::new(frame);
        // There is headroom.
        let _ = vlan::leave(&mut tagged, vlan, true);
        *frame = tagged.bytes().to_vec();
    }
}
