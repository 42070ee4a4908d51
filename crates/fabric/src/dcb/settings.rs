//! Settings of Data Center Bridging in a fabric, checked. They depend on no other part of the
//! fabric.

use crate::file::text::ShareText;
use crate::units::{BytesText, SpanText};
use axon_dcbx::DcbxSettings;
use axon_dcbx::lldp::LldpConfig;
use axon_plane::notification::EcnConfig;
use axon_plane::qcn::{CpConfig, DefenceMode, RpInterpretations};
use axon_plane::schedule::ScheduleConfig;
use axon_plane::shared_buffer::Share;
use axon_plane::targeted::Watermarks;
use axon_plane::watchdog::WatchdogConfig;
use axon_wire::Bytes;
use axon_wire::dcbx::ieee::Application;
use axon_wire::mac_control::{Quanta, Reserved};
use axon_wire::priority::{PRIORITIES, Priority, PrioritySet, TrafficClass};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Configuration of Data Center Bridging, shared by all switches of a fabric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dcb {
    /// Traffic class of each priority (dcbnl: `prio_tc`).
    pub prio_tc: [TrafficClass; PRIORITIES],
    /// Scheduling of the classes.
    pub schedule: ScheduleConfig,
    /// Priorities whose frames must not be lost.
    pub lossless: PrioritySet,
    /// Groups of priorities that hosts see as one, under the first of each group; the others are
    /// those of further layers of routes. All groups have equal length; empty without layers.
    pub layers: Vec<Vec<Priority>>,
    /// Flow control of lossless priorities.
    pub flow_control: FlowControl,
    /// Duration of a pause that is not refreshed.
    pub quanta: Quanta,
    /// Memory of each switch.
    pub buffers: Buffers,
    /// Watermarks of queues; random choice is not seeded yet.
    pub watermarks: Option<Watermarks>,
    /// PFC watchdog.
    pub watchdog: Option<WatchdogConfig>,
    /// Priorities of hosts' frames by application; empty without agents at their edges.
    pub applications: Vec<Application>,
    /// Priority of control messages, which is not lossless.
    pub control_priority: Priority,
    /// True if hosts honour flow control, and pause their switch when they read too slowly.
    pub hosts: bool,
    /// LLDP and DCBX, if configured.
    pub dcbx: Option<Box<Dcbx>>,
    /// Congestion notification, if configured.
    pub cn: Option<Cn>,
    /// Handling of the reserved byte of PFC frames.
    pub pfc_reserved: Reserved,
    /// Marking of queues, by class; RED's frame time is set by the rate of each port.
    pub ecn: [Option<EcnConfig>; PRIORITIES],
}

/// Flow control of lossless classes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum FlowControl {
    /// By priority: PFC (IEEE 802.1Qbb).
    #[default]
    Pfc,
    /// By link: PAUSE (IEEE 802.3 annex 31B); every class is then lossless.
    Pause,
    /// None: no class is lossless.
    None,
}

/// Division of a switch's memory among priority groups.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Buffers {
    /// Pool shared by lossless priority groups (an ingress port and a priority); 1MiB by default.
    pub lossless_pool: BytesText,
    /// Pool shared by lossy priority groups; 1MiB by default.
    pub lossy_pool: BytesText,
    /// Memory reserved for each priority group; none by default.
    pub reserved: BytesText,
    /// Maximum use of its pool by a lossless priority group: a fraction of what is free (alpha), or
    /// a number of bytes; 1/2 by default.
    pub lossless_share: ShareText,
    /// Maximum use of its pool by a lossy priority group: a fraction of what is free (alpha), or a
    /// number of bytes; 1 by default.
    pub lossy_share: ShareText,
    /// Maximum use of the lossy pool by frames for one port in one class; 1 by default.
    pub queue_share: ShareText,
    /// Headroom of a lossless priority group: room for frames that arrive after XOFF was sent. By
    /// default the amount that rate, cable, frame size, interface_delay and reaction need.
    pub headroom: Option<BytesText>,
    /// For the default headroom: delay of the MAC and PHY of one end, sending and receiving
    /// together; by default that of this file's device.
    pub interface_delay: Option<SpanText>,
    /// For the default headroom: time from the receipt of XOFF until no new frame begins. By
    /// default the longest that the standards allow: 614.4ns with pfc, and with pause the value of
    /// IEEE 802.3 for the rate (60 quanta at 10Gbps, 3.072us; other sources have 67 and 74). In a
    /// lab on Linux, some milliseconds.
    pub reaction: Option<SpanText>,
    /// Distance below its share at which a lossless priority group sends XON; two frames by
    /// default.
    pub xon_offset: Option<BytesText>,
}

