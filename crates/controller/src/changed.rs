//! Set of hosts that have changed since the last call.

use alloc::vec::Vec;
use axon_wire::MacAddr;

/// MAC addresses of changed hosts, possibly with duplicates. The list has at most about twice as
/// many entries as there are hosts.
#[derive(Clone, Debug, Default)]
pub(super) struct Changed(Vec<MacAddr>);

impl Changed {
    /// Adds a host.
    pub(super) fn push(&mut self, mac: MacAddr) {
        if self.0.len() == self.0.capacity() {
            // Duplicates are removed before the list grows. Doubling its capacity keeps the cost of
            // sorting low.
            self.sort();
            self.0.reserve(self.0.len() + 16);
        }
        self.0.push(mac);
    }

    /// Returns the hosts that have changed since the last call, sorted by MAC address and without
    /// duplicates.
    pub(super) fn take(&mut self) -> Vec<MacAddr> {
        self.sort();
        core::mem::take(&mut self.0)
    }

    fn sort(&mut self) {
        self.0.sort_unstable();
        self.0.dedup();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_nobody_takes_grows_with_the_hosts_and_not_with_their_changes() {
        let mut changed = Changed::default();
        let mac = |host: u8| MacAddr([2, 0, 0, 0, 0, host]);
        for change in 0..100_000u32 {
            changed.push(mac((change % 100) as u8));
        }
        assert!(changed.0.capacity() < 1_000, "{}", changed.0.capacity());
        assert_eq!(changed.take(), (0..100).map(mac).collect::<Vec<_>>());
        assert_eq!(changed.take(), []);
    }
}
