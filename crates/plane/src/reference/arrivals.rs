//! Frames whose last byte has not arrived.

use alloc::collections::BTreeMap;
use axon_wire::{FrameBuf, PortNo, Time};

/// A frame on its way in.
#[derive(Clone, Debug)]
pub(super) struct Arriving {
    pub(super) frame: FrameBuf,
    pub(super) ingress: PortNo,
    /// Arrival time of the head.
    pub(super) came: Time,
    pub(super) intact: bool,
}

/// Frames by the arrival time of the last byte, then in order of reception.
#[derive(Clone, Debug, Default)]
pub(super) struct Arrivals {
    frames: BTreeMap<(Time, u64), Arriving>,
    /// Number of frames so far.
    count: u64,
}

impl Arrivals {
    pub(super) fn push(&mut self, complete_at: Time, frame: Arriving) {
        self.frames.insert((complete_at, self.count), frame);
        self.count += 1;
    }

    /// Takes a frame whose last byte has arrived.
    pub(super) fn pop(&mut self, now: Time) -> Option<Arriving> {
        let first = self.frames.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }

    /// Returns the time at which the next frame is complete.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.frames.first_key_value().map(|(&(complete_at, _), _)| complete_at)
    }

    /// Marks the frames as broken that were arriving by `port`, whose carrier was lost.
    pub(super) fn break_off(&mut self, port: PortNo) {
        let broken = self.frames.values_mut().filter(|arriving| arriving.ingress == port);
        broken.for_each(|arriving| arriving.intact = false);
    }

    pub(super) fn len(&self) -> usize {
        self.frames.len()
    }
}
