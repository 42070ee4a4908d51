//! The settings of Data Center Bridging in a fabric, checked. They need nothing else of the fabric.

use axon_dcbx::DcbxSettings;
use axon_dcbx::lldp::LldpConfig;
use axon_plane::memory::Share;
use axon_plane::notification::EcnConfig;
use axon_plane::qcn::{CpConfig, DefenceMode, RpInterpretations};
use axon_plane::schedule::ScheduleConfig;
use axon_plane::targeted::Watermarks;
use axon_plane::watchdog::WatchdogConfig;
use axon_wire::dcbx::ieee::Application;
use axon_wire::mac_control::{Quanta, Reserved};
use axon_wire::priority::{PRIORITIES, Priority, PrioritySet, TrafficClass};
use axon_wire::{Bytes, Span};
use std::collections::BTreeMap;

/// The configuration of Data Center Bridging, the same for all switches of a fabric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dcb {
    /// The traffic class of each priority (dcbnl: `prio_tc`).
    pub prio_tc: [TrafficClass; PRIORITIES],
    /// How the classes are scheduled.
    pub schedule: ScheduleConfig,
    /// Priorities whose frames are never to be lost.
    pub lossless: PrioritySet,
    /// Priorities that hosts know as the first of each group; the others are those of further
    /// layers of routes. All groups are as long; without layers there are none.
    pub layers: Vec<Vec<Priority>>,
    /// How the senders of lossless priorities are paused.
    pub flow_control: FlowControl,
    /// How long a pause lasts that is not refreshed.
    pub quanta: Quanta,
    /// The memory of each switch.
    pub buffers: Buffers,
    /// Watermarks of queues; random choice has no seed yet.
    pub watermarks: Option<Watermarks>,
    /// The PFC watchdog.
    pub watchdog: Option<WatchdogConfig>,
    /// Which frames of hosts have which priority; none without agents at their edges.
    pub applications: Vec<Application>,
    /// The priority of control messages, which is not lossless.
    pub control_priority: Priority,
    /// Whether hosts honour flow control, and pause their switch when they read too slowly.
    pub hosts: bool,
    /// LLDP and DCBX, if there are any.
    pub dcbx: Option<Box<Dcbx>>,
    /// Congestion notification, if there is any.
    pub cn: Option<Cn>,
    /// How the reserved byte of PFC frames is read.
    pub pfc_reserved: Reserved,
    /// By class, how queues mark; RED's frame time is set by the rate of each port.
    pub ecn: [Option<EcnConfig>; PRIORITIES],
}

/// How senders are paused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FlowControl {
    /// By priority (IEEE 802.1Q clause 36).
    #[default]
    Pfc,
    /// All of a link at once (IEEE 802.3 annex 31B).
    Pause,
    /// Not at all.
    None,
}

/// How the memory of a switch is divided; [`axon_plane::memory`] explains the terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffers {
    /// What lossless priority groups share.
    pub lossless_pool: Bytes,
    /// What lossy priority groups share.
    pub lossy_pool: Bytes,
    /// What each priority group has for itself.
    pub reserved: Bytes,
    /// What a lossless priority group may take of its pool.
    pub lossless_share: Share,
    /// What a lossy priority group may take of its pool.
    pub lossy_share: Share,
    /// What the lossy frames of one queue may take of the lossy pool.
    pub queue_share: Share,
    /// Headroom of a lossless priority group: the same for all ports, or what each
    /// [needs](super::needed).
    pub headroom: Option<Bytes>,
    /// What MAC and PHY of one end take to send and to receive, both together; what the
    /// fabric's device takes, without.
    pub interface_delay: Option<Span>,
    /// From the receipt of XOFF until no new frame begins; the longest that the standard of
    /// the flow control allows at the rate of the port, without.
    pub reaction: Option<Span>,
    /// How far below its share a lossless priority group must be before XON is sent.
    pub xon_offset: Bytes,
}

impl Dcb {
    /// How many layers of routes there are: one, if no priority has further ones.
    pub fn layer_count(&self) -> u8 {
        self.layers.first().map_or(1, |group| group.len() as u8)
    }

    /// The priorities in which the host of this name has reaction points.
    pub fn reaction_points(&self, host: &str) -> PrioritySet {
        self.cn.as_ref().map_or(PrioritySet::EMPTY, |cn| cn.reaction_points(host))
    }

    /// The priorities that share a class with this one, itself included: they are paused together.
    pub fn beside(&self, priority: Priority) -> PrioritySet {
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
    /// What all switches advertise, but for those in `overrides`.
    pub common: Advertised,
    /// By index of the switch.
    pub overrides: BTreeMap<usize, Advertised>,
}

/// What one switch advertises and adopts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advertised {
    /// All but what follows from its plane.
    pub asked: DcbxSettings,
    /// The priorities that have PFC, if not all lossless ones.
    pub pfc: Option<PrioritySet>,
}

impl Dcbx {
    /// What the switch with this index advertises.
    pub fn advertised(&self, switch: usize) -> &Advertised {
        self.overrides.get(&switch).unwrap_or(&self.common)
    }
}

/// Congestion notification in a fabric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cn {
    /// The priorities in the domain: one to seven.
    pub cnpvs: PrioritySet,
    /// Every congestion point.
    pub point: CpConfig,
    /// The priority of CNMs.
    pub cnm_priority: Priority,
    /// How simulated hosts read what sources on reaction points differ on.
    pub reaction: RpInterpretations,
    /// What hosts are to the domain, by name; others are interior ready.
    pub defence: BTreeMap<String, Defence>,
    /// Where frames from outside go; found by the rule of the standard, if not said.
    pub alternate: Option<Priority>,
}

/// What a host is to the domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defence {
    /// What it says itself, by LLDP; outside, until it does.
    Auto,
    /// This, whatever it says.
    Fixed(DefenceMode),
}

impl Cn {
    /// The priorities in which the host of this name has reaction points: none outside the
    /// domain.
    pub fn reaction_points(&self, host: &str) -> PrioritySet {
        match self.defence.get(host) {
            Some(Defence::Fixed(DefenceMode::Edge | DefenceMode::Disabled)) => PrioritySet::EMPTY,
            _ => self.cnpvs,
        }
    }
}
