//! What a data plane can do, and what a fabric needs of it.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use axon_wire::probe::RECORDS_BYTES_MAX;
use axon_wire::{FrameBuf, HopWidth, Rate};
use core::fmt;
use serde::{Deserialize, Serialize};

/// What a data plane can do. A control plane asks once, at its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Which data plane this is: `software`, `reference`.
    pub name: &'static str,
    /// Ports, numbered from 0.
    pub ports: u16,
    /// Bits of a hop in the headers that it reads and writes.
    pub hop_width: HopWidth,
    /// The longest Ethernet frame taken from a host, in bytes without FCS.
    pub frame_bytes_max: usize,
    /// The longest route header that it attaches, in bytes.
    pub route_bytes_max: usize,
    /// Routes that the table of one host port holds.
    pub routes_per_port_max: usize,
    /// Routes that the route memory of one host port holds beside the table, by index: 0 to 65,536.
    /// 0 if it cannot rewrite masqueraded addresses.
    pub masqueraded_per_port_max: usize,
    /// The fastest link that a port can be on, in bits per second. How much of it a machine can
    /// fill is not said here.
    pub port_rate_max: Rate,
    /// Queues of an egress port, one for each traffic class: 1 to 8. 1 without traffic classes.
    pub queues_per_port: u8,
    /// Traffic classes that can be lossless at once: 0 to 8. Such a class has shared memory with
    /// headroom, and PAUSE and PFC in both directions.
    pub lossless_classes: u8,
    /// What it does beside forwarding.
    pub features: FeatureSet,
}

/// A function that some data planes have and some lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Feature {
    /// Traffic classes with queues of their own, scheduled by strict priority, ETS, DRR or WFQ.
    TrafficClasses,
    /// Shaping: an egress port that sends no faster than its link, however fast its NIC is.
    Shaping,
    /// A frame may leave before its last byte has come.
    CutThrough,
    /// Congestion is signalled: ECN marks and QCN congestion points.
    CongestionNotification,
    /// A refused frame stays at its input, or a message goes back to its source (thesis 000
    /// §3.2.1).
    RefusedFrames,
    /// Hosts whose frames have grown by their routes are paused (thesis 000 §3.3.3).
    SelfCongestionPause,
    /// A host port has a priority regeneration table (IEEE 802.1Q clause 6.9.4).
    PriorityRegeneration,
    /// Host ports have VLANs: routes are looked up by VLAN and destination, and tags are put in,
    /// rewritten and taken off (IEEE 802.1Q clause 6.9).
    Vlans,
    /// Routes are looked up by source and destination, and then by destination: hosts behind one
    /// port may have different routes, or none.
    RoutesBySource,
}

impl Feature {
    /// All of them, in order.
    pub const ALL: [Feature; 9] = [
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

/// A set of features.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FeatureSet(u16);

impl FeatureSet {
    /// The set without any feature.
    pub const EMPTY: FeatureSet = FeatureSet(0);
    /// Every feature that there is.
    pub const ALL: FeatureSet = FeatureSet((1 << Feature::ALL.len()) - 1);

    /// The set with one more.
    #[must_use]
    pub const fn with(self, feature: Feature) -> FeatureSet {
        FeatureSet(self.0 | 1 << feature as u16)
    }

    /// The set with one less.
    #[must_use]
    pub const fn without(self, feature: Feature) -> FeatureSet {
        FeatureSet(self.0 & !(1 << feature as u16))
    }

    /// Whether `feature` is in the set.
    pub const fn has(self, feature: Feature) -> bool {
        self.0 & 1 << feature as u16 != 0
    }

    /// Those in the set, in order.
    pub fn iter(self) -> impl Iterator<Item = Feature> {
        Feature::ALL.into_iter().filter(move |&feature| self.has(feature))
    }
}

impl FromIterator<Feature> for FeatureSet {
    fn from_iter<I: IntoIterator<Item = Feature>>(features: I) -> FeatureSet {
        features.into_iter().fold(FeatureSet::EMPTY, FeatureSet::with)
    }
}

/// The most that a fabric needs of something that is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need<T> {
    /// How much, in the unit of the capability.
    pub amount: T,
    /// The key of the fabric file that asks for it.
    pub key: String,
}

/// What a fabric needs of the data plane of one switch. `None` asks for nothing. No fabric needs
/// tables of a certain size: flows without a place go by the slow path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The ports of the switch, 1 or more.
    pub ports: Option<Need<u16>>,
    /// The longest frame of a host, in bytes without FCS.
    pub frame_bytes_max: Option<Need<usize>>,
    /// The fastest link, in bits per second.
    pub port_rate_max: Option<Need<Rate>>,
    /// Queues of an egress port, one for each traffic class: 1 to 8.
    pub queues_per_port: Option<Need<u8>>,
    /// Lossless traffic classes: 1 to 8.
    pub lossless_classes: Option<Need<u8>>,
    /// Feature, and the key of the fabric file that asks for it.
    pub features: Vec<(Feature, String)>,
}

impl Capabilities {
    /// The most hops that a route may have.
    pub const fn hops_max(&self) -> usize {
        self.hop_width.hops_in(self.route_bytes_max)
    }

    /// The longest probe on a link between switches, records included, in bytes without FCS.
    pub const fn probe_bytes_max(&self) -> usize {
        self.frame_bytes_max + FrameBuf::HEADROOM + RECORDS_BYTES_MAX
    }

    /// What `needs` asks for and this data plane lacks, each with the key that asks for it; none
    /// if it will do.
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

/// What is needed, if that is more than what a data plane `has`.
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
