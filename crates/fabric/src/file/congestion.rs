//! What queues tell the sources of frames, as it is written: `dcb.congestion_notification` and
//! `ecn` of a class.

use crate::units::BytesText;
use axon_plane::qcn::CpConfig;
use axon_wire::cn::CnmFormat;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Congestion notification (IEEE 802.1Qau): the sources of frames that fill a queue are notified by
/// how much to slow down.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CongestionNotification {
    /// The priorities in the domain (CNPVs), at least one and at most seven.
    pub priorities: Vec<u8>,
    /// The length that each queue is held at (Q_EQ); 26kB by default.
    pub set_point: BytesText,
    /// The growth of a queue counts 2^this times as much as its length; 1 by default.
    #[schemars(range(min = -10, max = 10))]
    pub weight_log2: i8,
    /// What joins a queue between two samples while it is not too long; 150kB by default.
    pub sample: BytesText,
    /// Bytes of the sampled frame behind its tags that a message carries; 0 by default.
    #[schemars(range(max = 64))]
    pub header_bytes: u8,
    /// What becomes of fractions of the feedback; down by default.
    pub rounding: Rounding,
    /// The priority of the messages, of a lossy class; 6 by default.
    #[schemars(range(max = 7))]
    pub cnm_priority: u8,
    /// What sources on the message differ on.
    pub cnm: Cnm,
    /// What sources on the rates of flows differ on; what simulated hosts and agents do.
    pub reaction: Reaction,
    /// How the domain is defended against hosts, by name; interior_ready by default.
    pub defence: BTreeMap<String, Defence>,
    /// Where frames of hosts outside the domain go; by default, and for `auto`, the next lower
    /// priority that is not in the domain, or else the next higher.
    #[schemars(range(max = 7))]
    pub alternate: Option<u8>,
}

/// What becomes of a fraction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rounding {
    /// The fraction is dropped: the feedback is rounded down.
    #[default]
    Down,
    /// A half or more is rounded up, less is rounded down.
    Nearest,
    /// Any fraction is rounded up.
    Up,
}

/// What a host is to the domain (IEEE 802.1Q clause 33.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Defence {
    /// It advertises by LLDP whether it is inside the domain, and is outside until it does; needs
    /// dcbx.
    Auto,
    /// It knows nothing of congestion notification; the domain is not defended against it.
    Disabled,
    /// It is outside: its frames leave the domain's priorities, ours lose their CN-TAGs.
    Edge,
    /// It is inside, but gets no CN-TAGs.
    Interior,
    /// It is inside and gets CN-TAGs.
    InteriorReady,
}

/// How a congestion notification message is written, where sources differ.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Cnm {
    /// The priority of the sampled frame stands in the three highest bits of its word; true by
    /// default.
    pub priority_in_high_bits: bool,
    /// The offset is set point less queue; true by default.
    pub offset_falls_with_queue: bool,
    /// Offset and delta count units of 64 bytes; true by default.
    pub queue_in_units: bool,
    /// There is a CN-TAG of flow 0 where the sampled frame had none; true by default.
    pub always_tagged: bool,
    /// What is carried of the sampled frame begins with its EtherType; true by default.
    pub msdu_has_ethertype: bool,
    /// It comes from the address of the switch, or else from where the sampled frame was going;
    /// true by default.
    pub source_is_point: bool,
    /// It has the VLAN tag of the sampled frame as it is, priority included; between switches it
    /// has cnm_priority all the same. False by default.
    pub copies_tag: bool,
    /// One with another version than 0, reserved bits, no feedback or no congestion point is
    /// refused by its receivers, or else version and reserved bits are ignored; false by
    /// default.
    pub strict: bool,
}

/// What a reaction point does, where sources differ.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Reaction {
    /// When fast recovery ends; reaches by default.
    pub increase: Increase,
    /// When cycles of its counters become half as long; from_active by default.
    pub half_period: HalfPeriod,
    /// To which part of itself a target falls that is far above the rate; eighth by default.
    pub target_falls_to: TargetPart,
}

