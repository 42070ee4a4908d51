//! LACP state of a switch's bond ports.

use alloc::collections::BTreeMap;
use axon_link::member::Member;
use axon_wire::PortNo;

/// LACP state of the bond ports of this switch.
#[derive(Clone, Debug, Default)]
pub(super) struct Members {
    /// State of each port.
    pub(super) of: BTreeMap<PortNo, Member>,
}
