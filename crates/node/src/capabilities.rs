//! Capabilities of data planes, and requirements of fabrics.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use axon_wire::probe::RECORDS_BYTES_MAX;
use axon_wire::{FrameBuf, HopWidth, Rate};
use core::fmt;
use serde::{Deserialize, Serialize};

/// Capabilities of a data plane. A control plane reads them once, at its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Name of the data plane: `software`, `reference`.
    pub name: &'static str,
    /// Number of ports, numbered from 0.
    pub ports: u16,
    /// Bits of a hop in headers.
    pub hop_width: HopWidth,
    /// The longest Ethernet frame accepted from a host, in bytes without FCS.
    pub frame_bytes_max: usize,
    /// The longest route header that is prepended, in bytes.
    pub route_bytes_max: usize,
    /// Routes per host port.
    pub routes_per_port_max: usize,
    /// Additional routes per host port in the route memory, by index: 0 to 65,536. 0 without
    /// support for masqueraded addresses.
    pub masqueraded_per_port_max: usize,
    /// Maximum rate of a link, in bits per second, independent of the throughput of the machine.
    pub port_rate_max: Rate,
    /// Queues of an egress port, one for each traffic class: 1 to 8. 1 without traffic classes.
    pub queues_per_port: u8,
    /// Number of traffic classes that can be lossless at once: 0 to 8. Such a class has shared
    /// memory with headroom, and PAUSE and PFC in both directions.
    pub lossless_classes: u8,
    /// Supported features beside forwarding.
    pub features: FeatureSet,
}

/// Optional feature of a data plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Feature {
    /// Traffic classes with their own queues, scheduled by strict priority, ETS, DRR or WFQ.
    TrafficClasses,
    /// Shaping: an egress port sends at most at the rate of its link, even if its NIC is faster.
    Shaping,
    /// Cut-through: a frame may leave before its last byte has arrived.
    CutThrough,
    /// Congestion signalling: ECN marks and QCN congestion points.
    CongestionNotification,
    /// Handling of refused frames: they stay at their input, or a message goes back to their source
    /// (thesis 000 §3.2.1).
    RefusedFrames,
    /// Pauses of hosts whose frames have grown by their routes (thesis 000 §3.3.3).
    SelfCongestionPause,
    /// Priority regeneration table of host ports (IEEE 802.1Q clause 6.9.4).
    PriorityRegeneration,
    /// VLANs of host ports: routes are looked up by VLAN and destination, and tags are inserted,
    /// rewritten and removed (IEEE 802.1Q clause 6.9).
    Vlans,
    /// Route lookup by source and destination, and then by destination: hosts behind one port may
    /// have different routes, or none.
    RoutesBySource,
}

impl Feature {
    /// All features, in order.
    pub(crate) const ALL: [Feature; 9] = [
        Feature::TrafficClasses,
        Feature::Shaping,
        Feature::CutThrough,
        Feature::CongestionNotification,
        Feature::RefusedFrames,
        Feature::SelfCongestionPause,
        Feature::PriorityRegeneration,
        Feature::Vlans,
        Feature::RoutesBySource,
    ];
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Feature::TrafficClasses => "traffic classes",
            Feature::Shaping => "shaping to the rate of a link",
            Feature::CutThrough => "cut-through",
            Feature::CongestionNotification => "congestion notification",
            Feature::RefusedFrames => "NACK or congestion messages on a full output",
            Feature::SelfCongestionPause => "PAUSE against self-congestion",
            Feature::PriorityRegeneration => "priority regeneration at host ports",
            Feature::Vlans => "VLANs",
            Feature::RoutesBySource => "routes by source",
        })
    }
}

/// Set of features.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FeatureSet(u16);

impl FeatureSet {
    /// The empty set.
    pub const EMPTY: FeatureSet = FeatureSet(0);
    /// All features.
    pub const ALL: FeatureSet = FeatureSet((1 << Feature::ALL.len()) - 1);

    /// Returns the set with `feature`.
    #[must_use]
    pub const fn with(self, feature: Feature) -> FeatureSet {
        FeatureSet(self.0 | 1 << feature as u16)
    }

    /// Returns the set without `feature`.
    #[must_use]
    pub const fn without(self, feature: Feature) -> FeatureSet {
        FeatureSet(self.0 & !(1 << feature as u16))
    }

    /// Returns whether `feature` is in the set.
    pub const fn has(self, feature: Feature) -> bool {
        self.0 & 1 << feature as u16 != 0
    }

    /// Iterates over the features in order.
    pub fn iter(self) -> impl Iterator<Item = Feature> {
        Feature::ALL.into_iter().filter(move |&feature| self.has(feature))
    }
}

impl FromIterator<Feature> for FeatureSet {
    fn from_iter<I: IntoIterator<Item = Feature>>(features: I) -> FeatureSet {
        features.into_iter().fold(FeatureSet::EMPTY, FeatureSet::with)
    }
}

/// Maximum amount of a countable capability that a fabric needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need<T> {
    /// The amount, in the unit of the capability.
    pub amount: T,
    /// The key of the fabric file that requires it.
    pub key: String,
}

