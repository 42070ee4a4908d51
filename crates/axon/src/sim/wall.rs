//! The time and the memory that a run takes on this machine.

/// What a run took on this machine.
pub struct Wall {
    /// Wall time in seconds, from the first event to the last.
    pub seconds: f64,
    /// Frames that came out of a link meanwhile.
    pub packet_hops: u64,
    /// Resident memory at its highest, in bytes.
    pub memory_bytes: u64,
    /// Whether SIGINT or SIGTERM ended it.
    pub interrupted: bool,
}

impl Wall {
    /// Frames that came out of a link, for each second of wall time.
    pub fn pace(&self) -> f64 {
        self.packet_hops as f64 / self.seconds.max(1e-9)
    }
}
