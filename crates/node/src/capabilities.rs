//! What a data plane can do, and what a fabric needs of it.

use alloc::string::String;
use alloc::vec::Vec;
use axon_wire::HopWidth;
use axon_wire::probe::RECORDS_BYTES_MAX;
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
    /// What it does beside forwarding.
    pub features: FeatureSet,
}

/// A function that some data planes have and some lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Feature {
    /// Traffic classes with queues of their own, scheduled by strict priority, ETS, DRR or WFQ.
    TrafficClasses,
    /// Lossless classes: shared memory with headroom, PAUSE and PFC in both directions.
    LosslessClasses,
    /// A frame may leave before its last byte has come.
    CutThrough,
    /// Probes are stamped with the exact time of their first bit.
    ProbeTimestamps,
    /// The queue of an egress port is reported in bytes and frames.
    QueueState,
    /// Congestion is signalled: ECN marks and QCN congestion points.
    CongestionNotification,
    /// A refused frame stays at its input, or a message goes back to its source (thesis 000
    /// §3.2.1).
    RefusedFrames,
    /// Hosts whose frames have grown by their routes are paused (thesis 000 §3.3.3).
    SelfCongestionPause,
}

impl Feature {
    /// All of them, in order.
    pub const ALL: [Feature; 8] = [
        Feature::TrafficClasses,
        Feature::LosslessClasses,
        Feature::CutThrough,
        Feature::ProbeTimestamps,
        Feature::QueueState,
        Feature::CongestionNotification,
        Feature::RefusedFrames,
        Feature::SelfCongestionPause,
    ];
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Feature::TrafficClasses => "traffic classes",
            Feature::LosslessClasses => "lossless classes",
            Feature::CutThrough => "cut-through",
            Feature::ProbeTimestamps => "timestamps for probes",
            Feature::QueueState => "reports of queues",
            Feature::CongestionNotification => "congestion notification",
            Feature::RefusedFrames => "NACK or congestion messages on a full output",
            Feature::SelfCongestionPause => "PAUSE against self-congestion",
        })
    }
}

/// A set of features.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FeatureSet(u16);

impl FeatureSet {
    /// None.
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

/// What a fabric needs of the data plane of one switch, each feature with the reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Ports.
    pub ports: u16,
    /// The longest frame of a host, in bytes without FCS.
    pub frame_bytes_max: usize,
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
        self.frame_bytes_max + self.route_bytes_max + RECORDS_BYTES_MAX
    }

    /// What `needs` asks for and this data plane lacks, one line each; none if it will do.
    pub fn missing(&self, needs: &Needs) -> Vec<String> {
        let mut missing = Vec::new();
        if needs.ports > self.ports {
            missing.push(alloc::format!("{} ports; it has {}", needs.ports, self.ports));
        }
        if needs.frame_bytes_max > self.frame_bytes_max {
            let (asked, has) = (needs.frame_bytes_max, self.frame_bytes_max);
            missing.push(alloc::format!("frames of {asked} bytes; its longest is {has}"));
        }
        for (feature, key) in &needs.features {
            if !self.features.has(*feature) {
                missing.push(alloc::format!("{feature} (asked for by `{key}`)"));
            }
        }
        missing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_names_the_capability_and_who_asks_for_it() {
        let has = Capabilities {
            name: "test",
            ports: 4,
            hop_width: HopWidth::Eight,
            frame_bytes_max: 1514,
            route_bytes_max: 128,
            routes_per_port_max: 16,
            features: FeatureSet::EMPTY.with(Feature::CutThrough),
        };
        let mut needs = Needs { ports: 4, frame_bytes_max: 1514, ..Needs::default() };
        needs.features.push((Feature::CutThrough, "device.mode".into()));
        assert!(has.missing(&needs).is_empty());
        needs.features.push((Feature::LosslessClasses, "dcb.pfc".into()));
        (needs.ports, needs.frame_bytes_max) = (5, 9000);
        let missing = has.missing(&needs);
        assert_eq!(
            missing,
            [
                "5 ports; it has 4",
                "frames of 9000 bytes; its longest is 1514",
                "lossless classes (asked for by `dcb.pfc`)",
            ]
        );
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
