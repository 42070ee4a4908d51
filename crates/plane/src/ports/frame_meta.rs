//! A frame between its ingress and its egress, and what is known of it.

use axon_wire::priority::Priority;
use axon_wire::{Frame, PortNo, Time};
use core::num::NonZeroU8;

/// A frame on its way through a switch.
#[derive(Clone, Debug)]
pub struct FrameMeta<B> {
    /// The frame.
    pub frame: B,
    /// The port it came in by.
    pub ingress: PortNo,
    /// When its last byte is here.
    pub complete_at: Time,
    /// Whether its FCS fits, which nobody may ask before `complete_at`.
    pub intact: bool,
    /// Where the head of a probe begins in it; 0 if it is none.
    pub probe_at: u16,
    /// Its length as it came in, in bytes; 65,535 for what is longer. That is what the shared
    /// memory counts: a route that the edge puts before it is in the route memory already.
    pub came_bytes: u16,
    /// One more than the priority that its header said, once that is off: what a frame costs to
    /// move counts, and an octet still fits.
    pub(crate) said: Option<NonZeroU8>,
}

impl<B: Frame> FrameMeta<B> {
    /// A frame that has come in by `ingress`; the rest as in [`Input::Frame`](axon_node::Input).
    #[inline]
    pub fn new(frame: B, ingress: PortNo, complete_at: Time, intact: bool) -> FrameMeta<B> {
        let came_bytes = u16::try_from(frame.bytes().len()).unwrap_or(u16::MAX);
        FrameMeta { frame, ingress, complete_at, intact, probe_at: 0, came_bytes, said: None }
    }

    /// A frame of the control plane, which is whole and sound.
    #[inline]
    pub fn from_control(frame: B, now: Time) -> FrameMeta<B> {
        FrameMeta::new(frame, PortNo::CONTROL, now, true)
    }
}

impl<B> FrameMeta<B> {
    /// The priority that its header said, if that is off.
    #[inline]
    pub(crate) fn priority(&self) -> Option<Priority> {
        self.said.map(|said| Priority::from_low_bits(said.get() - 1))
    }

    /// Its header, which said this priority, goes off.
    #[inline]
    pub(crate) fn set_priority(&mut self, priority: Priority) {
        self.said = NonZeroU8::new(priority.value() + 1);
    }

    /// Whether all of it is here, and its FCS does not fit.
    #[inline]
    pub fn is_known_bad(&self, now: Time) -> bool {
        !self.intact && self.complete_at <= now
    }

    /// If it was still coming in by `port`, its tail never comes.
    pub(crate) fn break_off(&mut self, now: Time, port: PortNo) {
        if self.ingress == port && self.complete_at > now {
            self.intact = false;
        }
    }
}
