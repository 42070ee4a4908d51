//! What the ports of switches are trusted with, as it is written: `ports:`.

use schemars::JsonSchema;
use serde::Deserialize;

/// What the ports of switches are trusted with.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Ports {
    /// At which ports other switches and the controller may be; except_hosts by default.
    pub axon: AxonPorts,
    /// The priorities that hosts may use, 0 to 7; with `dcb` only. By default those that share the
    /// class of priority 0, and those that `dcb` names: lossless ones, and those of applications
    /// and of congestion notification.
    pub priorities: Option<Vec<u8>>,
    /// What other priorities become, one of those that hosts may use; 0 by default.
    #[schemars(range(max = 7))]
    pub otherwise: Option<u8>,
    /// Settings of single ports, in place of those above.
    pub overrides: Vec<PortOverride>,
}

/// At which ports other switches and the controller may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AxonPorts {
    /// At all but those of hosts that are in this file.
    #[default]
    ExceptHosts,
    /// At those of links that are in this file, and at the controller's.
    Links,
    /// Switches and the controller may be at any port.
    Any,
}

/// Ports that differ. What is not given is as for the others.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PortOverride {
    /// The ports: `s1-p4`, or a host, whose port at its switch it is.
    pub ports: Vec<String>,
    /// Whether another switch or the controller may be there.
    pub axon: Option<bool>,
    /// The priorities that hosts there may use.
    pub priorities: Option<Vec<u8>>,
    /// What other priorities become there.
    #[schemars(range(max = 7))]
    pub otherwise: Option<u8>,
}
