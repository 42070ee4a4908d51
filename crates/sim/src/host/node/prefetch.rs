//! Prefetch hints of a host.

use super::Host;

impl Host {
    /// Prefetch hint for the fields that every event needs; see `prefetch.rs`.
    pub(crate) fn prefetch(&self) -> u64 {
        let stack = &self.stack;
        let full = u64::from(self.nic_was_full) ^ u64::from(self.busy) ^ self.received;
        full ^ stack.nic.made ^ stack.nic.waiting() as u64 ^ u64::from(self.due.is_some())
    }

    /// Prefetch hint for the applications.
    pub(crate) fn prefetch_apps(&self) -> u64 {
        self.apps.prefetch()
    }
}
