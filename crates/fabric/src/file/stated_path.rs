//! Paths that the file states, for a fabric without a controller.

use schemars::JsonSchema;
use serde::Deserialize;

/// Who chooses the paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "ControllerMode")]
pub enum Mode {
    /// A controller at a port of a switch.
    #[default]
    Central,
    /// No controller: every switch knows this file, and decides by itself about the routes of its
    /// own ports.
    Static,
}

/// The path between two hosts, there and back.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StatedPath {
    /// The name of the host that one end of the path is at.
    pub from: String,
    /// The name of the host that the other end is at.
    pub to: String,
    /// The switches between them in their order, from that of `from` to that of `to`. Of several
    /// links to the next switch the one at the lowest port is taken; a port such as `s1-p3` names
    /// the one that it is at.
    pub via: Vec<String>,
    /// The switches of the path that is taken when a link of `via` is down; without it the most
    /// disjoint path there is.
    pub backup: Option<Vec<String>>,
}
