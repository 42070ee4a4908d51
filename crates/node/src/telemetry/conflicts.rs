//! Telemetry of address conflicts at a controller.

use super::text;
use axon_wire::vlan::VlanId;
use axon_wire::{MacAddr, NodeId, PortNo};
use core::net::IpAddr;
use serde::{Deserialize, Serialize};

/// An address that two hosts use. The first one keeps it: requests for the address lead to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IpConflict {
    /// The address that both hosts use.
    pub ip: IpAddr,
    /// The VLAN of both hosts; left out of JSON if they are in none.
    #[serde(default, skip_serializing_if = "VlanId::is_none_ref")]
    pub vlan: VlanId,
    /// The host that has the address.
    pub holder: ConflictingHost,
    /// The host that claims the address.
    pub claimant: ConflictingHost,
}

/// One of two hosts that use the same address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConflictingHost {
    /// The MAC address of the host.
    #[serde(with = "text::mac")]
    pub mac: MacAddr,
    /// The identity of the switch that the host is at.
    pub switch: NodeId,
    /// The port of that switch that the host is at, from 0.
    pub port: PortNo,
}
