//! Source that marks frames adaptively for a congestion point that cannot sample (004 §5.2).
//!
//! The paper does not give its rule. Here the source applies the standard's rule for the congestion
//! point (IEEE 802.1Q clause 30.2.1). It marks a frame after a number of bytes that shrinks with
//! the worst feedback since the last mark; without feedback, 150 KB.

use super::seen::Seen;
use axon_node::random::Random;
use axon_plane::qcn::CpConfig;
use std::sync::{Arc, Mutex, PoisonError};

/// Offset of the mark byte, which is 1 in a marked frame: the first after its EtherType.
pub(crate) const MARK_AT: usize = 22;

/// Congestion point that marks frames: its settings and state.
pub struct Marks {
    point: CpConfig,
    random: Random,
    feedback: u8,
    to_mark: u64,
    seen: Arc<Mutex<Seen>>,
}

impl Marks {
    /// Creates the marking by the intervals of `point`.
    pub(crate) fn new(point: CpConfig, seed: u64, seen: Arc<Mutex<Seen>>) -> Marks {
        let mut marks = Marks { point, random: Random::new(seed), feedback: 0, to_mark: 0, seen };
        marks.to_mark = marks.interval();
        marks
    }

    /// Returns the bytes to the next mark, with the standard's jitter of 15 per cent both ways.
    fn interval(&mut self) -> u64 {
        let bytes = self.point.interval(std::mem::take(&mut self.feedback)).0;
        bytes * (85 + u64::from(self.random.next_u32() % 31)) / 100
    }

    /// Returns whether the next frame, of `bytes` bytes, is marked.
    pub(crate) fn next(&mut self, bytes: usize) -> bool {
        match self.to_mark.checked_sub(bytes as u64) {
            Some(left) => {
                self.to_mark = left;
                false
            }
            None => {
                self.to_mark = self.interval();
                self.seen.lock().unwrap_or_else(PoisonError::into_inner).samples += 1;
                true
            }
        }
    }

    /// Processes a CNM with this feedback.
    pub(crate) fn notified(&mut self, feedback: u8) {
        self.feedback = self.feedback.max(feedback);
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).cnms += 1;
    }
}
