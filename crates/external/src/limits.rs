//! Limits on a program's time, memory, requests and queues.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Limits for a program in a separate process. A program whose work exceeds a limit fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Time from the start of the process until its program is loaded. Default 60 s.
    pub load: Duration,
    /// Time for each call. Default 10 s.
    pub call: Duration,
    /// Number of frames that the program may send in one call. Default 65,536.
    pub frames_per_call: u32,
    /// Number of bytes in these frames. Default 256 MiB.
    pub bytes_per_call: u64,
    /// Number of bytes in one frame. Default 65,536.
    pub frame_bytes: usize,
    /// Number of changes in one transaction. Default 65,536.
    pub changes_per_commit: usize,
    /// Number of packets that may be queued for the program. Default 1024.
    pub packets_queued: usize,
    /// Number of bytes that may be queued for the program. Default 4 MiB.
    pub bytes_queued: usize,
    /// Memory of the process, in bytes of address space. Default 2 GiB. The environment variable
    /// `AXON_MEMORY_BYTES` sets another limit, or none if it is 0.
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

/// Record of the first program in a simulation that has exceeded its time. The consequences depend
/// on the machine, so such a run has no result.
#[derive(Clone, Debug, Default)]
pub struct Overtime(Arc<OnceLock<String>>);

impl Overtime {
    /// Returns the first program that has exceeded its time, with its limit.
    pub fn first(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }

    /// Records a program that has exceeded its time, if it is the first.
    pub(crate) fn set(&self, what: String) {
        let _ = self.0.set(what);
    }
}
