//! What a controller reports of address conflicts.

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
    /// The VLAN that both are in; left out of JSON where that is none.
    #[serde(default, skip_serializing_if = "VlanId::is_none_ref")]
    pub vlan: VlanId,
    /// The host that has the address.
    pub holder: ConflictingHost,
    /// The host that claims it.
    pub claimant: ConflictingHost,
}

/// One of two hosts that use one address.
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
