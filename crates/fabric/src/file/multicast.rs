//! Frames to groups and to all, as the file wants them: `multicast:`.

use crate::units::SpanText;
use axon_wire::Span;
use schemars::JsonSchema;
use serde::Deserialize;

/// What becomes of hosts' frames to groups, and of broadcasts that the fabric does not serve.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Multicast {
    /// Whether frames to groups go to their members; true by default. Otherwise they end at the
    /// edge.
    pub deliver: bool,
    /// Whether other broadcasts, and frames to all systems (224.0.0.1) and all nodes (ff02::1), go
    /// to all hosts that the sender may reach; false by default.
    pub broadcast: bool,
    /// Frames to groups and to all that the hosts of one port may send in a second, and as many at
    /// once after a rest: 1 to 1000; 500 by default.
    #[schemars(range(min = 1, max = 1000))]
    pub frames_per_second: u32,
    /// Copies of such frames that are made for one port in a second, and as many at once after a
    /// rest: 512 to 1000000; 10000 by default.
    #[schemars(range(min = 512, max = 1_000_000))]
    pub copies_per_second: u32,
    /// From one question to the hosts of a port for their groups to the next, 1s to 1h; 125s by
    /// default. A membership ends two such intervals and ten seconds after its last report.
    pub query_interval: SpanText,
}

impl Default for Multicast {
    fn default() -> Multicast {
        Multicast {
            deliver: true,
            broadcast: false,
            frames_per_second: 500,
            copies_per_second: 10_000,
            query_interval: SpanText(Span::from_secs(125)),
        }
    }
}
