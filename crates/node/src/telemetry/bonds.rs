//! Telemetry of bonds at a controller.

use super::text;
use alloc::string::String;
use alloc::vec::Vec;
use axon_wire::lacp::Partner;
use axon_wire::message::MemberState;
use axon_wire::{MacAddr, NodeId, PortNo};
use serde::{Deserialize, Serialize};

/// Bond: ports of one or more switches that lead to one host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BondTelemetry {
    /// The name of the bond: that of its host, or of its first port.
    pub name: String,
    /// The partner of its ports, once LACP has shown it.
    pub partner: Option<PartnerTelemetry>,
    /// The ports of the bond, in the order of the fabric file.
    pub members: Vec<MemberTelemetry>,
}

/// Port of a bond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberTelemetry {
    /// The identity of the switch.
    pub switch: NodeId,
    /// The number of the port, from 0.
    pub port: PortNo,
    /// The state of LACP at the port, as last reported by its switch.
    pub state: MemberState,
    /// The partner of the port, if LACP shows it.
    pub partner: Option<PartnerTelemetry>,
    /// True if the partner differs from the bond's, so that the port is not used.
    pub mismatch: bool,
}

/// Partner of LACP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartnerTelemetry {
    /// The MAC address of its system identifier.
    #[serde(with = "text::mac")]
    pub system: MacAddr,
    /// The priority in its system identifier.
    pub priority: u16,
    /// The key of the partner for the ports of this bond.
    pub key: u16,
}

impl From<Partner> for PartnerTelemetry {
    fn from(partner: Partner) -> PartnerTelemetry {
        let Partner { system, key } = partner;
        PartnerTelemetry { system: system.mac, priority: system.priority, key }
    }
}
