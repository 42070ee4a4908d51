//! LLDP and DCBX of one port.

use super::text;
use alloc::string::String;
use alloc::vec::Vec;
use axon_wire::PortNo;
use axon_wire::dcbx::Dialect;
use axon_wire::dcbx::ieee::Ets;
use axon_wire::priority::{Priority, PrioritySet};
use core::fmt;
use serde::{Deserialize, Serialize};

/// Origin of a configuration in force.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The port's own configuration.
    #[default]
    Local,
    /// The configuration of the peer.
    Peer,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Source::Local => "local",
            Source::Peer => "peer",
        })
    }
}

/// LLDP and DCBX of one port: advertised, received and in force (IEEE 802.1AB, 802.1Q clause 38).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DcbxTelemetry {
    /// The number of the port, from 0.
    pub port: PortNo,
    /// The name of the port as advertised, `s1-p0`.
    pub name: String,
    /// The neighbours whose LLDPDUs are valid now.
    pub neighbours: Vec<LldpNeighbour>,
    /// The dialect in which the port advertises DCBX.
    pub dialect: Dialect,
    /// The priorities with PFC.
    #[serde(with = "text::priorities")]
    pub pfc: PrioritySet,
    /// The end whose PFC configuration is in use.
    pub pfc_from: Source,
    /// Mapping and scheduling of traffic classes.
    pub ets: Ets,
    /// The end whose ETS configuration is in use.
    pub ets_from: Source,
    /// The advertisement of the only peer, in the standard's dialect.
    pub received: Option<RemoteDcbx>,
    /// The defence of the congestion notification domain, by priority; empty without a domain.
    pub defence: Vec<Defence>,
    /// Mismatches and errors between the two ends, a sentence each.
    pub trouble: Vec<String>,
    /// LLDPDUs sent through the port.
    pub tx_lldpdus: u64,
    /// LLDPDUs received and parsed without an error.
    pub rx_lldpdus: u64,
    /// Frames dropped because they are not valid LLDPDUs.
    pub rx_malformed: u64,
    /// Frames to another of LLDP's addresses, or from this port itself, which were dropped.
    pub rx_foreign: u64,
    /// Neighbours whose time to live has expired.
    pub aged_out: u64,
}

/// LLDP neighbour. Its advertised text is without control characters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LldpNeighbour {
    /// The chassis ID that the neighbour advertises; a MAC address as text.
    pub chassis: String,
    /// The port ID that the neighbour advertises; a MAC address as text.
    pub port: String,
    /// The system name that the neighbour advertises, if any.
    pub system: Option<String>,
}

/// Advertisement of a peer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteDcbx {
    /// The PFC configuration that the peer advertises.
    pub pfc: Option<RemotePfc>,
    /// The ETS configuration that the peer advertises.
    pub ets: Option<RemoteEts>,
    /// The ETS recommendation of the peer.
    pub recommended_ets: Option<Ets>,
}

/// PFC configuration advertised by a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemotePfc {
    /// True if the peer accepts the configuration of the other end.
    pub willing: bool,
    /// The priorities with PFC.
    #[serde(with = "text::priorities")]
    pub enabled: PrioritySet,
}

/// ETS configuration advertised by a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteEts {
    /// True if the peer accepts a recommendation.
    pub willing: bool,
    /// The traffic classes and bandwidths that the peer advertises.
    pub table: Ets,
}

/// Defence of the congestion notification domain in one priority.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Defence {
    /// The priority, 0 to 7.
    pub priority: Priority,
    /// The mode (IEEE 802.1Q clause 32.1.1), as in fabric files: `interior_ready`.
    pub mode: String,
}