/// Requirements of a fabric on the data plane of one switch; `None` for no requirement. No fabric
/// requires a table size: flows without an entry take the slow path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Number of ports of the switch, 1 or more.
    pub ports: Option<Need<u16>>,
    /// The longest frame of a host, in bytes without FCS.
    pub frame_bytes_max: Option<Need<usize>>,
    /// Rate of the fastest link, in bits per second.
    pub port_rate_max: Option<Need<Rate>>,
    /// Queues of an egress port, one for each traffic class: 1 to 8.
    pub queues_per_port: Option<Need<u8>>,
    /// Lossless traffic classes: 1 to 8.
    pub lossless_classes: Option<Need<u8>>,
    /// Required features, each with the key of the fabric file that requires it.
    pub features: Vec<(Feature, String)>,
}

impl Capabilities {
    /// Returns the maximum number of hops of a route.
    pub const fn hops_max(&self) -> usize {
        self.hop_width.hops_in(self.route_bytes_max)
    }

    /// Returns the bytes of the longest probe between switches, with records, without FCS.
    pub const fn probe_bytes_max(&self) -> usize {
        self.frame_bytes_max + FrameBuf::HEADROOM + RECORDS_BYTES_MAX
    }

    /// Returns the requirements that this data plane does not meet, each with its key; empty if it
    /// meets all.
    pub fn missing(&self, needs: &Needs) -> Vec<String> {
        let amounts = [
            lacking(&needs.ports, self.ports, |count| format!("{count} ports")),
            lacking(&needs.frame_bytes_max, self.frame_bytes_max, |bytes| {
                format!("frames of {bytes} bytes")
            }),
            lacking(&needs.port_rate_max, self.port_rate_max, |rate| format!("links of {rate}")),
            lacking(&needs.queues_per_port, self.queues_per_port, |count| {
                format!("{count} queues per port")
            }),
            lacking(&needs.lossless_classes, self.lossless_classes, |count| {
                format!("{count} lossless class{}", if count == 1 { "" } else { "es" })
            }),
        ];
        let lacks = |(feature, _): &&(Feature, String)| !self.features.has(*feature);
        let features = needs.features.iter().filter(lacks);
        let features = features.map(|(feature, key)| format!("{feature} (asked for by `{key}`)"));
        amounts.into_iter().flatten().chain(features).collect()
    }
}

/// Returns the required amount, if it exceeds that of the data plane.
fn lacking<T: Copy + PartialOrd + fmt::Display>(
    need: &Option<Need<T>>,
    has: T,
    name: impl Fn(T) -> String,
) -> Option<String> {
    let Need { amount, key } = need.as_ref().filter(|need| need.amount > has)?;
    Some(format!("{} (asked for by `{key}`; it has {has})", name(*amount)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    const HAS: Capabilities = Capabilities {
        name: "test",
        ports: 4,
        hop_width: HopWidth::Eight,
        frame_bytes_max: 1514,
        route_bytes_max: 128,
        routes_per_port_max: 16,
        masqueraded_per_port_max: 0,
        port_rate_max: Rate::gbps(10),
        queues_per_port: 4,
        lossless_classes: 1,
        features: FeatureSet::EMPTY.with(Feature::CutThrough),
    };

    fn need<T>(amount: T, key: &str) -> Option<Need<T>> {
        Some(Need { amount, key: key.into() })
    }

    #[test]
    fn what_is_missing_names_the_capability_and_who_asks_for_it() {
        let needs = Needs {
            ports: need(5, "topology"),
            frame_bytes_max: need(9000, "mtu"),
            port_rate_max: need(Rate::gbps(25), "links.rate"),
            queues_per_port: need(8, "dcb.classes"),
            lossless_classes: need(2, "dcb.classes[1].lossless"),
            features: vec![(Feature::CutThrough, "device".into()), (Feature::Shaping, "l".into())],
        };
        assert_eq!(
            HAS.missing(&needs),
            [
                "5 ports (asked for by `topology`; it has 4)",
                "frames of 9000 bytes (asked for by `mtu`; it has 1514)",
                "links of 25 Gb/s (asked for by `links.rate`; it has 10 Gb/s)",
                "8 queues per port (asked for by `dcb.classes`; it has 4)",
                "2 lossless classes (asked for by `dcb.classes[1].lossless`; it has 1)",
                "shaping to the rate of a link (asked for by `l`)",
            ]
        );
    }

    #[test]
    fn what_it_just_has_is_not_missing_nor_what_nobody_asks_for() {
        let needs = Needs {
            ports: need(4, "topology"),
            frame_bytes_max: need(1514, "mtu"),
            port_rate_max: need(Rate::gbps(10), "links.rate"),
            queues_per_port: need(4, "dcb.classes"),
            lossless_classes: need(1, "dcb.classes[1].lossless"),
            features: vec![(Feature::CutThrough, "device".into())],
        };
        assert_eq!(HAS.missing(&needs), [""; 0]);
        assert_eq!(HAS.missing(&Needs::default()), [""; 0]);
        let none = Capabilities { lossless_classes: 0, ..HAS };
        let asked = Needs { lossless_classes: needs.lossless_classes, ..Needs::default() };
        let missing = "1 lossless class (asked for by `dcb.classes[1].lossless`; it has 0)";
        assert_eq!(none.missing(&asked), [missing]);
    }

    #[test]
    fn every_feature_is_in_the_set_of_all() {
        assert_eq!(Feature::ALL.into_iter().collect::<FeatureSet>(), FeatureSet::ALL);
        assert!(FeatureSet::ALL.iter().eq(Feature::ALL));
        let others = FeatureSet::ALL.without(Feature::CutThrough);
        assert!(
            others.iter().eq(Feature::ALL.into_iter().filter(|one| *one != Feature::CutThrough))
        );
    }
}
