//! The frames that have passed between the world and a station, and those that ended there.

use axon_node::Drop;

/// Frames between the world and a station, counted over one or more incarnations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Accounts {
    /// Frames handed to it, or dropped by its NIC.
    pub received: u64,
    /// Frames it put on a wire.
    pub sent: u64,
    /// Of those, frames on a port with nothing connected.
    pub nowhere: u64,
    /// Frames that had ended, by [`Drop`], as the node reported; [`Drop::BadFcs`] of a host is its
    /// NIC's. [`Drop::PowerLost`] is what it held when its power went.
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
