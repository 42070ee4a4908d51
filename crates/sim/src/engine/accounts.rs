//! Per-station frame counters: frames exchanged with the world, and frames that ended there.

use axon_node::Drop;

/// Frame counters between the world and a station, over one or more incarnations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Accounts {
    /// Frames delivered to the station, or dropped by its NIC.
    pub received: u64,
    /// Frames that the station sent.
    pub sent: u64,
    /// Frames sent on a port with nothing connected; included in `sent`.
    pub nowhere: u64,
    /// Frames dropped, by [`Drop`], as reported by the node. [`Drop::BadFcs`] of a host counts
    /// frames dropped by its NIC, [`Drop::PowerLost`] the frames held when the power went off.
    pub dropped: [u64; Drop::ALL.len()],
}

impl Accounts {
    pub(crate) fn add(&mut self, other: &Accounts) {
        self.received += other.received;
        self.sent += other.sent;
        self.nowhere += other.nowhere;
        for (sum, count) in self.dropped.iter_mut().zip(other.dropped) {
            *sum += count;
        }
    }
}
