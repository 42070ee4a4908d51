//! Frames for the control plane whose last byte has not arrived.
//!
//! With cut-through the plane sees a frame's head before its tail. A transit frame may leave at
//! once; one that is to be read must be complete first, or an FCS error would be found too late
//! (thesis 000 §3.3.1). So punted frames wait here for their last byte: in the order of their
//! release, and those of one ingress in order of arrival.

use crate::ports::FrameMeta;
use alloc::collections::VecDeque;
use axon_node::Punt;
use axon_wire::{PortNo, Time};

/// Queue of frames to the control plane that wait for their last byte.
#[derive(Clone, Debug)]
pub(crate) struct Hold {
    /// Frames by release time; few, so insertion searches from the back.
    waiting: VecDeque<Held>,
}

#[derive(Clone, Debug)]
struct Held {
    release: Time,
    meta: FrameMeta,
    /// The punt reason; `None` for MAC control, handled by the ports.
    punt: Option<Punt>,
}

impl Hold {
    pub(crate) const fn new() -> Hold {
        Hold { waiting: VecDeque::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the release time of the next frame.
    #[inline]
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.waiting.front().map(|held| held.release)
    }

    /// Returns whether a frame must wait here: its tail is missing, or an earlier one of the same
    /// ingress is waiting.
    pub(crate) fn concerns(&self, now: Time, meta: &FrameMeta) -> bool {
        meta.complete_at > now || self.of(meta.ingress).next().is_some()
    }

    /// Holds a frame until it is complete, behind those of the same ingress.
    ///
    /// # Errors
    /// Returns the frame if more than `bytes_max` bytes of its ingress would be held.
    pub(crate) fn push(
        &mut self,
        meta: FrameMeta,
        punt: Option<Punt>,
        bytes_max: u64,
    ) -> Result<(), FrameMeta> {
        let held: usize = self.of(meta.ingress).map(|held| held.meta.frame.length()).sum();
        if (held + meta.frame.length()) as u64 > bytes_max {
            return Err(meta);
        }
        let before = self.of(meta.ingress).map(|held| held.release).max();
        let release = meta.complete_at.max(before.unwrap_or(Time::ZERO));
        let place = self.waiting.iter().rposition(|held| held.release <= release);
        self.waiting.insert(place.map_or(0, |last| last + 1), Held { release, meta, punt });
        Ok(())
    }

    /// Takes a frame that is due.
    pub(crate) fn pop(&mut self, now: Time) -> Option<(FrameMeta, Option<Punt>)> {
        self.deadline().filter(|&release| release <= now)?;
        self.waiting.pop_front().map(|held| (held.meta, held.punt))
    }

    /// Marks frames as broken that were still arriving by `port` when its carrier was lost.
    pub(crate) fn break_off(&mut self, now: Time, port: PortNo) {
        for held in &mut self.waiting {
            held.meta.break_off(now, port);
        }
    }

    fn of(&self, ingress: PortNo) -> impl Iterator<Item = &Held> {
        self.waiting.iter().filter(move |held| held.meta.ingress == ingress)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use axon_wire::FrameBuf;

    fn at(nanos: u64) -> Time {
        Time::from_nanos(nanos)
    }

    fn meta(ingress: u16, name: u8, complete_at: u64) -> FrameMeta {
        FrameMeta::new(FrameBuf::new(&[name; 60]), PortNo(ingress), at(complete_at), true)
    }

    fn names(hold: &mut Hold, now: Time) -> Vec<u8> {
        core::iter::from_fn(|| hold.pop(now)).map(|(meta, _)| meta.frame.bytes()[0]).collect()
    }

    #[test]
    fn frames_go_when_they_are_whole_and_in_order_per_ingress() {
        let mut hold = Hold::new();
        for (ingress, name, complete_at) in [(1, 1, 50), (2, 2, 40), (1, 3, 30), (3, 4, 50)] {
            hold.push(meta(ingress, name, complete_at), Some(Punt::Miss), 1000).unwrap();
        }
        assert!(hold.concerns(at(60), &meta(1, 9, 60)), "behind an earlier one");
        assert!(!hold.concerns(at(60), &meta(4, 9, 60)));
        assert!(hold.concerns(at(59), &meta(4, 9, 60)));
        assert_eq!(hold.deadline(), Some(at(40)));
        assert_eq!(names(&mut hold, at(39)), []);
        assert_eq!(names(&mut hold, at(49)), [2]);
        assert_eq!(names(&mut hold, at(50)), [1, 3, 4], "3 came behind 1");
        assert_eq!((hold.len(), hold.deadline()), (0, None));
    }

    #[test]
    fn the_room_of_one_ingress_is_bounded() {
        let mut hold = Hold::new();
        hold.push(meta(1, 1, 9), Some(Punt::Miss), 100).unwrap();
        assert!(hold.push(meta(1, 2, 9), Some(Punt::Miss), 100).is_err());
        hold.push(meta(2, 3, 9), Some(Punt::Miss), 100).unwrap();
        assert_eq!(names(&mut hold, at(9)), [1, 3]);
    }

    #[test]
    fn a_frame_whose_carrier_went_before_its_tail_is_broken() {
        let mut hold = Hold::new();
        for (ingress, complete_at) in [(1, 9), (1, 20), (2, 20)] {
            hold.push(meta(ingress, 0, complete_at), Some(Punt::Miss), 1000).unwrap();
        }
        hold.break_off(at(10), PortNo(1));
        let intact: Vec<bool> =
            core::iter::from_fn(|| hold.pop(at(20))).map(|(meta, _)| meta.intact).collect();
        assert_eq!(intact, [true, false, true]);
    }
}
