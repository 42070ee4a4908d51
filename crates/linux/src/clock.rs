//! Clock of a runtime.

use axon_wire::Time;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Monotonic clock that counts from its start.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
    unix_nanos: u64,
}

impl Clock {
    /// Starts a clock at [`Time::ZERO`].
    pub fn start() -> Clock {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        Clock { start: Instant::now(), unix_nanos: unix.as_nanos() as u64 }
    }

    /// Returns the time since the start, which never decreases.
    pub fn now(&self) -> Time {
        Time::from_nanos(self.start.elapsed().as_nanos() as u64)
    }

    /// Converts `time` to nanoseconds since 1970, based on the wall clock at the start.
    pub(crate) fn unix_nanos(&self, time: Time) -> u64 {
        self.unix_nanos + time.as_nanos()
    }
}
