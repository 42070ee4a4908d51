//! Telemetry of a switch in a fabric without a controller.

use super::conflicts::IpConflict;
use super::control::{ControllerCounters, ControllerHost, DhcpCounters, PolicyTelemetry};
use alloc::vec::Vec;
use axon_wire::PortNo;
use axon_wire::message::LinkEnd;
use serde::{Deserialize, Serialize};

/// State and decisions of a switch in a fabric without a controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StaticTelemetry {
    /// Number of switches in the fabric file, this one included.
    pub switches: u64,
    /// Number of other switches from which it has received messages.
    pub met: u64,
    /// Ports of this switch with a link in the fabric file that is missing.
    pub missing: Vec<PortNo>,
    /// Ports of this switch whose cables differ from the fabric file.
    pub miscabled: Vec<Miscabled>,
    /// The known hosts of the fabric.
    pub hosts: Vec<ControllerHost>,
    /// Addresses that two hosts use now, one at this switch and one that has had it before; 256 at
    /// most.
    pub ip_conflicts: Vec<IpConflict>,
    /// Number of routes in place at its own ports.
    pub routes: u64,
    /// The policy at this switch: the hosts that may reach each other.
    pub policy: PolicyTelemetry,
    /// The counters of its work in place of a controller.
    pub counters: ControllerCounters,
    /// The counters of its DHCP server.
    pub dhcp: DhcpCounters,
}

/// Cable that differs from the fabric file. Its link is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Miscabled {
    /// The port of this switch.
    pub port: PortNo,
    /// The other end by the fabric file; null if it has no link there.
    pub expected: Option<LinkEnd>,
    /// The other end found: the identity of the other switch and its port.
    pub found: LinkEnd,
}
