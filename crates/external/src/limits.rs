//! How long a program may take, and how much of its work may wait.

use std::time::Duration;

/// The limits of a program in a process of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// From the start of the process until it has loaded its program: 60 s.
    pub load: Duration,
    /// For each call: 10 s.
    pub call: Duration,
    /// Frames that it may send in one call: 65,536.
    pub frames_per_call: u32,
    /// Packets that may wait for it: 1024.
    pub packets_queued: usize,
    /// Their bytes: 4 MiB.
    pub bytes_queued: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            load: Duration::from_secs(60),
            call: Duration::from_secs(10),
            frames_per_call: 1 << 16,
            packets_queued: 1024,
            bytes_queued: 4 << 20,
        }
    }
}