impl Buffers {
    /// Returns the distance below its share at which a lossless priority group sends XON.
    pub(super) fn xon_offset(&self) -> Bytes {
        self.xon_offset.map_or(Bytes(0), |bytes| bytes.0)
    }
}

impl Default for Buffers {
    fn default() -> Buffers {
        let bytes = |bytes| BytesText(axon_wire::Bytes(bytes));
        Buffers {
            lossless_pool: bytes(1 << 20),
            lossy_pool: bytes(1 << 20),
            reserved: bytes(0),
            lossless_share: ShareText(Share::Dynamic { shift: -1 }),
            lossy_share: ShareText(Share::Dynamic { shift: 0 }),
            queue_share: ShareText(Share::Dynamic { shift: 0 }),
            headroom: None,
            interface_delay: None,
            reaction: None,
            xon_offset: None,
        }
    }
}

impl Dcb {
    /// Returns the number of layers of routes: 1 if no priority has further ones.
    pub(crate) fn layer_count(&self) -> u8 {
        self.layers.first().map_or(1, |group| group.len() as u8)
    }

    /// Returns the priorities in which the host of this name has reaction points.
    pub fn reaction_points(&self, host: &str) -> PrioritySet {
        self.cn.as_ref().map_or(PrioritySet::EMPTY, |cn| cn.reaction_points(host))
    }

    /// Returns the priorities that share a class with this one, itself included: they are paused
    /// together.
    pub(crate) fn beside(&self, priority: Priority) -> PrioritySet {
        let class = self.prio_tc[priority.index()];
        let mut beside = PrioritySet::EMPTY;
        let same = |other: &Priority| self.prio_tc[other.index()] == class;
        Priority::ALL.into_iter().filter(same).for_each(|other| beside.insert(other));
        beside
    }
}

/// LLDP and DCBX in the switches of a fabric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dcbx {
    /// Timers and bounds.
    pub lldp: LldpConfig,
    /// Settings of all switches without an override.
    pub common: Advertised,
    /// Settings by the index of the switch.
    pub overrides: BTreeMap<usize, Advertised>,
}

/// Settings that one switch advertises and adopts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advertised {
    /// DCBX settings, without those that follow from its plane.
    pub asked: DcbxSettings,
    /// Priorities that have PFC; `None` for all lossless ones.
    pub pfc: Option<PrioritySet>,
}

impl Dcbx {
    /// Returns the settings that the switch with this index advertises.
    pub fn advertised(&self, switch: usize) -> &Advertised {
        self.overrides.get(&switch).unwrap_or(&self.common)
    }
}

/// Congestion notification in a fabric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cn {
    /// Priorities in the domain: one to seven.
    pub cnpvs: PrioritySet,
    /// Configuration of every congestion point.
    pub point: CpConfig,
    /// Priority of CNMs.
    pub cnm_priority: Priority,
    /// Interpretation of reaction points by simulated hosts, where publications differ.
    pub reaction: RpInterpretations,
    /// Defence against hosts, by name; others are interior ready.
    pub defence: BTreeMap<String, Defence>,
    /// Priority for frames from outside; `None` to choose it by the rule of the standard.
    pub alternate: Option<Priority>,
}

/// Defence of the domain against a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defence {
    /// As the host advertises by LLDP; outside, until it does.
    Auto,
    /// This mode, whatever the host advertises.
    Fixed(DefenceMode),
}

impl Cn {
    /// Returns the priorities in which the host of this name has reaction points: none outside the
    /// domain.
    pub fn reaction_points(&self, host: &str) -> PrioritySet {
        match self.defence.get(host) {
            Some(Defence::Fixed(DefenceMode::Edge | DefenceMode::Disabled)) => PrioritySet::EMPTY,
            _ => self.cnpvs,
        }
    }
}
