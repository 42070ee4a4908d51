//! A host's VLAN: the tag of its frames, and the senders in it.

use crate::config::{HostVlan, PORT};
use axon_node::{Action, Drop};
use axon_wire::vlan::{self, VlanTag};
use axon_wire::{FrameBuf, MacAddr};
use std::collections::BTreeSet;

/// VLAN of a host, and the senders of received frames, if the host records them.
#[derive(Debug)]
pub(crate) struct Vlan {
    config: HostVlan,
    senders: BTreeSet<MacAddr>,
}

/// Returns whether a frame is link-local; such a frame has no VLAN.
fn is_link_local(frame: &[u8]) -> bool {
    MacAddr::destination_of(frame).is_some_and(MacAddr::is_link_local)
}

impl Vlan {
    pub(crate) fn new(config: HostVlan) -> Vlan {
        Vlan { config, senders: BTreeSet::new() }
    }

    /// Returns the senders of frames received in the VLAN; empty without VLANs.
    pub(crate) fn senders(&self) -> &BTreeSet<MacAddr> {
        &self.senders
    }

    /// Returns whether received frames are looked at.
    #[inline]
    pub(crate) fn looks_at_frames(&self) -> bool {
        self.config.remembers
    }

    /// Removes the tag of the VLAN from a whole frame. Drops a frame of another VLAN.
    pub(crate) fn enter(&mut self, mut frame: FrameBuf, out: &mut Vec<Action>) -> Option<FrameBuf> {
        let HostVlan { tag, remembers } = self.config;
        if !remembers || is_link_local(frame.bytes()) {
            return Some(frame);
        }
        let vid = VlanTag::of_frame(frame.bytes()).map_or(0, |tag| tag.vid);
        if vid != tag.value() {
            out.push(Action::Dropped { ingress: PORT, reason: Drop::ForeignVlan, frame });
            return None;
        }
        let _ = vlan::leave(&mut frame, tag, false);
        self.senders.extend(MacAddr::source_of(frame.bytes()));
        Some(frame)
    }

    /// Adds the tag of the VLAN to an outgoing frame, unless it has one.
    pub(crate) fn tag(&self, frame: &mut FrameBuf) {
        let has_none = VlanTag::of_frame(frame.bytes()).is_none_or(|tag| tag.vid == 0);
        let tag = self.config.tag;
        if has_none && !tag.is_none() && !is_link_local(frame.bytes()) {
            // Not every frame of the NIC has headroom.
            let mut tagged = FrameBuf::new(&frame.contents().whole());
            if vlan::leave(&mut tagged, tag, true).is_ok() {
                *frame = tagged;
            }
        }
    }
}
