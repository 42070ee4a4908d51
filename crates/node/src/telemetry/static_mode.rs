//! What a switch reports of itself in a fabric without a controller.

use super::conflicts::IpConflict;
use super::control::{ControllerCounters, ControllerHost, DhcpCounters, PolicyTelemetry};
use alloc::vec::Vec;
use axon_wire::PortNo;
use axon_wire::message::LinkEnd;
use serde::{Deserialize, Serialize};

/// What a switch knows and decides by itself, in a fabric without a controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StaticTelemetry {
    /// How many switches the fabric file has, this one included.
    pub switches: u64,
    /// How many of the others it has heard of.
    pub met: u64,
    /// Its ports at which the file has a link that is not there.
    pub missing: Vec<PortNo>,
    /// Its ports whose cables lead elsewhere than the file says.
    pub miscabled: Vec<Miscabled>,
    /// The hosts of the fabric that it knows.
    pub hosts: Vec<ControllerHost>,
    /// Addresses that two hosts use now, one at this switch and one that has had it before; 256 at
    /// most.
    pub ip_conflicts: Vec<IpConflict>,
    /// How many routes at its own ports stand.
    pub routes: u64,
    /// Which hosts may reach which, at this switch.
    pub policy: PolicyTelemetry,
    /// What it has done in the place of a controller.
    pub counters: ControllerCounters,
    /// What its DHCP server has done.
    pub dhcp: DhcpCounters,
}

/// A cable that is not as the fabric file has it. Its link is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Miscabled {
    /// The port of this switch.
    pub port: PortNo,
    /// Where the file has it lead; null if it has no link there.
    pub expected: Option<LinkEnd>,
    /// Where the port leads: the identity of the other switch and its port.
    pub found: LinkEnd,
}
