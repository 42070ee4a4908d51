//! Frame reception and transmission of a host, with its VLAN.

use super::{Host, PORT};
use crate::host::config::HostVlan;
use axon_node::{Action, Drop};
use axon_wire::priority::Priority;
use axon_wire::vlan::{self, VlanTag};
use axon_wire::{FrameBuf, MacAddr, Time};
use std::collections::BTreeSet;

/// Returns whether a frame is link-local; such a frame has no VLAN.
fn is_link_local(frame: &[u8]) -> bool {
    MacAddr::destination_of(frame).is_some_and(MacAddr::is_link_local)
}

impl Host {
    /// Returns the senders of frames received in the host's VLAN; empty without VLANs.
    pub fn senders(&self) -> &BTreeSet<MacAddr> {
        &self.senders
    }

    /// Handles a received frame, intact or not. Returns whether the stack has to be called.
    pub(super) fn arrived(
        &mut self,
        now: Time,
        (frame, intact): (FrameBuf, bool),
        complete_at: Time,
        out: &mut Vec<Action>,
    ) -> bool {
        self.received += 1;
        if !intact {
            out.push(Action::Dropped { ingress: PORT, reason: Drop::BadFcs, frame });
            return false;
        }
        let Some(frame) = self.in_vlan(frame, out) else { return false };
        self.misdelivered += u64::from(self.is_anothers(frame.bytes()));
        self.receive(now, frame, complete_at, out)
    }

    /// Returns whether a frame is for the MAC of another host.
    fn is_anothers(&self, frame: &[u8]) -> bool {
        let to = MacAddr::destination_of(frame);
        to.is_some_and(|to| to != self.config.mac && !to.is_multicast())
    }

    /// Removes the tag of the host's VLAN from a whole frame. Drops a frame of another VLAN.
    fn in_vlan(&mut self, mut frame: FrameBuf, out: &mut Vec<Action>) -> Option<FrameBuf> {
        let HostVlan { tag, remembers } = self.config.vlan;
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

    /// Adds the tag of the host's VLAN to an outgoing frame, unless it has one.
    pub(super) fn tag(&self, frame: &mut FrameBuf) {
        let has_none = VlanTag::of_frame(frame.bytes()).is_none_or(|tag| tag.vid == 0);
        let HostVlan { tag, .. } = self.config.vlan;
        if has_none && !tag.is_none() && !is_link_local(frame.bytes()) {
            // Not every frame of the NIC has headroom.
            let mut tagged = FrameBuf::new(&frame.contents().whole());
            if vlan::leave(&mut tagged, tag, true).is_ok() {
                *frame = tagged;
            }
        }
    }

    /// Processes a whole frame. Returns whether the stack has to be called.
    fn receive(
        &mut self,
        now: Time,
        mut frame: FrameBuf,
        complete_at: Time,
        out: &mut Vec<Action>,
    ) -> bool {
        let mut group = None;
        if let Some(dcb) = &mut self.stack.nic.dcb {
            let priority = match dcb.receive(now, &mut frame) {
                Ok(priority) => priority,
                Err(None) => {
                    self.stack.nic.recycle(frame);
                    return false;
                }
                Err(Some(reason)) => {
                    out.push(Action::Dropped { ingress: PORT, reason, frame });
                    return false;
                }
            };
            group = dcb.group(priority);
        }
        match self.rx.put(now, complete_at, frame, group) {
            Ok(Some(frame)) => return self.take(now, frame),
            Ok(None) => self.tell_peer(group),
            Err((reason, frame)) => out.push(Action::Dropped { ingress: PORT, reason, frame }),
        }
        false
    }

    /// Requests XOFF or XON according to the level of the receive ring.
    pub(super) fn tell_peer(&mut self, group: Option<Priority>) {
        if let (Some(group), Some(dcb)) = (group, &mut self.stack.nic.dcb)
            && let Some(stop) = self.rx.signal(group)
        {
            dcb.ask(group, stop);
        }
    }

    /// Handles a free wire: sockets refused by the NIC try again. Returns whether the stack has to
    /// be called.
    pub(super) fn wire_is_free(&mut self, now: Time) -> bool {
        self.busy = false;
        let refused = self.stack.nic.dcb.as_mut().is_some_and(|dcb| dcb.has_news());
        self.nic_was_full || refused && self.apps.poll(now, &mut self.stack)
    }
}
