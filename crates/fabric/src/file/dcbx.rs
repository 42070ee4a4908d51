//! LLDP and DCBX between neighbours, as written in the file: `dcb.dcbx`.

use crate::units::SpanText;
use schemars::JsonSchema;
use serde::Deserialize;

/// LLDP and DCBX at all ports of switches. Without this section they neither advertise nor
/// receive.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Dcbx {
    /// Which version they advertise; ieee by default.
    pub mode: Mode,
    /// What they adopt from their neighbours, instead of what this file configures; none by
    /// default.
    pub willing: Willing,
    /// The scheduling that they recommend to their neighbours: own is what they do themselves; own
    /// by default.
    pub recommend: Recommend,
    /// How many traffic classes may have PFC at a time, 0 to 8; 8 by default.
    #[schemars(range(max = 8))]
    pub pfc_classes: Option<u8>,
    /// What `pfc_classes: 0` means; none by default.
    pub pfc_classes_zero: ZeroClasses,
    /// Of two ends that are both willing, the one with this address keeps its PFC: lower, as in
    /// the standard, or higher, as lldpad has it; lower by default.
    pub tie: Tie,
    /// What is ignored if a neighbour sends a kind of TLV twice in one LLDPDU: that kind, or all of
    /// its DCBX; kind by default.
    pub repeated: Repeated,
    /// In the older form, whether two ends that are both willing, or both not, must have the same
    /// priority groups; they need not by default.
    pub groups_must_match: bool,
    /// Which priorities applications are to have: advertised, not acted on.
    pub applications: Vec<Application>,
    /// From one LLDPDU to the next, in whole seconds, 1s to 1h; 30s by default.
    pub interval: Option<SpanText>,
    /// Switches that advertise something else.
    #[serde(alias = "apart")]
    pub overrides: Vec<DcbxOverride>,
}

/// Switches that advertise something else than the others. What is not given is as for those.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DcbxOverride {
    /// Names of these switches.
    pub switches: Vec<String>,
    /// Which version they advertise.
    pub mode: Option<Mode>,
    /// What they adopt from their neighbours.
    pub willing: Option<Willing>,
    /// The scheduling that they recommend.
    pub recommend: Option<Recommend>,
    /// Which end keeps its PFC, of two that are willing.
    pub tie: Option<Tie>,
    /// The priorities that have PFC there, of those that are lossless; all of them by default.
    pub pfc: Option<Vec<u8>>,
}

/// A form of DCBX.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// The standard's (IEEE 802.1Q clause 38).
    #[default]
    Ieee,
    /// The vendors' version before the standard (CEE, 1.01).
    Cee,
    /// The standard's; CEE with neighbours that know only that.
    Auto,
}

/// What is adopted from the neighbour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Willing {
    /// No configuration of the neighbour is adopted.
    #[default]
    None,
    /// The traffic classes and their shares (ETS) are adopted.
    Ets,
    /// The priorities with PFC are adopted.
    Pfc,
    /// Both ETS and PFC are adopted.
    Both,
}

/// The ETS configuration that is recommended to neighbours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Recommend {
    /// The ETS configuration of the switch itself.
    #[default]
    Own,
    /// No ETS configuration is recommended.
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

/// How many traffic classes may have PFC at an end that advertises zero; sources differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ZeroClasses {
    /// Zero stands for no traffic class.
    #[default]
    None,
    /// Zero stands for all eight traffic classes.
    All,
}

/// What is ignored of a neighbour that sends a kind of TLV twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Repeated {
    /// The TLVs of the repeated kind are ignored.
    #[default]
    Kind,
    /// All DCBX TLVs of the LLDPDU are ignored.
    Peer,
}

/// An application, given by exactly one of the other keys, and its priority.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Application {
    /// The priority of the application, 0 to 7.
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
