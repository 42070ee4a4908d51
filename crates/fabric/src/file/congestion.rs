//! Congestion signalling of queues: `dcb.congestion_notification` and `ecn` of a class.

use crate::units::BytesText;
use axon_plane::qcn::CpConfig;
use axon_wire::cn::CnmFormat;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Congestion notification (IEEE 802.1Qau): the sources of frames that fill a queue are notified of
/// the rate reduction required.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CongestionNotification {
    /// The priorities in the domain (CNPVs), at least one and at most seven.
    pub priorities: Vec<u8>,
    /// Queue length to hold (Q_EQ); 26kB by default.
    pub set_point: BytesText,
    /// Weight of a queue's growth relative to its length is 2^this; 1 by default.
    #[schemars(range(min = -10, max = 10))]
    pub weight_log2: i8,
    /// Bytes enqueued between two samples while the queue is not too long; 150kB by default.
    pub sample: BytesText,
    /// Bytes of the sampled frame after its tags that a message carries; 0 by default.
    #[schemars(range(max = 64))]
    pub header_bytes: u8,
    /// Rounding of fractions of the feedback; down by default.
    pub rounding: Rounding,
    /// Priority of the messages, which must be of a lossy class; 6 by default.
    #[schemars(range(max = 7))]
    pub cnm_priority: u8,
    /// Format of the message, where publications differ.
    #[schemars(with = "Cnm")]
    pub cnm: CnmFormat,
    /// Behaviour of simulated hosts and agents, where publications differ.
    pub reaction: Reaction,
    /// Defence of the domain against each host, by name; interior_ready by default.
    pub defence: BTreeMap<String, Defence>,
    /// Priority for frames of hosts outside the domain; by default, and for `auto`, the next lower
    /// priority that is not in the domain, or else the next higher.
    #[schemars(range(max = 7))]
    pub alternate: Option<u8>,
}

/// Rounding of a fraction.
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

/// Relation of a host to the domain (IEEE 802.1Q clause 33.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Defence {
    /// The host advertises by LLDP whether it is inside the domain, and is outside until it does;
    /// needs dcbx.
    Auto,
    /// The host does not support congestion notification; the domain is not defended against it.
    Disabled,
    /// The host is outside: its frames leave the domain's priorities, and frames to it lose their
    /// CN-TAGs.
    Edge,
    /// The host is inside, but gets no CN-TAGs.
    Interior,
    /// The host is inside and gets CN-TAGs.
    InteriorReady,
}

/// Format of a congestion notification message, where publications differ; [`CnmFormat`] as the
/// schema shows it.
#[derive(JsonSchema)]
#[schemars(description = "Format of a congestion notification message, where publications differ.")]
#[serde(default, deny_unknown_fields)]
pub struct Cnm {
    /// True if the priority of the sampled frame is in the three highest bits of its field; true by
    /// default.
    pub priority_in_high_bits: bool,
    /// True if the offset is set point minus queue; true by default.
    pub offset_falls_with_queue: bool,
    /// True if offset and delta are in units of 64 bytes; true by default.
    pub queue_in_units: bool,
    /// True if the message has a CN-TAG of flow 0 if the sampled frame had none; true by default.
    pub always_tagged: bool,
    /// True if the encapsulated part of the sampled frame begins with its EtherType; true by
    /// default.
    pub msdu_has_ethertype: bool,
    /// True if the message has the switch's source address, instead of the destination address of
    /// the sampled frame; true by default.
    pub source_is_point: bool,
    /// True if the message has the VLAN tag of the sampled frame unchanged, priority included;
    /// between switches its priority is still cnm_priority. False by default.
    pub copies_tag: bool,
    /// True if receivers refuse a message with a version other than 0, reserved bits set, no
    /// feedback or no congestion point; otherwise version and reserved bits are ignored. False by
    /// default.
    pub strict: bool,
}

/// Behaviour of a reaction point, where publications differ.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Reaction {
    /// End of fast recovery; reaches by default.
    pub increase: Increase,
    /// Point at which cycles of its counters become half as long; from_active by default.
    pub half_period: HalfPeriod,
    /// Fraction that a target far above the rate falls to; eighth by default.
    pub target_falls_to: TargetPart,
}

/// End of fast recovery, where active and hyper-active increase begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Increase {
    /// Increase once a count of cycles reaches the threshold.
    #[default]
    Reaches,
    /// Increase once a count of cycles passes the threshold: one cycle later.
    Passes,
    /// Immediately: every cycle adds the rate of active increase.
    Always,
}

/// Point at which cycles become half as long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HalfPeriod {
    /// For each counter by itself, once it is in active increase.
    #[default]
    FromActive,
    /// In hyper-active increase only.
    OnlyHyper,
}

/// Fraction of a target rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TargetPart {
    /// An eighth of the target rate.
    #[default]
    Eighth,
    /// A half of the target rate.
    Half,
}

/// ECN marking of IP packets in the queues of a class (RFC 3168): by a threshold or at random.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Ecn {
    /// Queue length above which every frame is marked.
    pub threshold: Option<BytesText>,
    /// Random marking, by the average length of the queue.
    pub red: Option<Red>,
    /// Action on frames that cannot be marked; by default, drop in a lossy class and pass in a
    /// lossless one.
    #[serde(alias = "others")]
    pub non_ect: Option<NonEct>,
}

/// Random early detection (RED), by the average length of a queue.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Red {
    /// Average queue length below which nothing is marked.
    pub min: BytesText,
    /// Average queue length from which everything is marked, or twice this length with gentle.
    pub max: BytesText,
    /// Thousandths of the frames that are marked just below `max`; 100 by default.
    #[serde(default = "hundred")]
    #[schemars(range(min = 1, max = 1000))]
    pub permille_max: u16,
    /// Weight of each frame in the average is 2^-this; 9 by default.
    #[serde(default = "nine")]
    #[schemars(range(max = 32))]
    pub weight_log2: u8,
    /// True if, from `max` to its double, the share grows to all frames instead of jumping.
    #[serde(default)]
    pub gentle: bool,
    /// True if frames are dropped where every frame would be marked.
    #[serde(default)]
    pub drop_over_max: bool,
}

/// Action on frames that cannot be marked when they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NonEct {
    /// The frames are dropped.
    Drop,
    /// The frames are queued without a mark.
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
            cnm: CnmFormat::default(),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::tagged::names;

    #[test]
    fn the_schema_of_the_message_format_has_the_keys_that_are_read() {
        let schema = schemars::schema_for!(Cnm).to_value();
        let mut keys = schema["properties"].as_object().unwrap().keys().collect::<Vec<_>>();
        let mut read = names::<CnmFormat>().to_vec();
        keys.sort();
        read.sort();
        assert_eq!(keys, read);
    }
}
