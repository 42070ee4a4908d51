//! How long a program may take, and how much it may ask for and may wait.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The limits of a program in a process of its own. One that exceeds a limit of its work fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// From the start of the process until it has loaded its program: 60 s.
    pub load: Duration,
    /// For each call: 10 s.
    pub call: Duration,
    /// Frames that it may send in one call: 65,536.
    pub frames_per_call: u32,
    /// Bytes of these frames: 256 MiB.
    pub bytes_per_call: u64,
    /// Bytes of one of them: 65,536.
    pub frame_bytes: usize,
    /// Changes in one transaction: 65,536.
    pub changes_per_commit: usize,
    /// Packets that may wait for it: 1024.
    pub packets_queued: usize,
    /// Their bytes: 4 MiB.
    pub bytes_queued: usize,
    /// Memory of its process, in bytes of its address space: 2 GiB. The variable
    /// `AXON_MEMORY_BYTES` of the environment sets another limit, or none by 0.
    pub memory_bytes: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            load: Duration::from_secs(60),
            call: Duration::from_secs(10),
            frames_per_call: 1 << 16,
            bytes_per_call: 256 << 20,
            frame_bytes: 1 << 16,
            changes_per_commit: 1 << 16,
            packets_queued: 1024,
            bytes_queued: 4 << 20,
            memory_bytes: 2 << 30,
        }
    }
}

/// Whether a program of a simulation has exceeded its time. What follows from that depends on the
/// machine, so the run has no result.
#[derive(Clone, Debug, Default)]
pub struct Overtime(Arc<OnceLock<String>>);

impl Overtime {
    /// The first program that has, and its limit.
    pub fn first(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }

    /// Keeps what has exceeded its time, if it is the first.
    pub(crate) fn set(&self, what: String) {
        let _ = self.0.set(what);
    }
}
