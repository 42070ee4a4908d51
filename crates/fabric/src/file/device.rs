//! The `device` section: a named switch, or a pipeline by hand.

use crate::units::SpanText;
use schemars::JsonSchema;
use serde::Deserialize;

/// The switches that have a name; see `axon_fabric::device` for their stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceName {
    /// Store and forward in no time beyond that of the wires.
    Ideal,
    /// The Axon prototype: cut-through, 520 ns from a switch, 768 ns from a host (thesis 000
    /// table 4.2).
    AxonNetfpga,
    /// The same prototype in its store-and-forward mode (thesis 000 section 4.4.3).
    AxonNetfpgaStored,
    /// The commodity gigabit switch beside it: 7 us for the smallest frame, over 27 us for the
    /// largest (thesis 000 figure 4.4).
    StoreAndForward,
    /// The ServerSwitch: 4.2 us for 64 bytes, 15.8 us for 1514 (paper 004 figure 9).
    #[serde(rename = "serverswitch")]
    ServerSwitch,
}

/// A pipeline by hand.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListedDevice {
    /// Its name in results; `listed` by default.
    pub name: Option<String>,
    /// Whether a frame may leave before its tail has come.
    #[serde(default)]
    pub cut_through: bool,
    /// Bytes, the 8 of the preamble included, that must be in before the first stage of a
    /// cut-through pipeline begins; 0 by default.
    #[serde(default)]
    pub head_bytes: u64,
    /// What a frame from another switch goes through, in order: all of the ingress side first.
    #[serde(default)]
    pub from_switch: Vec<ListedStage>,
    /// What a frame from a host goes through; as `from_switch` by default.
    pub from_host: Option<Vec<ListedStage>>,
}

/// One stage of a pipeline.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListedStage {
    /// What happens in it.
    pub name: String,
    /// Before the output buffer, or behind it.
    pub side: ListedSide,
    /// How long it takes, 1s at most.
    pub time: SpanText,
    /// How much longer for each byte of the frame; nothing by default.
    pub time_per_byte: Option<SpanText>,
}

/// Where a stage stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ListedSide {
    /// Before the switch decides.
    Ingress,
    /// Between the output buffer and the wire.
    Egress,
}
