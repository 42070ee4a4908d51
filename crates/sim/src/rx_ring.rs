//! The ring of received frames between a host's wire and its stack.
//!
//! An ordinary host takes a frame the moment it is whole. One that was told to be slow takes
//! frames no faster than its rate, one after the other; what finds the ring full ends there.
//! Beside that each frame may take a time to be processed, during which others come in: a
//! latency, not a limit.

use axon_wire::{Bytes, Frame, FrameBuf, Rate, Span, Time};
use std::collections::VecDeque;

/// Frames that a ring holds unless told otherwise.
const FRAMES_MAX: usize = 512;

/// The ring.
#[derive(Debug)]
pub(crate) struct RxRing {
    /// Frames, and when the stack gets each, in order.
    waiting: VecDeque<(Time, FrameBuf)>,
    rate: Option<Rate>,
    processing: Span,
    /// When the slow reader has read all that is in the ring.
    read_until: Time,
}

impl RxRing {
    pub(crate) fn new() -> RxRing {
        RxRing {
            waiting: VecDeque::new(),
            rate: None,
            processing: Span::ZERO,
            read_until: Time::ZERO,
        }
    }

    /// Frames are read no faster than this from now on; those in the ring keep their times.
    pub(crate) fn set_rate(&mut self, rate: Option<Rate>) {
        self.rate = rate;
        self.read_until = Time::ZERO;
    }

    /// Every frame that comes from now on takes this long beside.
    pub(crate) fn set_processing(&mut self, processing: Span) {
        self.processing = processing;
    }

    /// Takes a frame that is whole at `complete_at`; gives it back at once if nothing holds
    /// it up.
    ///
    /// # Errors
    /// The frame, if the ring is full.
    pub(crate) fn put(
        &mut self,
        now: Time,
        complete_at: Time,
        frame: FrameBuf,
    ) -> Result<Option<FrameBuf>, FrameBuf> {
        let mut ready = complete_at.max(now);
        if let Some(rate) = self.rate {
            if self.waiting.len() >= FRAMES_MAX {
                return Err(frame);
            }
            let bytes = Bytes(frame.bytes().len() as u64);
            ready = ready.max(self.read_until) + rate.time_for(bytes);
            self.read_until = ready;
        }
        ready += self.processing;
        if let Some(&(last, _)) = self.waiting.back() {
            // Never past one that came before.
            ready = ready.max(last);
        }
        if ready <= now && self.waiting.is_empty() {
            return Ok(Some(frame));
        }
        self.waiting.push_back((ready, frame));
        Ok(None)
    }

    /// The next frame that is due.
    pub(crate) fn take(&mut self, now: Time) -> Option<FrameBuf> {
        self.waiting.front().filter(|(ready, _)| *ready <= now)?;
        self.waiting.pop_front().map(|(_, frame)| frame)
    }

    /// When the next is due.
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.waiting.front().map(|&(ready, _)| ready)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame() -> FrameBuf {
        FrameBuf::new(&[0; 1000])
    }

    #[test]
    fn a_slow_reader_reads_at_its_rate_and_its_ring_is_finite() {
        let mut ring = RxRing::new();
        assert!(matches!(ring.put(Time::ZERO, Time::ZERO, frame()), Ok(Some(_))));
        ring.set_rate(Some(Rate::mbps(8)));
        for _ in 0..FRAMES_MAX {
            assert!(matches!(ring.put(Time::ZERO, Time::ZERO, frame()), Ok(None)));
        }
        assert!(ring.put(Time::ZERO, Time::ZERO, frame()).is_err());
        for number in 1..=FRAMES_MAX as u64 {
            let due = Time::from_nanos(number * 1_000_000);
            assert_eq!(ring.deadline(), Some(due), "1000 bytes at 8 Mb/s take 1 ms");
            assert!(ring.take(due - Span::from_ticks(1)).is_none());
            assert!(ring.take(due).is_some());
        }
        assert_eq!(ring.deadline(), None);
    }

    #[test]
    fn processing_delays_each_frame_by_itself() {
        let mut ring = RxRing::new();
        ring.set_processing(Span::from_nanos(700));
        for nanos in [0, 100] {
            let at = Time::from_nanos(nanos);
            assert!(matches!(ring.put(at, at, frame()), Ok(None)));
        }
        assert_eq!(ring.deadline(), Some(Time::from_nanos(700)));
        assert!(ring.take(Time::from_nanos(700)).is_some());
        assert_eq!(ring.deadline(), Some(Time::from_nanos(800)));
    }
}
