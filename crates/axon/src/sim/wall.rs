//! Time and memory that a run uses on this machine.

/// Resources that a run used on this machine.
pub struct Wall {
    /// Wall time in seconds, from the first event to the last.
    pub seconds: f64,
    /// Number of frames that left a link.
    pub packet_hops: u64,
    /// Peak resident memory, in bytes.
    pub memory_bytes: u64,
    /// True if SIGINT or SIGTERM ended the run.
    pub interrupted: bool,
}

impl Wall {
    /// Returns the frames that left a link per second of wall time.
    pub(crate) fn pace(&self) -> f64 {
        self.packet_hops as f64 / self.seconds.max(1e-9)
    }
}
