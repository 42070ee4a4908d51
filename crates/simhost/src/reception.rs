//! The way of a received frame from the wire to the stack: checks, the VLAN, the NIC's flow
//! control, and the receive ring.

use crate::config::{HostConfig, PORT};
use crate::nic::Nic;
use crate::rx_ring::RxRing;
use crate::vlan::Vlan;
use axon_node::{Action, Drop};
use axon_wire::priority::Priority;
use axon_wire::{FrameBuf, MacAddr, Time};

/// Receive side of a host. The fields that every frame needs come first.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Reception {
    /// Number of received frames.
    received: u64,
    /// Number of received frames for other hosts.
    misdelivered: u64,
    vlan: Vlan,
    ring: RxRing,
    mac: MacAddr,
}

impl Reception {
    pub(crate) fn new(config: &HostConfig) -> Reception {
        let mut ring = RxRing::new();
        if let Some(dcb) = &config.dcb {
            ring.set_limits(dcb.ring);
        }
        let vlan = Vlan::new(config.vlan);
        Reception { received: 0, misdelivered: 0, vlan, ring, mac: config.mac }
    }

    /// Returns the number of received frames.
    #[inline]
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    /// Returns the number of received frames for the MAC of another host.
    pub(crate) fn misdelivered(&self) -> u64 {
        self.misdelivered
    }

    /// Returns the receive ring mutably.
    pub(crate) fn ring_mut(&mut self) -> &mut RxRing {
        &mut self.ring
    }

    /// Returns the VLAN.
    pub(crate) fn vlan(&self) -> &Vlan {
        &self.vlan
    }

    /// Counts a received frame that is handled without the stack.
    #[inline]
    pub(crate) fn count(&mut self) {
        self.received += 1;
    }

    /// Returns whether a frame that is complete at `complete_at` would pass to the stack at once
    /// and unseen.
    #[inline]
    pub(crate) fn is_free(&self, now: Time, complete_at: Time) -> bool {
        !self.vlan.looks_at_frames() && self.ring.gives_back_at_once(now, complete_at)
    }

    /// Handles a received frame, intact or not. Returns it if the stack gets it now.
    pub(crate) fn arrived(
        &mut self,
        now: Time,
        (frame, intact): (FrameBuf, bool),
        complete_at: Time,
        (nic, out): (&mut Nic, &mut Vec<Action>),
    ) -> Option<FrameBuf> {
        self.received += 1;
        if !intact {
            out.push(Action::Dropped { ingress: PORT, reason: Drop::BadFcs, frame });
            return None;
        }
        let mut frame = self.vlan.enter(frame, out)?;
        let to = MacAddr::destination_of(frame.bytes());
        let is_anothers = to.is_some_and(|to| to != self.mac && !to.is_multicast());
        self.misdelivered += u64::from(is_anothers);
        let mut group = None;
        if let Some(dcb) = nic.dcb_mut() {
            match dcb.receive(now, &mut frame) {
                Ok(priority) => group = dcb.group(priority),
                Err(None) => {
                    nic.recycle(frame);
                    return None;
                }
                Err(Some(reason)) => {
                    out.push(Action::Dropped { ingress: PORT, reason, frame });
                    return None;
                }
            }
        }
        match self.ring.put(now, complete_at, frame, group) {
            Ok(Some(frame)) => return Some(frame),
            Ok(None) => self.signal(group, nic),
            Err((reason, frame)) => out.push(Action::Dropped { ingress: PORT, reason, frame }),
        }
        None
    }

    /// Takes the next frame that is due from the ring.
    pub(crate) fn take(&mut self, now: Time, nic: &mut Nic) -> Option<FrameBuf> {
        let (frame, group) = self.ring.take(now)?;
        self.signal(group, nic);
        Some(frame)
    }

    /// Requests XOFF or XON according to the level of the receive ring.
    fn signal(&self, group: Option<Priority>, nic: &mut Nic) {
        if let (Some(group), Some(dcb)) = (group, nic.dcb_mut())
            && let Some(stop) = self.ring.signal(group)
        {
            dcb.ask(group, stop);
        }
    }

    /// Returns when the next frame is due.
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.ring.deadline()
    }
}
