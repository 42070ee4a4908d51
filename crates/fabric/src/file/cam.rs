//! The `cam` section.

use schemars::JsonSchema;
use serde::Deserialize;

/// Tables of host ports: their sizes, and masquerading for destinations beyond them.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Cam {
    /// Destinations in the table of each host port, 1 to 65,536; 4096 by default.
    #[schemars(range(min = 1, max = 65_536))]
    pub entries: Option<u32>,
    /// True if hosts get masqueraded MACs for destinations that do not fit in the table; true by
    /// default. Otherwise the switch's processor forwards as much as it can.
    pub masquerade: bool,
    /// Destinations in the route memory of each host port, by masqueraded MAC: 1 to 65,536; 4096 by
    /// default.
    #[schemars(range(min = 1, max = 65_536))]
    pub route_memory: u32,
}

impl Default for Cam {
    fn default() -> Cam {
        Cam { entries: None, masquerade: true, route_memory: 4096 }
    }
}
