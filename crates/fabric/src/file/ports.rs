//! The `ports` section.

use schemars::JsonSchema;
use serde::Deserialize;

/// Trust settings of switch ports.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Ports {
    /// Ports at which other switches and the controller are allowed; except_hosts by default.
    pub axon: AxonPorts,
    /// Priorities allowed to hosts, 0 to 7; with `dcb` only. By default those that share the class
    /// of priority 0, and those that `dcb` names: lossless ones, and those of applications and of
    /// congestion notification.
    pub priorities: Option<Vec<u8>>,
    /// Priority that replaces all others, one of those allowed to hosts; 0 by default.
    #[schemars(range(max = 7))]
    pub otherwise: Option<u8>,
    /// Settings of single ports, which take precedence.
    pub overrides: Vec<PortOverride>,
}

/// Ports at which other switches and the controller are allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AxonPorts {
    /// All ports but those of hosts in this file.
    #[default]
    ExceptHosts,
    /// The ports of links in this file, and the controller's.
    Links,
    /// Any port of a switch.
    Any,
}

/// Different settings of some ports. Missing keys are as for the others.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PortOverride {
    /// Ports: `s1-p4`, or a host for its port at the switch.
    pub ports: Vec<String>,
    /// True if another switch or the controller is allowed at the ports.
    pub axon: Option<bool>,
    /// Priorities allowed to hosts at the ports.
    pub priorities: Option<Vec<u8>>,
    /// Priority that replaces all others at the ports.
    #[schemars(range(max = 7))]
    pub otherwise: Option<u8>,
}
