//! The wire of a port, outside of the gates: frames that have left the pins and wait for the
//! runtime, and the limits on frames to the control plane.

use axon_node::{Drop, Punt};
use axon_plane::PlaneConfig;
use axon_plane::meter::Meter;
use axon_wire::{Bytes, FrameBuf, Time};
use std::collections::VecDeque;

/// The wire of one port.
#[derive(Clone, Debug)]
pub(super) struct Wire {
    is_up: bool,
    is_busy: bool,
    /// Frames that have left the pins, each with the state of its FCS.
    frames: VecDeque<(FrameBuf, bool)>,
    bytes_max: Bytes,
    misses: Meter,
    link_frames: Meter,
    addressed: Meter,
    errors: Meter,
}

impl Wire {
    /// Returns a wire without carrier.
    pub(super) fn new(config: &PlaneConfig) -> Wire {
        Wire {
            is_up: false,
            is_busy: false,
            frames: VecDeque::new(),
            bytes_max: config.queue_bytes_max,
            misses: Meter::new(config.punt),
            link_frames: Meter::new(config.punt),
            addressed: Meter::new(config.addressed),
            errors: Meter::new(config.punt),
        }
    }

    pub(super) const fn is_up(&self) -> bool {
        self.is_up
    }

    /// Returns the number of waiting frames.
    pub(super) fn frames(&self) -> u64 {
        self.frames.len() as u64
    }

    /// Returns the bytes of the waiting frames.
    pub(super) fn bytes(&self) -> u64 {
        self.frames.iter().map(|(frame, _)| frame.length() as u64).sum()
    }

    /// Sets the carrier; without it, returns the waiting frames.
    pub(super) fn set_link(&mut self, is_up: bool) -> Vec<FrameBuf> {
        self.is_up = is_up;
        if is_up {
            return Vec::new();
        }
        self.is_busy = false;
        self.frames.drain(..).map(|(frame, _)| frame).collect()
    }

    /// Appends a frame.
    ///
    /// # Errors
    /// Returns the frame if there is no carrier, or too many wait, as on a link slower than the
    /// gates.
    pub(super) fn push(&mut self, frame: FrameBuf, intact: bool) -> Result<(), (Drop, FrameBuf)> {
        let bytes = self.bytes() + frame.length() as u64;
        if !self.is_up {
            return Err((Drop::PortDown, frame));
        }
        if !self.frames.is_empty() && bytes > self.bytes_max.0 {
            return Err((Drop::QueueFull, frame));
        }
        self.frames.push_back((frame, intact));
        Ok(())
    }

    /// Returns the next frame if the wire is free, which it is not any more then.
    pub(super) fn next(&mut self) -> Option<(FrameBuf, bool)> {
        if self.is_busy {
            return None;
        }
        let frame = self.frames.pop_front()?;
        self.is_busy = true;
        Some(frame)
    }

    /// Reports that the wire is free.
    pub(super) fn done(&mut self) {
        self.is_busy = false;
    }

    /// Returns whether a frame received on the port may be punted.
    pub(super) fn admit(&mut self, now: Time, punt: Punt) -> bool {
        let meter = match punt {
            Punt::Miss | Punt::EtherProbe => &mut self.misses,
            Punt::LinkLocal => &mut self.link_frames,
            Punt::Addressed => &mut self.addressed,
            Punt::Error | Punt::Trap => &mut self.errors,
        };
        meter.admit(now)
    }
}
