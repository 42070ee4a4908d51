//! Violations of invariants.

/// Violated invariant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wrong {
    /// A route leads to a port where its destination is not connected.
    Delivery,
    /// A route passes a switch twice.
    Loop,
    /// A newer decision was undone by an older one.
    Order,
    /// An address has two holders, or the wrong one.
    Holder,
    /// A host was given the MAC address of another host for an address.
    Answer,
    /// A backup does not lead to the same place as its route, or does not start at its switch.
    Backup,
    /// A quiet switch has become active (`order.rs`).
    Reduction,
}
