//! Watermarks of queues and the PFC watchdog: `watermarks` and `watchdog` of `dcb`.

use super::text::PercentText;
use crate::units::{BytesText, SpanText};
use axon_wire::Span;
use schemars::JsonSchema;
use serde::Deserialize;

/// Lengths of a lossless queue (all frames for one port in one class) at which its senders are
/// paused and resumed, whichever sender has filled it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Watermarks {
    /// Low watermark: all senders are resumed when the queue has fallen to this length.
    pub low: BytesText,
    /// Target watermark: some senders, selected by `choose`, are paused when the queue has grown to
    /// this length; none by default.
    pub target: Option<BytesText>,
    /// High watermark: all senders are paused when the queue has grown to this length.
    pub high: BytesText,
    /// Senders that are paused at the target; max_min by default.
    pub choose: Option<Choose>,
}

/// Senders that are paused at the target watermark of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Choose {
    /// Senders above their max-min fair share, until their excess is worked off.
    MaxMin,
    /// The sender of a frame drawn from the queue when it reaches the target, and again each time
    /// that as much has arrived while it is above (paper 002 appendix A).
    Sampled,
    /// Senders with more than an equal share of the frames in the queue (appendix B).
    FairBandwidth,
}

/// PFC watchdog: detects a queue that its peer keeps paused (a PFC storm).
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Watchdog {
    /// Time after which a paused queue that holds frames is in a storm; 200ms by default. It must
    /// be longer than a pause that congestion causes; `axon prove` computes the duration of those.
    pub detection: SpanText,
    /// Part of the detection time for which the queue must have been paused, 51% to 100%; 100% by
    /// default: one sent frame restarts the detection. Less detects peers that let a frame through
    /// now and then, at the latest after twice the detection time.
    #[serde(alias = "stopped")]
    pub paused: PercentText,
    /// Action on the queue in a storm; drop by default.
    pub action: StormAction,
    /// Time without a pause from the peer after which a storm is over; 200ms by default.
    pub restoration: SpanText,
}

/// Action on a queue in a storm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StormAction {
    /// The frames of the queue are dropped.
    #[default]
    Drop,
    /// The frames are sent although the peer pauses them.
    Forward,
}

impl Default for Watchdog {
    fn default() -> Watchdog {
        let time = || SpanText(Span::from_millis(200));
        Watchdog {
            detection: time(),
            paused: PercentText(100),
            action: StormAction::Drop,
            restoration: time(),
        }
    }
}
