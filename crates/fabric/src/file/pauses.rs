//! When senders are stopped, beside what the memory says: `watermarks` and `watchdog` of `dcb`.

use super::text::PercentText;
use crate::units::{BytesText, SpanText};
use axon_wire::Span;
use schemars::JsonSchema;
use serde::Deserialize;

/// Lengths of a lossless queue (what waits for one port in one class) at which its senders are
/// stopped and let go on, whoever has filled it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Watermarks {
    /// A queue that has sunk to this lets all its senders go on.
    pub low: BytesText,
    /// A queue that has grown to this stops some of its senders, as `choose` says; nobody if not
    /// said.
    pub target: Option<BytesText>,
    /// A queue that has grown to this stops all its senders.
    pub high: BytesText,
    /// Who is stopped at the target; max_min if not said.
    pub choose: Option<Choose>,
}

/// Who is stopped at the target of a queue.
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

/// What is done about a peer that does not let a queue go on.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Watchdog {
    /// A queue that holds frames and was stopped for so long is in a storm; 200ms if not said.
    /// Longer than an honest stop lasts, or it is refused; `axon prove` reckons how long that is.
    pub detection: SpanText,
    /// The part of the detection time for which the queue must have been stopped, 51% to 100%;
    /// 100% if not said: one frame that is let go begins it anew. Less finds peers that let a
    /// frame go now and then, at the latest after twice the detection time.
    #[serde(alias = "stopped")]
    pub paused: PercentText,
    /// What is done in a storm; drop if not said.
    pub action: StormAction,
    /// A storm is over when the peer has stopped nothing for so long; 200ms if not said.
    pub restoration: SpanText,
}

/// What is done in a storm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StormAction {
    /// The frames of the queue are dropped.
    #[default]
    Drop,
    /// They are sent, whatever the peer says.
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
