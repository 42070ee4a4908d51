//! The `faults` section.

use super::text::BitErrorsText;
use crate::units::{RateText, SpanText};
use schemars::JsonSchema;
use serde::Deserialize;

/// Something that breaks or comes back. Beside `at` or `after_start`, exactly one key says what:
/// `down`, `up`, `silent`, `silent_from`, `crash`, `start`, `stop`, `continue`, `unplug`, `plug`,
/// `flap`, `loss_ppm`, `bit_error_rate`, `rate`, `slow` or `fast`; the others belong to one of
/// those.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// When, counted from power on; either this or `after_start`.
    pub at: Option<SpanText>,
    /// When, counted from when the network is ready and the traffic, or the first round of
    /// pings, begins.
    pub after_start: Option<SpanText>,
    /// A link between two switches: both ends lose carrier.
    pub down: Option<[String; 2]>,
    /// A link recovers from `down`, `silent` or `silent_from`.
    pub up: Option<[String; 2]>,
    /// A link drops all frames, but its ends keep carrier.
    pub silent: Option<[String; 2]>,
    /// A link drops all frames that its first end sends; those of the other end pass, and both
    /// ends keep carrier.
    pub silent_from: Option<[String; 2]>,
    /// A switch or the controller loses power.
    pub crash: Option<String>,
    /// A crashed switch or controller starts again with empty memory.
    pub start: Option<String>,
    /// A switch or the controller is suspended, as by SIGSTOP: its ports keep carrier,
    /// what comes in waits, no timer runs.
    pub stop: Option<String>,
    /// A stopped switch or controller goes on, with all that has come in.
    #[serde(rename = "continue")]
    pub go_on: Option<String>,
    /// A host's cable is unplugged at its switch.
    pub unplug: Option<String>,
    /// The cable of an unplugged host is plugged in again.
    pub plug: Option<String>,
    /// A link that goes down and comes back again and again: needs `down_for`, and with more
    /// `times` than one, `every`. Hosts' links too.
    pub flap: Option<[String; 2]>,
    /// How long a flapping link is down each time.
    pub down_for: Option<SpanText>,
    /// From one time that a flapping link goes down to the next.
    pub every: Option<SpanText>,
    /// How often a flapping link goes down; once by default.
    pub times: Option<u32>,
    /// Frames that a link loses per million from then on; needs `between`.
    pub loss_ppm: Option<u32>,
    /// Share of bits that a link flips from then on; needs `between`.
    pub bit_error_rate: Option<BitErrorsText>,
    /// The two ends of the link that `loss_ppm`, `bit_error_rate` or `rate` is about: switches,
    /// hosts, the controller, or ports.
    pub between: Option<[String; 2]>,
    /// A host that from then on takes frames from its port no faster than `rate`.
    pub slow: Option<String>,
    /// The rate of a link from then on, both ways; needs `between`. What its ends have derived from
    /// its rate, such as the time of a quantum, stays as it was. With `slow`, how fast that host
    /// takes frames.
    pub rate: Option<RateText>,
    /// A slow host takes frames as fast as they come again.
    pub fast: Option<String>,
}
