//! Limit on how often congestion messages pause the hosts of a port.

use alloc::collections::BTreeMap;
use axon_wire::PortNo;

/// Bytes sent by the hosts of each port at their last pause.
#[derive(Debug, Default)]
pub(super) struct PauseMeter(BTreeMap<PortNo, u64>);

impl PauseMeter {
    /// Returns whether hosts that have sent `sent` bytes in total may be paused for a frame of
    /// `bytes_max` bytes now, and records the pause if so.
    pub(super) fn admit(&mut self, port: PortNo, sent: u64, bytes_max: u64) -> bool {
        let paused_at = self.0.get(&port);
        let admitted = paused_at.is_none_or(|&at| sent >= at.saturating_add(bytes_max));
        if admitted {
            self.0.insert(port, sent);
        }
        admitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_paused_for_no_longer_than_they_send() {
        let mut meter = PauseMeter::default();
        let port = PortNo(1);
        assert!(meter.admit(port, 60, 1514), "the first is granted");
        assert!(!meter.admit(port, 60, 1514) && !meter.admit(port, 1573, 1514));
        assert!(meter.admit(PortNo(2), 60, 1514), "another port");
        assert!(meter.admit(port, 1574, 1514));
        assert!(!meter.admit(port, 3087, 1514));
    }
}
