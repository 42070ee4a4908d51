//! Congestion avoidance of Reno and NewReno (RFC 5681 §3.1).

/// Bytes acknowledged since the window last grew.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reno {
    acked: u32,
}

impl Reno {
    /// Returns the window after `bytes` more were acknowledged: one more segment for each full
    /// window (appropriate byte counting, RFC 3465 §2.1).
    pub(crate) fn grown(&mut self, mut window: u32, mss: u32, bytes: u32) -> u32 {
        self.acked = self.acked.saturating_add(bytes);
        while self.acked >= window.max(1) {
            self.acked -= window.max(1);
            window = window.saturating_add(mss);
        }
        window
    }
}
