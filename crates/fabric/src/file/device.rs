//! The `device` section: a named switch, or a pipeline listed by hand.

use crate::units::SpanText;
use schemars::JsonSchema;
use serde::Deserialize;

/// Named switches; see `axon_fabric::device` for their stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceName {
    /// Store and forward without delay beyond that of the wires.
    Ideal,
    /// The Axon prototype: cut-through, 520 ns from a switch, 768 ns from a host (thesis 000
    /// table 4.2).
    AxonNetfpga,
    /// The Axon prototype in store-and-forward mode (thesis 000 section 4.4.3).
    AxonNetfpgaStored,
    /// The commodity gigabit switch that the thesis compares: 7 us for the smallest frame, over 27
    /// us for the largest (thesis 000 figure 4.4).
    StoreAndForward,
    /// The ServerSwitch: 4.2 us for 64 bytes, 15.8 us for 1514 (paper 004 figure 9).
    #[serde(rename = "serverswitch")]
    ServerSwitch,
}

/// A pipeline listed by hand.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListedDevice {
    /// Name in results; `listed` by default.
    pub name: Option<String>,
    /// True if a frame may leave before its tail has arrived.
    #[serde(default)]
    pub cut_through: bool,
    /// Bytes, 8 of preamble included, that must have arrived before the first stage of a
    /// cut-through pipeline begins; 0 by default.
    #[serde(default)]
    pub head_bytes: u64,
    /// Stages for a frame from another switch, in order; the ingress side first.
    #[serde(default)]
    pub from_switch: Vec<ListedStage>,
    /// Stages for a frame from a host; as `from_switch` by default.
    pub from_host: Option<Vec<ListedStage>>,
}

/// One stage of a pipeline.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListedStage {
    /// Name of the stage.
    pub name: String,
    /// Side of the output buffer.
    pub side: ListedSide,
    /// Duration, 1s at most.
    pub time: SpanText,
    /// Additional duration for each byte of the frame; none by default.
    pub time_per_byte: Option<SpanText>,
}

/// Position of a stage relative to the output buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ListedSide {
    /// Before the forwarding decision.
    Ingress,
    /// Between the output buffer and the wire.
    Egress,
}
