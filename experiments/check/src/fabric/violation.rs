//! Violations of invariants.

/// Violated property.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wrong {
    /// A route leads to a port where its destination is not.
    Delivery,
    /// A route goes through a switch twice.
    Loop,
    /// A newer decision was undone by an older one.
    Order,
    /// An address has two holders, or the wrong one.
    Holder,
    /// A host was given the MAC of another one for an address.
    Answer,
    /// A backup leads elsewhere than its route, or does not start at its switch.
    Backup,
    /// A quiet switch has become active (`order.rs`).
    Reduction,
}
