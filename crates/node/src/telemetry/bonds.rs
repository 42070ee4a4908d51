//! What a controller knows of bonds.

use super::text;
use alloc::string::String;
use alloc::vec::Vec;
use axon_wire::lacp::Partner;
use axon_wire::message::MemberState;
use axon_wire::{MacAddr, NodeId, PortNo};
use serde::{Deserialize, Serialize};

/// Ports of one or more switches that lead to one host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BondTelemetry {
    /// The name of the bond: that of its host, or of its first port.
    pub name: String,
    /// Whom its ports lead to, once LACP has shown it.
    pub partner: Option<PartnerTelemetry>,
    /// Its ports, in the order of the fabric file.
    pub members: Vec<MemberTelemetry>,
}

/// A port of a bond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberTelemetry {
    /// The identity of the switch.
    pub switch: NodeId,
    /// The number of the port, from 0.
    pub port: PortNo,
    /// The state of LACP at the port, as its switch reported it last.
    pub state: MemberState,
    /// Whom it leads to, if LACP shows it.
    pub partner: Option<PartnerTelemetry>,
    /// Whether that is another one than the bond's: the port is not used.
    pub mismatch: bool,
}

/// A partner of LACP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartnerTelemetry {
    /// The MAC address of its system identifier.
    #[serde(with = "text::mac")]
    pub system: MacAddr,
    /// The priority in its system identifier.
    pub priority: u16,
    /// The key that it gives the ports of this bond.
    pub key: u16,
}

impl From<Partner> for PartnerTelemetry {
    fn from(partner: Partner) -> PartnerTelemetry {
        let Partner { system, key } = partner;
        PartnerTelemetry { system: system.mac, priority: system.priority, key }
    }
}
