//! The receiver's window, as the sender knows it (RFC 9293 §3.8.6.2).

use crate::segment::{Segment, Seq};

/// Receiver's window beyond the acknowledgement, and its probes.
#[derive(Clone, Debug, Default)]
pub(crate) struct PeerWindow {
    /// SND.WND, in bytes.
    bytes: u32,
    bytes_max: u32,
    /// Sequence and acknowledgement numbers of the segment that set the window (SND.WL1, SND.WL2).
    by: (Seq, Seq),
    scale: u8,
    /// True if a window probe is due.
    probe_due: bool,
    /// True if to send data that only fits a small window (RFC 9293 §3.8.6.2.1, the override
    /// timeout).
    small: bool,
}

impl PeerWindow {
    /// Sets the scale from the peer's SYN, whose own window is not scaled.
    pub(crate) fn begin(&mut self, syn: &Segment) {
        self.scale = 0;
        self.set(syn);
        self.scale = syn.options.scale.unwrap_or(0).min(14);
    }

    /// Sets the window of a connection that opens.
    pub(crate) fn set(&mut self, segment: &Segment) {
        self.bytes = u32::from(segment.window) << self.scale;
        self.bytes_max = self.bytes;
        self.by = (segment.seq, segment.ack);
    }

    /// Updates the window, unless the segment is older than the one that set it (RFC 9293
    /// §3.10.7.4). Returns the bytes before and after.
    pub(crate) fn update(&mut self, segment: &Segment) -> (u32, u32) {
        let ((seq, ack), before) = (self.by, self.bytes);
        if seq.is_before(segment.seq) || seq == segment.seq && !segment.ack.is_before(ack) {
            let bytes_max = self.bytes_max;
            self.set(segment);
            self.bytes_max = bytes_max.max(self.bytes);
        }
        (before, self.bytes)
    }

    /// Returns how many of `wanted` bytes may be sent with `outstanding` bytes unacknowledged,
    /// whether room is left, and whether they are too few. Half the window is worth a segment, and
    /// so is all the remaining data.
    pub(crate) fn usable(&self, wanted: u32, outstanding: u32) -> (u32, bool, bool) {
        let usable = self.bytes.saturating_sub(outstanding);
        let bytes = wanted.min(usable);
        let is_small = bytes < wanted && bytes < self.bytes_max / 2 && !self.small;
        (bytes, bytes < usable, is_small)
    }

    /// Makes a probe of a closed window due, or data that only fits a small one.
    pub(crate) fn persist(&mut self) {
        self.small = self.bytes > 0;
        self.probe_due = !self.small;
    }

    /// Takes the window probe that is due.
    pub(crate) fn take_probe(&mut self) -> bool {
        core::mem::take(&mut self.probe_due)
    }

    /// Records the transmission of new data.
    pub(crate) fn sent(&mut self) {
        self.small = false;
    }
}
