//! The `faults` section.

use super::text::BitErrorsText;
use crate::units::{RateText, SpanText};
use schemars::JsonSchema;
use serde::Deserialize;

/// A fault or a recovery. Beside `at` or `after_start`, exactly one key gives the kind: `down`,
/// `up`, `silent`, `silent_from`, `crash`, `start`, `stop`, `continue`, `unplug`, `plug`, `flap`,
/// `loss_ppm`, `bit_error_rate`, `rate`, `slow` or `fast`; the others belong to one of those.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// Time, counted from power on; either this or `after_start`.
    pub at: Option<SpanText>,
    /// Time, counted from when the network is ready and the traffic, or the first round of pings,
    /// begins.
    pub after_start: Option<SpanText>,
    /// A link between two switches that goes down: both ends lose carrier.
    pub down: Option<[String; 2]>,
    /// A link that recovers from `down`, `silent` or `silent_from`.
    pub up: Option<[String; 2]>,
    /// A link that drops all frames, while its ends keep carrier.
    pub silent: Option<[String; 2]>,
    /// A link that drops all frames that its first end sends; those of the other end pass, and both
    /// ends keep carrier.
    pub silent_from: Option<[String; 2]>,
    /// A switch or the controller that loses power.
    pub crash: Option<String>,
    /// A crashed switch or controller that starts again with empty memory.
    pub start: Option<String>,
    /// A switch or the controller that is suspended, as by SIGSTOP: its ports keep carrier,
    /// incoming frames wait, no timer runs.
    pub stop: Option<String>,
    /// A stopped switch or controller that resumes, with all frames that have come in.
    #[serde(rename = "continue")]
    pub go_on: Option<String>,
    /// A host whose cable is unplugged at its switch.
    pub unplug: Option<String>,
    /// An unplugged host whose cable is plugged in again.
    pub plug: Option<String>,
    /// A link, hosts' links included, that goes down and comes back repeatedly: needs `down_for`,
    /// and with `times` above one, `every`.
    pub flap: Option<[String; 2]>,
    /// Duration of each outage of a flapping link.
    pub down_for: Option<SpanText>,
    /// Interval between two outages of a flapping link, from start to start.
    pub every: Option<SpanText>,
    /// Number of outages of a flapping link; 1 by default.
    pub times: Option<u32>,
    /// Frames that a link loses per million from then on; needs `between`.
    pub loss_ppm: Option<u32>,
    /// Share of bits that a link flips from then on; needs `between`.
    pub bit_error_rate: Option<BitErrorsText>,
    /// Two ends of the link that `loss_ppm`, `bit_error_rate` or `rate` changes: switches, hosts,
    /// the controller, or ports.
    pub between: Option<[String; 2]>,
    /// A host that from then on takes frames from its port no faster than `rate`.
    pub slow: Option<String>,
    /// Rate of a link from then on, in both directions; needs `between`. Values that its ends
    /// derived from the old rate, such as the time of a quantum, stay unchanged. With `slow`, the
    /// rate at which that host takes frames.
    pub rate: Option<RateText>,
    /// A slow host that again takes frames as fast as they come.
    pub fast: Option<String>,
}
