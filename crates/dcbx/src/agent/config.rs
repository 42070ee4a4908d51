//! The configuration of an agent.

use super::Rules;
use crate::TieRule;
use crate::lldp::LldpConfig;
use alloc::string::String;
use axon_plane::dcb::DcbConfig;
use axon_plane::memory::{GroupLimits, MemoryConfig, QueueLimits, Share};
use axon_plane::qcn::RpConfig;
use axon_plane::schedule::{Algorithm, FrameCost, ScheduleConfig};
use axon_wire::cn::CnmFormat;
use axon_wire::mac_control::Quanta;
use axon_wire::priority::{PRIORITIES, PrioritySet};
use axon_wire::{Bytes, MacAddr, PortNo, Rate};

/// The port where the host is.
pub const HOST: PortNo = PortNo(0);
/// The port where the fabric is.
pub const FABRIC: PortNo = PortNo(1);

/// What an agent is told at its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentConfig {
    /// The rate of the link to the fabric.
    pub rate: Rate,
    /// Priorities with flow control in the fabric; without any, it stops all at once, by PAUSE.
    pub pfc: PrioritySet,
    /// How long a stop lasts that the fabric is asked for, unless it is told again.
    pub pfc_quanta: Quanta,
    /// Which frames have which priority.
    pub rules: Rules,
    /// The longest frame, in bytes without FCS and tag.
    pub frame_bytes_max: usize,
    /// What one priority may hold in one direction before its sender is to stop.
    pub share: Bytes,
    /// Room for what still comes after that.
    pub headroom: Bytes,
    /// Source address of flow control frames.
    pub mac: MacAddr,
    /// Congestion notifications that are heeded, if any.
    pub reaction: Option<Reaction>,
    /// How it speaks to its switch, which may know better which priorities have flow control and
    /// which frames have which priority; without, it neither speaks nor listens.
    pub lldp: Option<LldpSettings>,
}

/// Which congestion notifications are heeded, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reaction {
    /// Priorities with congestion notification; each has one reaction point
    /// (`ieee8021CnRpPortPriMaxRps` is 1).
    pub priorities: PrioritySet,
    /// The variables of a reaction point.
    pub point: RpConfig,
    /// How notifications are read.
    pub format: CnmFormat,
    /// Seed of the jitter of recovery.
    pub seed: u64,
}

/// How an agent speaks LLDP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LldpSettings {
    /// The host's name; at most [`NAME_BYTES_MAX`](crate::ports::NAME_BYTES_MAX) bytes of it are told.
    pub system_name: String,
    /// The name of its port to the fabric, likewise.
    pub port_name: String,
    /// Timers and bounds.
    pub agent: LldpConfig,
    /// Whose PFC holds if the switch is willing, too; it must hold the same rule.
    pub tie: TieRule,
}

/// What one priority may hold that comes by one port.
pub(super) fn group(config: &AgentConfig, headroom: Bytes) -> GroupLimits {
    let xon_offset = Bytes(config.share.0 / 2);
    GroupLimits { reserved: Bytes(0), share: Share::Static(config.share), headroom, xon_offset }
}

/// Two ports with a class for each priority, which take equal turns. Every priority of the host
/// can be stopped.
pub(super) fn dcb(config: &AgentConfig) -> DcbConfig {
    let share = Share::Static(config.share);
    let quantum_bytes = config.frame_bytes_max as u32 + u32::from(FrameCost::WIRE.overhead_bytes);
    DcbConfig {
        memory: MemoryConfig {
            lossless: PrioritySet::ALL,
            lossless_pool: Bytes(config.share.0 * (2 * PRIORITIES as u64)),
            lossy_pool: Bytes(0),
            groups: alloc::vec![[group(config, config.headroom); PRIORITIES]; 2],
            queues: [QueueLimits { reserved: Bytes(0), share }; PRIORITIES],
        },
        schedule: ScheduleConfig::of([Algorithm::Drr { quantum_bytes }; PRIORITIES]),
        pause: true,
        pfc_quanta: config.pfc_quanta,
        ..DcbConfig::lossy(alloc::vec![config.rate; 2], config.mac)
    }
}
