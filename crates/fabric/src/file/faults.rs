//! The `faults` section.

use super::tagged::Tagged;
use super::text::BitErrorsText;
use crate::units::{RateText, SpanText};
use schemars::JsonSchema;
use serde::Deserialize;

/// An entry of the faults section. A `rate` beside `slow` belongs to that.
pub type Fault = Tagged<FaultWhat, FaultWhen>;

/// Kind of a fault, by its key.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FaultWhat {
    /// A link between two switches that goes down: both ends lose carrier.
    Down([String; 2]),
    /// A link that recovers from `down`, `silent` or `silent_from`.
    Up([String; 2]),
    /// A link that drops all frames, while its ends keep carrier.
    Silent([String; 2]),
    /// A link that drops all frames that its first end sends; those of the other end pass, and both
    /// ends keep carrier.
    SilentFrom([String; 2]),
    /// A switch or the controller that loses power.
    Crash(String),
    /// A crashed switch or controller that starts again with empty memory.
    Start(String),
    /// A switch or the controller that is suspended, as by SIGSTOP: its ports keep carrier,
    /// incoming frames wait, no timer runs.
    Stop(String),
    /// A stopped switch or controller that resumes, with all frames that have come in.
    Continue(String),
    /// A host whose cable is unplugged at its switch.
    Unplug(String),
    /// An unplugged host whose cable is plugged in again.
    Plug(String),
    /// A link, hosts' links included, that goes down and comes back repeatedly: needs `down_for`,
    /// and with `times` above one, `every`.
    Flap([String; 2]),
    /// Frames that a link loses per million from then on; needs `between`.
    LossPpm(u32),
    /// Share of bits that a link flips from then on; needs `between`.
    BitErrorRate(BitErrorsText),
    /// Rate of a link from then on, in both directions; needs `between`. Values that its ends
    /// derived from the old rate, such as the time of a quantum, stay unchanged. With `slow`, the
    /// rate at which that host takes frames.
    Rate(RateText),
    /// A host that from then on takes frames from its port no faster than `rate`.
    Slow(String),
    /// A slow host that again takes frames as fast as they come.
    Fast(String),
}

/// A fault or a recovery. Beside `at` or `after_start`, exactly one key gives the kind: `down`,
/// `up`, `silent`, `silent_from`, `crash`, `start`, `stop`, `continue`, `unplug`, `plug`, `flap`,
/// `loss_ppm`, `bit_error_rate`, `rate`, `slow` or `fast`; the others belong to one of those.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Fault")]
pub struct FaultWhen {
    /// Time, counted from power on; either this or `after_start`.
    pub at: Option<SpanText>,
    /// Time, counted from when the network is ready and the traffic, or the first round of pings,
    /// begins.
    pub after_start: Option<SpanText>,
    /// Duration of each outage of a flapping link.
    pub down_for: Option<SpanText>,
    /// Interval between two outages of a flapping link, from start to start.
    pub every: Option<SpanText>,
    /// Number of outages of a flapping link; 1 by default.
    pub times: Option<u32>,
    /// Two ends of the link that `loss_ppm`, `bit_error_rate` or `rate` changes: switches, hosts,
    /// the controller, or ports.
    pub between: Option<[String; 2]>,
}
