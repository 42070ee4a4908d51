//! Changes of the policy of a controller: which hosts may reach which.

use alloc::vec::Vec;
use axon_wire::{MacAddr, NodeId, PortNo};
use core::fmt;
use serde::{Deserialize, Serialize};

/// What a policy says something of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Subject {
    /// A host, wherever it is.
    Mac(MacAddr),
    /// Whatever is at a port of a switch.
    Port(NodeId, PortNo),
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Mac(mac) => mac.fmt(f),
            Subject::Port(node, port) => write!(f, "port {port} of {node}"),
        }
    }
}

/// Two hosts, whichever is named first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct HostPair(MacAddr, MacAddr);

impl HostPair {
    /// The pair of these two.
    pub fn of(a: MacAddr, b: MacAddr) -> HostPair {
        HostPair(a.min(b), a.max(b))
    }

    /// The two, the lower MAC address first.
    pub const fn hosts(self) -> [MacAddr; 2] {
        [self.0, self.1]
    }
}

/// A change of the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PolicyChange {
    /// Two hosts may reach each other, or may not, whatever their tenants say.
    Pair(HostPair, bool),
    /// A host, or whatever is at a port, may reach nobody; or that ends.
    Quarantine(Subject, bool),
}

/// What came of a change of the policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyDone {
    /// Routes that were removed.
    pub routes_removed: u64,
    /// The switches that have to remove them; the telemetry of the controller shows which have not
    /// acknowledged it yet.
    pub switches: Vec<NodeId>,
    /// For a pair: whether the two may reach each other now. A quarantine of one of them goes
    /// before.
    pub reach: bool,
}

/// Why the policy was not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum PolicyRefusal {
    /// A pair is two hosts.
    #[error("both are the same host")]
    SameHost,
    /// It is no MAC address of a host.
    #[error("{0} is not the MAC address of a host")]
    NoHost(MacAddr),
    /// The controller keeps no more changes.
    #[error("there are {0} changes already; expected some of them to be taken back")]
    Full(u32),
}
