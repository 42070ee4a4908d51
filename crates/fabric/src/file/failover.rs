//! Backup routes, as the file asks for them.

use schemars::JsonSchema;
use serde::Deserialize;

/// What edges do by themselves when a link of a route is down.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Failover {
    /// Whether each route has a backup beside it, which its edge takes at once; true by default.
    /// With lossless priorities only the routers `up_down` and `layered` give any.
    pub backup: bool,
}

impl Default for Failover {
    fn default() -> Failover {
        Failover { backup: true }
    }
}