/// When fast recovery ends, and active and hyper-active increase begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Increase {
    /// When a count of cycles reaches the threshold.
    #[default]
    Reaches,
    /// When it passes the threshold: one cycle later.
    Passes,
    /// At once: every cycle adds the rate of active increase.
    Always,
}

/// When cycles become half as long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HalfPeriod {
    /// Of each counter by itself, once it is in active increase.
    #[default]
    FromActive,
    /// In hyper-active increase only.
    OnlyHyper,
}

/// A part of a target rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TargetPart {
    /// An eighth of the target rate.
    #[default]
    Eighth,
    /// A half of the target rate.
    Half,
}

/// How the queues of a class mark IP packets (RFC 3168): by a threshold or at random.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Ecn {
    /// Every frame that meets more than this is marked.
    pub threshold: Option<BytesText>,
    /// Frames are marked at random, the more the longer the queue has been.
    pub red: Option<Red>,
    /// What becomes of frames that cannot be marked; by default, drop in a lossy class and pass
    /// in a lossless one.
    #[serde(alias = "others")]
    pub non_ect: Option<NonEct>,
}

/// Random early detection (RED), by the average length of a queue.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Red {
    /// Below this average nothing is marked.
    pub min: BytesText,
    /// From this average on everything is, or with gentle from twice this on.
    pub max: BytesText,
    /// Thousandths of the frames that are marked just below `max`; 100 by default.
    #[serde(default = "hundred")]
    #[schemars(range(min = 1, max = 1000))]
    pub permille_max: u16,
    /// Each frame moves the average by 2^-this of the way; 9 by default.
    #[serde(default = "nine")]
    #[schemars(range(max = 32))]
    pub weight_log2: u8,
    /// From `max` to its double the share grows to all frames, instead of jumping.
    #[serde(default)]
    pub gentle: bool,
    /// Where everything would be marked, it is dropped instead.
    #[serde(default)]
    pub drop_over_max: bool,
}

/// What becomes of frames that cannot be marked when they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NonEct {
    /// They are dropped in place of a mark.
    Drop,
    /// They are queued without a mark.
    Pass,
}

fn hundred() -> u16 {
    100
}

fn nine() -> u8 {
    9
}

impl Default for CongestionNotification {
    fn default() -> CongestionNotification {
        let point = CpConfig::default();
        CongestionNotification {
            priorities: Vec::new(),
            set_point: BytesText(point.set_point),
            weight_log2: point.weight_log2,
            sample: BytesText(point.sample_base),
            header_bytes: point.header_octets_min,
            rounding: Rounding::Down,
            cnm_priority: 6,
            cnm: Cnm::default(),
            reaction: Reaction::default(),
            defence: BTreeMap::new(),
            alternate: None,
        }
    }
}

impl Default for Cnm {
    fn default() -> Cnm {
        let CnmFormat {
            priority_in_high_bits,
            offset_falls_with_queue,
            queue_in_units,
            always_tagged,
            msdu_has_ethertype,
            source_is_point,
            copies_tag,
            strict,
        } = CnmFormat::default();
        Cnm {
            priority_in_high_bits,
            offset_falls_with_queue,
            queue_in_units,
            always_tagged,
            msdu_has_ethertype,
            source_is_point,
            copies_tag,
            strict,
        }
    }
}

impl From<Cnm> for CnmFormat {
    fn from(cnm: Cnm) -> CnmFormat {
        let Cnm {
            priority_in_high_bits,
            offset_falls_with_queue,
            queue_in_units,
            always_tagged,
            msdu_has_ethertype,
            source_is_point,
            copies_tag,
            strict,
        } = cnm;
        CnmFormat {
            priority_in_high_bits,
            offset_falls_with_queue,
            queue_in_units,
            always_tagged,
            msdu_has_ethertype,
            source_is_point,
            copies_tag,
            strict,
        }
    }
}
