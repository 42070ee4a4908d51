//! What switches say of Data Center Bridging to their neighbours, as it is written: `dcb.dcbx`.

use crate::units::SpanText;
use schemars::JsonSchema;
use serde::Deserialize;

/// Switches speak LLDP and DCBX at all their ports. Without this section they neither speak nor
/// listen.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Dcbx {
    /// Which form they speak; ieee if not said.
    pub mode: Mode,
    /// What they do as their neighbours say, instead of what this file says; none if not said.
    pub willing: Willing,
    /// What they recommend their neighbours for the turns of classes: own is what they do
    /// themselves; own if not said.
    pub recommend: Recommend,
    /// How many traffic classes may have PFC at a time, 0 to 8; 8 if not said.
    #[schemars(range(max = 8))]
    pub pfc_classes: Option<u8>,
    /// What `pfc_classes: 0` means; none if not said.
    pub pfc_classes_zero: ZeroClasses,
    /// Of two ends that are both willing, the one with this address keeps its PFC: lower, as in
    /// the standard, or higher, as lldpad has it; lower if not said.
    pub tie: Tie,
    /// What is not read if a neighbour says a kind of TLV twice in one LLDPDU: that kind, or
    /// nothing of its DCBX; kind if not said.
    pub repeated: Repeated,
    /// In the older form, whether two ends that are both willing, or both not, must have the same
    /// priority groups; they need not if not said.
    pub groups_must_match: bool,
    /// Which priorities applications are to have: told, not acted on.
    pub applications: Vec<Application>,
    /// From one LLDPDU to the next, in whole seconds, 1s to 1h; 30s if not said.
    pub interval: Option<SpanText>,
    /// Switches that differ from the others.
    #[serde(alias = "apart")]
    pub overrides: Vec<DcbxOverride>,
}

/// Switches that differ from the others in what they say.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DcbxOverride {
    /// Their names.
    pub switches: Vec<String>,
    /// As for the others.
    pub mode: Option<Mode>,
    /// As for the others.
    pub willing: Option<Willing>,
    /// As for the others.
    pub recommend: Option<Recommend>,
    /// As for the others.
    pub tie: Option<Tie>,
    /// The priorities that have PFC there, of those that are lossless; all of them if not said.
    pub pfc: Option<Vec<u8>>,
}

/// A form of DCBX.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// The standard's (IEEE 802.1Q clause 38).
    #[default]
    Ieee,
    /// What vendors had before (version 1.01).
    Cee,
    /// The standard's; CEE with neighbours that know only that.
    Auto,
}

/// What is done as the neighbour says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Willing {
    /// Nothing.
    #[default]
    None,
    /// Classes and their shares.
    Ets,
    /// PFC.
    Pfc,
    /// Both.
    Both,
}

/// What is recommended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Recommend {
    /// What the switch does itself.
    #[default]
    Own,
    /// Nothing.
    None,
}

/// Who keeps its PFC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Tie {
    /// The end with the lower MAC address.
    #[default]
    Lower,
    /// The end with the higher.
    Higher,
}

/// For how many traffic classes an end has PFC that says zero; sources are not sure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ZeroClasses {
    /// For none.
    #[default]
    None,
    /// For all eight.
    All,
}

/// What is not read of a neighbour that says a kind of TLV twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Repeated {
    /// That kind.
    #[default]
    Kind,
    /// All that it says by DCBX.
    Peer,
}

/// An application and its priority; told by exactly one of the others.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Application {
    /// 0 to 7.
    #[schemars(range(max = 7))]
    pub priority: u8,
    /// By EtherType, 1536 or more.
    pub ethertype: Option<u16>,
    /// By a port of TCP or SCTP.
    pub tcp: Option<u16>,
    /// By a port of UDP or DCCP.
    pub udp: Option<u16>,
    /// By a port of any of them.
    pub port: Option<u16>,
    /// By DSCP, 0 to 63.
    #[schemars(range(max = 63))]
    pub dscp: Option<u8>,
}
