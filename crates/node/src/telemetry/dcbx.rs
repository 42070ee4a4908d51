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

/// Where a part of what is in force comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The port's own configuration.
    #[default]
    Local,
    /// The configuration of the peer is used.
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

/// What one port advertises, has received and has in force (IEEE 802.1AB, 802.1Q clause 38).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DcbxTelemetry {
    /// The number of the port, from 0.
    pub port: PortNo,
    /// Its name as advertised, `s1-p0`.
    pub name: String,
    /// Whose LLDPDUs are valid now.
    pub neighbours: Vec<LldpNeighbour>,
    /// In which form it advertises DCBX.
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
    /// What the only peer advertises in the standard's form.
    pub received: Option<RemoteDcbx>,
    /// How the congestion notification domain is defended, by priority; empty without a domain.
    pub defence: Vec<Defence>,
    /// What is wrong between the two ends, a sentence each.
    pub trouble: Vec<String>,
    /// LLDPDUs sent through the port.
    pub tx_lldpdus: u64,
    /// LLDPDUs received and read without an error.
    pub rx_lldpdus: u64,
    /// Frames that are no LLDPDU, and dropped.
    pub rx_malformed: u64,
    /// Frames to another of LLDP's addresses, or from this port itself, and dropped.
    pub rx_foreign: u64,
    /// Neighbours whose time was over.
    pub aged_out: u64,
}

/// A neighbour by LLDP. Text that it has chosen is without control characters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LldpNeighbour {
    /// Chassis ID; a MAC address as text.
    pub chassis: String,
    /// The Port ID that the neighbour advertises, in the same form.
    pub port: String,
    /// System name, if it advertises one.
    pub system: Option<String>,
}

/// What a peer advertises.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteDcbx {
    /// The PFC configuration that the peer advertises.
    pub pfc: Option<RemotePfc>,
    /// The ETS configuration that the peer advertises.
    pub ets: Option<RemoteEts>,
    /// How it recommends to schedule.
    pub recommended_ets: Option<Ets>,
}

/// PFC as a peer advertises it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemotePfc {
    /// Whether it follows the other end.
    pub willing: bool,
    /// The priorities with PFC.
    #[serde(with = "text::priorities")]
    pub enabled: PrioritySet,
}

/// ETS configuration as a peer advertises it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteEts {
    /// Whether it follows a recommendation.
    pub willing: bool,
    /// The traffic classes and bandwidths that the peer advertises.
    pub table: Ets,
}

/// How the congestion notification domain is defended in one priority.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Defence {
    /// The priority, 0 to 7.
    pub priority: Priority,
    /// The mode (IEEE 802.1Q clause 32.1.1), as in fabric files: `interior_ready`.
    pub mode: String,
}
