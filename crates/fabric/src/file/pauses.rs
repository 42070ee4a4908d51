//! Watermarks of queues and the PFC watchdog, as written in the file: `watermarks` and `watchdog`
//! of `dcb`.

use super::text::PercentText;
use crate::units::{BytesText, SpanText};
use axon_wire::Span;
use schemars::JsonSchema;
use serde::Deserialize;

/// Lengths of a lossless queue (all frames for one port in one class) at which its senders are
/// paused and resumed, whichever of them has filled it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Watermarks {
    /// Low watermark: a queue that has sunk to this resumes all its senders.
    pub low: BytesText,
    /// Target watermark: a queue that has grown to this pauses some of its senders, selected by
    /// `choose`; none by default.
    pub target: Option<BytesText>,
    /// High watermark: a queue that has grown to this pauses all its senders.
    pub high: BytesText,
    /// Which senders are paused at the target; max_min by default.
    pub choose: Option<Choose>,
}

/// Which senders are paused at the target watermark of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Choose {
    /// Senders above their max-min fair share, until what they sent too much is worked off.
    MaxMin,
    /// The sender of a frame drawn from the queue when it comes to the target, and again each
    /// time that as much has come while it is above (paper 002 appendix A).
    Sampled,
    /// Senders with more than an even part of the frames in the queue (appendix B).
    FairBandwidth,
}

/// PFC watchdog: detects a queue that its peer keeps paused (a PFC storm).
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Watchdog {
    /// A queue that holds frames and was paused for this time is in a storm; 200ms by default. It
    /// must be longer than a pause that congestion causes; `axon prove` computes how long those
    /// last.
    pub detection: SpanText,
    /// The part of the detection time for which the queue must have been paused, 51% to 100%; 100%
    /// by default: one frame that is sent restarts the detection. Less finds peers that let a frame
    /// through now and then, at the latest after twice the detection time.
    #[serde(alias = "stopped")]
    pub paused: PercentText,
    /// What happens to the queue in a storm; drop by default.
    pub action: StormAction,
    /// A storm is over when the peer has paused nothing for this time; 200ms by default.
    pub restoration: SpanText,
}

/// What is done in a storm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StormAction {
    /// The frames of the queue are dropped.
    #[default]
    Drop,
    /// They are sent although the peer pauses them.
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
