//! The ports of bonds at a switch, as LACP has shown them last.

use crate::member::Member;
use alloc::collections::BTreeMap;
use axon_wire::PortNo;

/// The ports of bonds at this switch.
#[derive(Clone, Debug, Default)]
pub(super) struct Members {
    /// What is known of each.
    pub(super) of: BTreeMap<PortNo, Member>,
}
