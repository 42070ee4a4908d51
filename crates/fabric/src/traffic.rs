//! What hosts send: the `traffic` section of a fabric file.

use crate::error::Problem;
use crate::model::Fabric;
use axon_wire::Span;
use schemars::JsonSchema;
use serde::Deserialize;

/// One entry of the section, as it is written.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Entry {}

/// One entry, every host by its index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// Its name in results.
    pub name: String,
    /// When it starts, after every host has its address.
    pub start: Span,
    /// When it stops, after every host has its address; at the end of the run without.
    pub stop: Option<Span>,
    /// From which host to which, by index.
    pub flows: Vec<(usize, usize)>,
    /// What they run.
    pub app: App,
}

/// What runs between two hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum App {}

/// Resolves names and patterns.
pub(crate) fn resolve(_fabric: &Fabric, _entries: &[Entry]) -> Result<Vec<Traffic>, Problem> {
    Ok(Vec::new())
}
