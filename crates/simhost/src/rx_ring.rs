//! The receive ring between a host's wire and its stack.
//!
//! An ordinary host reads a frame as soon as it is complete. A slow host reads frames no faster
//! than its rate, one after another, and drops those that find the ring full. In addition each
//! frame may take a processing time during which others arrive: a latency, not a limit.
//!
//! A priority with flow control is limited by bytes instead of frames: the ring determines when to
//! pause and resume the sender ([`RingLimits`]), and drops only frames beyond the headroom.

use crate::dcb_nic::RingLimits;
use axon_node::Drop;
use axon_wire::priority::{PRIORITIES, Priority};
use axon_wire::{Bytes, FrameBuf, Rate, Span, Time};
use std::collections::VecDeque;

/// Default number of frames in a ring.
const FRAMES_MAX: usize = 512;

/// Queued frame.
#[derive(Debug)]
struct Waiting {
    /// Time at which the stack gets the frame.
    ready: Time,
    /// Group of priorities in whose bytes the frame is counted, if any.
    group: Option<Priority>,
    frame: FrameBuf,
}

/// Receive ring.
#[derive(Debug)]
#[repr(C)]
pub struct RxRing {
    /// Queued frames, in the order of arrival.
    waiting: VecDeque<Waiting>,
    rate: Option<Rate>,
    processing: Span,
    /// Capacity in frames without flow control.
    frames_max: usize,
    /// Time at which the slow reader has read the whole ring.
    read_until: Time,
    /// Limits of groups with flow control.
    limits: Option<RingLimits>,
    /// Queued bytes of each group with flow control, by its first priority.
    bytes: [u64; PRIORITIES],
    /// Number of queued frames without flow control.
    lossy: usize,
}

impl RxRing {
    pub(crate) fn new() -> RxRing {
        RxRing {
            waiting: VecDeque::new(),
            rate: None,
            frames_max: FRAMES_MAX,
            processing: Span::ZERO,
            read_until: Time::ZERO,
            limits: None,
            bytes: [0; PRIORITIES],
            lossy: 0,
        }
    }

    /// Sets the limits of groups with flow control.
    pub(crate) fn set_limits(&mut self, limits: RingLimits) {
        self.limits = Some(limits);
    }

    /// Returns whether to pause the sender of a group (true) or resume it (false); `None` between
    /// the limits.
    pub(crate) fn signal(&self, group: Priority) -> Option<bool> {
        let (bytes, limits) = (self.bytes[group.index()], self.limits?);
        match bytes {
            _ if bytes > limits.xoff.0 => Some(true),
            _ if bytes <= limits.xon.0 => Some(false),
            _ => None,
        }
    }

    /// Limits the rate at which the host reads received frames; `None` removes the limit. Frames
    /// in the ring keep their times. Frames that find it full are dropped and counted
    /// ([`Drop::QueueFull`]). Priorities with flow control have [room of their own](RingLimits)
    /// instead, and their sender is paused.
    pub fn set_rate(&mut self, rate: Option<Rate>) {
        self.rate = rate;
        self.read_until = Time::ZERO;
    }

    /// Sets the capacity without flow control, in frames; 512 by default. It matters only to a host
    /// that reads slowly. Frames in the ring stay.
    pub fn set_frames(&mut self, frames: usize) {
        self.frames_max = frames;
    }

    /// Sets the processing time of each further frame before the stack and the applications get
    /// it. It is a latency: other frames are received meanwhile.
    pub fn set_processing(&mut self, processing: Span) {
        self.processing = processing;
    }

    /// Adds a frame that is complete at `complete_at`. Returns it if nothing delays it. `group` is
    /// the flow control group of its priority, if any.
    ///
    /// # Errors
    /// The frame and the drop reason: the ring is full.
    pub(crate) fn put(
        &mut self,
        now: Time,
        complete_at: Time,
        frame: FrameBuf,
        group: Option<Priority>,
    ) -> Result<Option<FrameBuf>, (Drop, FrameBuf)> {
        let mut ready = complete_at.max(now);
        let bytes = frame.length() as u64;
        if let Some(rate) = self.rate {
            if let Some(reason) = self.refuses(bytes, group) {
                return Err((reason, frame));
            }
            ready = ready.max(self.read_until) + rate.time_for(Bytes(bytes));
            self.read_until = ready;
        }
        ready += self.processing;
        if let Some(last) = self.waiting.back() {
            // Frames stay in order.
            ready = ready.max(last.ready);
        }
        if ready <= now && self.waiting.is_empty() {
            return Ok(Some(frame));
        }
        match group {
            Some(group) => self.bytes[group.index()] += bytes,
            None => self.lossy += 1,
        }
        self.waiting.push_back(Waiting { ready, group, frame });
        Ok(None)
    }

