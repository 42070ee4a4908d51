//! The size of route tables, as the file asks for it.

use schemars::JsonSchema;
use serde::Deserialize;

/// The tables of host ports: how many destinations they hold, and what becomes of more.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Cam {
    /// Destinations in the table of each host port, 1 to 65,536; 4096 by default.
    #[schemars(range(min = 1, max = 65_536))]
    pub entries: Option<u32>,
    /// Whether hosts get masqueraded MACs for destinations that the table has no room for; true by
    /// default. Otherwise the switch's processor forwards what it can.
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
