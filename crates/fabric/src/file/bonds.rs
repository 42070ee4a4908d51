//! Bonds of ports, as the file asks for them.

use schemars::JsonSchema;
use serde::Deserialize;

/// Ports of one or more switches that lead to one host with a bond (IEEE 802.1AX, LACP).
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bond {
    /// The host of the topology that the ports lead to; its own port is one of them. Without,
    /// whatever is plugged in there.
    pub host: Option<String>,
    /// The ports, such as `s1-p0`: 2 to 16.
    #[schemars(length(min = 2, max = 16))]
    pub ports: Vec<String>,
    /// Whether the switches send LACPDUs before the host does.
    #[serde(default)]
    pub lacp: LacpMode,
}

/// Who sends LACPDUs unasked: the switches, or the host alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LacpMode {
    /// The switches send LACPDUs.
    #[default]
    Active,
    /// They answer those of the host.
    Passive,
}
