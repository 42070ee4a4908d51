//! The `multicast` section.

use crate::units::SpanText;
use axon_wire::Span;
use schemars::JsonSchema;
use serde::Deserialize;

/// Handling of hosts' multicast frames, and of broadcasts that the fabric itself does not answer.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Multicast {
    /// True if multicast frames go to the members of their group; true by default. Otherwise edges
    /// drop them.
    pub deliver: bool,
    /// True if other broadcasts, and frames to all systems (224.0.0.1) and all nodes (ff02::1), go
    /// to all hosts that the sender may reach; false by default.
    pub broadcast: bool,
    /// Rate limit of multicast and broadcast frames from the hosts of one port, per second, and
    /// burst size: 1 to 1000; 500 by default.
    #[schemars(range(min = 1, max = 1000))]
    pub frames_per_second: u32,
    /// Rate limit of the copies of such frames made for one port, per second, and burst size: 512
    /// to 1000000; 10000 by default.
    #[schemars(range(min = 512, max = 1_000_000))]
    pub copies_per_second: u32,
    /// Interval between membership queries to the hosts of a port, 1s to 1h; 125s by default. A
    /// membership ends two such intervals and ten seconds after its last report.
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
