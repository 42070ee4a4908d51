//! The `bonds` section.

use schemars::JsonSchema;
use serde::Deserialize;

/// Ports of one or more switches that lead to one host with a bond (IEEE 802.1AX, LACP).
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bond {
    /// Host of the topology that the ports lead to; its own port is one of them. Without it, any
    /// host may be plugged in.
    pub host: Option<String>,
    /// Member ports, such as `s1-p0`: 2 to 16.
    #[schemars(length(min = 2, max = 16))]
    pub ports: Vec<String>,
    /// LACP mode of the switches: send LACPDUs first, or only after the host has.
    #[serde(default)]
    pub lacp: LacpMode,
}

/// LACP mode of the switches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LacpMode {
    /// The switches send LACPDUs.
    #[default]
    Active,
    /// The switches only answer the LACPDUs of the host.
    Passive,
}