    /// Returns whether a frame that is complete at `complete_at` would be returned at once, leaving
    /// the ring unchanged.
    #[inline]
    pub(crate) fn gives_back_at_once(&self, now: Time, complete_at: Time) -> bool {
        let is_free = self.rate.is_none() && self.processing == Span::ZERO;
        is_free && complete_at <= now && self.waiting.is_empty()
    }

    fn refuses(&self, bytes: u64, group: Option<Priority>) -> Option<Drop> {
        match (group, self.limits) {
            (Some(group), Some(RingLimits { xoff, headroom, .. })) => {
                let full = self.bytes[group.index()] + bytes > xoff.0 + headroom.0;
                full.then_some(Drop::HeadroomFull)
            }
            _ => (self.lossy >= self.frames_max).then_some(Drop::QueueFull),
        }
    }

    /// Takes the next frame that is due, and its group.
    pub(crate) fn take(&mut self, now: Time) -> Option<(FrameBuf, Option<Priority>)> {
        self.waiting.front().filter(|next| next.ready <= now)?;
        let Waiting { group, frame, .. } = self.waiting.pop_front()?;
        match group {
            Some(group) => self.bytes[group.index()] -= frame.length() as u64,
            None => self.lossy -= 1,
        }
        Some((frame, group))
    }

    /// Returns when the next frame is due.
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.waiting.front().map(|next| next.ready)
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
        assert!(matches!(ring.put(Time::ZERO, Time::ZERO, frame(), None), Ok(Some(_))));
        ring.set_rate(Some(Rate::mbps(8)));
        for _ in 0..FRAMES_MAX {
            assert!(matches!(ring.put(Time::ZERO, Time::ZERO, frame(), None), Ok(None)));
        }
        assert!(ring.put(Time::ZERO, Time::ZERO, frame(), None).is_err());
        for number in 1..=FRAMES_MAX as u64 {
            let due = Time::from_nanos(number * 1_000_000);
            assert_eq!(ring.deadline(), Some(due), "1000 bytes at 8 Mb/s take 1 ms");
            assert!(ring.take(due - Span::from_ticks(1)).is_none());
            assert!(ring.take(due).is_some());
        }
        assert_eq!(ring.deadline(), None);
    }

    #[test]
    fn a_priority_with_flow_control_is_paused_before_its_frames_are_refused() {
        let mut ring = RxRing::new();
        ring.set_rate(Some(Rate::mbps(8)));
        let [xoff, xon, headroom] = [3_000, 1_000, 2_000].map(Bytes);
        ring.set_limits(RingLimits { xoff, xon, headroom });
        let group = Priority::MAX;
        let mut put = |group| {
            let outcome = ring.put(Time::ZERO, Time::ZERO, frame(), group);
            (outcome.map(|_| ()).map_err(|(reason, _)| reason), ring.signal(Priority::MAX))
        };
        assert_eq!(put(Some(group)), (Ok(()), Some(false)));
        assert_eq!(put(Some(group)), (Ok(()), None));
        assert_eq!(put(Some(group)), (Ok(()), None));
        assert_eq!(put(Some(group)), (Ok(()), Some(true)));
        assert_eq!(put(Some(group)), (Ok(()), Some(true)));
        assert_eq!(put(Some(group)), (Err(Drop::HeadroomFull), Some(true)));
        assert_eq!(put(None).0, Ok(()), "others have room of their own");
        let now = Time::from_nanos(4_000_000);
        for expected in [Some(true), None, None, Some(false)] {
            assert!(ring.take(now).is_some());
            assert_eq!(ring.signal(group), expected);
        }
        assert!(ring.take(now).is_none(), "the fifth is not read yet");
    }

    #[test]
    fn a_ring_of_another_size_holds_so_many_frames() {
        let mut ring = RxRing::new();
        ring.set_rate(Some(Rate::mbps(8)));
        ring.set_frames(3);
        let mut put = || ring.put(Time::ZERO, Time::ZERO, frame(), None).is_ok();
        assert_eq!([put(), put(), put(), put()], [true, true, true, false]);
    }

    #[test]
    fn processing_delays_each_frame_by_itself() {
        let mut ring = RxRing::new();
        ring.set_processing(Span::from_nanos(700));
        for nanos in [0, 100] {
            let at = Time::from_nanos(nanos);
            assert!(matches!(ring.put(at, at, frame(), None), Ok(None)));
        }
        assert_eq!(ring.deadline(), Some(Time::from_nanos(700)));
        assert!(ring.take(Time::from_nanos(700)).is_some());
        assert_eq!(ring.deadline(), Some(Time::from_nanos(800)));
    }
}
