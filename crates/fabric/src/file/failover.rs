//! The `failover` section.

use schemars::JsonSchema;
use serde::Deserialize;

/// Local repair at edges when a link of a route is down.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Failover {
    /// True if each route has a backup, which its edge switches to at once; true by default. With
    /// lossless priorities only the routers `up_down` and `layered` have backups.
    pub backup: bool,
}

impl Default for Failover {
    fn default() -> Failover {
        Failover { backup: true }
    }
}
