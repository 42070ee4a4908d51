//! The `controller.mode` setting and the `paths` section.

use schemars::JsonSchema;
use serde::Deserialize;

/// Nodes that choose the paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "ControllerMode")]
pub enum Mode {
    /// A controller at a port of a switch.
    #[default]
    Central,
    /// No controller: every switch has this file, and computes the routes of its own ports.
    Static,
}

/// Path between two hosts, for both directions.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StatedPath {
    /// Name of the host at one end of the path.
    pub from: String,
    /// Name of the host at the other end.
    pub to: String,
    /// Switches of the path in order, from that of `from` to that of `to`. Of several links to the
    /// next switch, the one at the lowest port is used; a port such as `s1-p3` selects the link at
    /// that port.
    pub via: Vec<String>,
    /// Switches of the path that is used when a link of `via` is down; by default the most disjoint
    /// path.
    pub backup: Option<Vec<String>>,
}
