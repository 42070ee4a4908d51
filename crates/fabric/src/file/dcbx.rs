//! The `dcb.dcbx` section: LLDP and DCBX between neighbours.

use super::tagged::Tagged;
use crate::units::SpanText;
use schemars::JsonSchema;
use serde::Deserialize;

/// LLDP and DCBX at all ports of switches. Without this section switches neither advertise nor
/// receive.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Dcbx {
    /// Version of DCBX that switches advertise; ieee by default.
    pub mode: DcbxMode,
    /// Settings that switches adopt from their neighbours in place of this file's; none by default.
    pub willing: Willing,
    /// Scheduling that switches recommend to their neighbours; own (their own) by default.
    pub recommend: Recommend,
    /// Maximum number of traffic classes with PFC at a time, 0 to 8; 8 by default.
    #[schemars(range(max = 8))]
    pub pfc_classes: Option<u8>,
    /// Meaning of `pfc_classes: 0`; none by default.
    pub pfc_classes_zero: ZeroClasses,
    /// Of two ends that are both willing, the address that keeps its PFC: lower, as in the
    /// standard, or higher, as in lldpad; lower by default.
    pub tie: Tie,
    /// TLVs that are ignored if a neighbour repeats a kind of TLV in one LLDPDU: those of that
    /// kind, or all of its DCBX; kind by default.
    pub repeated: Repeated,
    /// In CEE mode, whether two ends that are both willing, or both not, must have the same
    /// priority groups; false by default.
    pub groups_must_match: bool,
    /// Priorities for applications: advertised, not acted on.
    pub applications: Vec<Application>,
    /// Interval between LLDPDUs in whole seconds, 1s to 1h; 30s by default.
    pub interval: Option<SpanText>,
    /// Switches with different DCBX settings.
    #[serde(alias = "apart")]
    pub overrides: Vec<DcbxOverride>,
}

/// Different DCBX settings of some switches. Missing keys are as for the others.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DcbxOverride {
    /// Names of the switches.
    pub switches: Vec<String>,
    /// Version of DCBX that they advertise.
    pub mode: Option<DcbxMode>,
    /// Settings that they adopt from their neighbours.
    pub willing: Option<Willing>,
    /// Scheduling that they recommend.
    pub recommend: Option<Recommend>,
    /// End that keeps its PFC, of two that are willing.
    pub tie: Option<Tie>,
    /// Lossless priorities that have PFC at these switches; all of them by default.
    pub pfc: Option<Vec<u8>>,
}

/// Version of DCBX that a port speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Mode")]
pub enum DcbxMode {
    /// The standard version (IEEE 802.1Q clause 38).
    #[default]
    Ieee,
    /// The vendors' version from before the standard (CEE, 1.01).
    Cee,
    /// The standard version; CEE with neighbours that support only that.
    Auto,
}

/// Settings that are adopted from a neighbour.
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

/// ETS configuration that is recommended to neighbours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Recommend {
    /// The ETS configuration of the switch itself.
    #[default]
    Own,
    /// No ETS configuration is recommended.
    None,
}

/// End that keeps its PFC, of two that are both willing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Tie {
    /// The end with the lower MAC address.
    #[default]
    Lower,
    /// The end with the higher MAC address.
    Higher,
}

/// Number of traffic classes with PFC at an end that advertises zero, where publications differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ZeroClasses {
    /// Zero stands for no traffic class.
    #[default]
    None,
    /// Zero stands for all eight traffic classes.
    All,
}

/// TLVs of a neighbour that are ignored if it repeats a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Repeated {
    /// The TLVs of the repeated kind are ignored.
    #[default]
    Kind,
    /// All DCBX TLVs of the LLDPDU are ignored.
    Peer,
}

/// An application, with its priority.
pub type Application = Tagged<ApplicationId, ApplicationKeys>;

/// Identity of an application, by its key.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApplicationId {
    /// EtherType, 1536 or more.
    Ethertype(u16),
    /// Port of TCP or SCTP.
    Tcp(u16),
    /// Port of UDP or DCCP.
    Udp(u16),
    /// Matches a port of TCP, SCTP, UDP or DCCP.
    Port(u16),
    /// DSCP, 0 to 63.
    Dscp(#[schemars(range(max = 63))] u8),
}

/// Priority of an application, which exactly one of the other keys selects.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Application")]
pub struct ApplicationKeys {
    /// Priority of the application, 0 to 7.
    #[schemars(range(max = 7))]
    pub priority: u8,
}
