//! Changes of the policy of a controller, which determines the hosts that may reach each other.

use alloc::vec::Vec;
use axon_wire::{MacAddr, NodeId, PortNo};
use core::fmt;
use serde::{Deserialize, Serialize};

/// Subject of a policy rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Subject {
    /// A host, at any port.
    Mac(MacAddr),
    /// All hosts at a port of a switch.
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

/// Pair of hosts, in any order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct HostPair(MacAddr, MacAddr);

impl HostPair {
    /// Returns the pair of these two hosts.
    pub fn of(a: MacAddr, b: MacAddr) -> HostPair {
        HostPair(a.min(b), a.max(b))
    }

    /// Returns the two hosts, the lower MAC address first.
    pub const fn hosts(self) -> [MacAddr; 2] {
        [self.0, self.1]
    }
}

/// Change of the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PolicyChange {
    /// Allows or denies two hosts to reach each other, regardless of their tenants.
    Pair(HostPair, bool),
    /// Starts or ends the quarantine of a host or a port, in which it may reach no host.
    Quarantine(Subject, bool),
}

/// Result of a change of the policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyDone {
    /// Number of removed routes.
    pub routes_removed: u64,
    /// The switches that have to remove them; the telemetry of the controller contains those that
    /// have not acknowledged it yet.
    pub switches: Vec<NodeId>,
    /// For a pair: whether the two may reach each other now, in each VLAN that both are in. A
    /// quarantine of one of them takes precedence.
    pub reach: bool,
}

/// Errors in a change of the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum PolicyRefusal {
    /// The two hosts of the pair are the same.
    #[error("both are the same host")]
    SameHost,
    /// Not a MAC address of a host.
    #[error("{0} is not the MAC address of a host")]
    NoHost(MacAddr),
    /// The controller's limit of changes is reached.
    #[error("there are {0} changes already; expected some of them to be taken back")]
    Full(u32),
}
