//! Log of the frames seen at a device, and of the streams sent to it.

use crate::frames;
use crate::rig::{Seen, Stream, Way};
use axon_wire::priority::Priority;
use axon_wire::{Bytes, Rate, Time};

/// Frames and streams since a device was set up.
#[derive(Default)]
pub struct Log {
    frames: Vec<Seen>,
    streams: Vec<(u16, Stream)>,
}

impl Log {
    /// Returns all frames, in order.
    pub fn frames(&self) -> &[Seen] {
        &self.frames
    }

    /// Adds frames.
    pub(super) fn extend(&mut self, seen: Vec<Seen>) {
        self.frames.extend(seen);
    }

    /// Adds a stream with its number.
    pub(super) fn begin(&mut self, id: u16, stream: Stream) {
        self.streams.push((id, stream));
    }

    /// Forgets the streams.
    pub(super) fn forget_streams(&mut self) {
        self.streams.clear();
    }

    /// Forgets the frames.
    pub(super) fn forget_frames(&mut self) {
        self.frames.clear();
    }

    /// Returns the frames received at a port since the time `from`.
    pub fn heard(&self, port: usize, from: Time) -> impl Iterator<Item = &Seen> {
        let own =
            move |seen: &&Seen| seen.port == port && seen.way == Way::Heard && seen.at >= from;
        self.frames.iter().filter(own)
    }

    /// Returns the start times of the frames that port 0 received with a priority.
    pub(super) fn starts(&self, rate: Rate, priority: Priority) -> Vec<Time> {
        let of_priority = |id: u16| {
            self.streams.iter().any(|(own, s)| *own == id && s.to == 0 && s.priority == priority)
        };
        let start = |seen: &Seen| {
            frames::traffic_of(&seen.frame).filter(|known| of_priority(known.id))?;
            // The frame is preceded by the preamble and followed by the FCS. The gap comes after
            // them.
            Some(seen.at - rate.time_for(Bytes(seen.frame.len() as u64 + 12)))
        };
        self.heard(0, Time::ZERO).filter_map(start).collect()
    }

    /// Returns the numbers of frames sent and received in a stream.
    pub fn carried(&self, id: u16) -> (u64, u64) {
        self.count(|own| own == id)
    }

    /// Returns the numbers of frames sent and received in all streams of a priority.
    pub fn of_priority(&self, priority: Priority) -> (u64, u64) {
        self.count(|id| self.streams.iter().any(|(own, s)| *own == id && s.priority == priority))
    }

    fn count(&self, wanted: impl Fn(u16) -> bool) -> (u64, u64) {
        let own = |seen: &&Seen| frames::traffic_of(&seen.frame).is_some_and(|f| wanted(f.id));
        let known: Vec<Way> = self.frames.iter().filter(own).map(|seen| seen.way).collect();
        let of = |way: Way| known.iter().filter(|&&own| own == way).count() as u64;
        (of(Way::Sent), of(Way::Heard))
    }
}
