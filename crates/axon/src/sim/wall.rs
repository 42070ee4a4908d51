//! The time and the memory that a run takes on this machine.

/// What a run took on this machine.
pub struct Wall {
    /// Wall time in seconds, from the first event to the last.
    pub seconds: f64,
    /// Resident memory at its highest, in bytes.
    pub memory_bytes: u64,
    /// Whether SIGINT or SIGTERM ended it.
    pub interrupted: bool,
}
