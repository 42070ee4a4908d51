//! Use of the congestion window (RFC 7661 §4.1): it grows only while it limits the sender.

use crate::congestion::Congestion;
use crate::scoreboard::Scoreboard;
use crate::segment::Seq;

/// Use of the congestion window in one window of data.
#[derive(Clone, Debug)]
pub(super) struct Usage {
    /// True if the congestion window limited the sender.
    held: bool,
    /// Maximum bytes in flight.
    bytes: u32,
    /// End of the window of data.
    until: Seq,
}

impl Usage {
    pub(super) fn new(start: Seq) -> Usage {
        Usage { held: false, bytes: 0, until: start }
    }

    /// Records the bytes in flight, and whether the congestion window holds more back.
    pub(super) fn note(&mut self, held: bool, board: &Scoreboard) {
        let (pipe, over) = (board.pipe(), !board.start().is_before(self.until));
        if over || held || !self.held && pipe > self.bytes {
            *self = Usage { held, bytes: pipe, until: board.end() };
        }
    }

    /// Returns whether the window may grow: it limited the sender, or slow start has used half.
    pub(super) fn is_limited(&self, control: &Congestion) -> bool {
        self.held || control.in_slow_start() && control.window() < 2 * self.bytes
    }
}
