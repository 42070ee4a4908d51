//! The configuration of an agent.

use super::Rules;
use alloc::string::String;
use axon_dcbx::TieRule;
use axon_dcbx::lldp::LldpConfig;
use axon_plane::dcb::DcbConfig;
use axon_plane::qcn::RpConfig;
use axon_plane::schedule::{Algorithm, FrameCost, ScheduleConfig};
use axon_plane::shared_buffer::{MemoryConfig, PriorityGroupLimits, QueueLimits, Share};
use axon_wire::cn::CnmFormat;
use axon_wire::mac_control::Quanta;
use axon_wire::priority::{PRIORITIES, PrioritySet};
use axon_wire::{Bytes, MacAddr, PortNo, Rate};

/// Port of the host.
pub const HOST: PortNo = PortNo(0);
/// Port of the fabric.
pub const FABRIC: PortNo = PortNo(1);

/// The configuration of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentConfig {
    /// The rate of the link to the fabric.
    pub rate: Rate,
    /// Priorities with PFC in the fabric. If empty, PAUSE is used, for all priorities at once.
    pub pfc: PrioritySet,
    /// The pause time in PFC frames that the agent sends to the fabric, in quanta of 512 bit times.
    pub pfc_quanta: Quanta,
    /// The rules that give frames their priorities.
    pub rules: Rules,
    /// The longest frame, in bytes without FCS and tag.
    pub frame_bytes_max: usize,
    /// Bytes that one priority may hold in one direction before its sender is paused.
    pub share: Bytes,
    /// Bytes of headroom for frames that arrive after that.
    pub headroom: Bytes,
    /// The source address of flow control and LLDP frames.
    pub mac: MacAddr,
    /// The reaction to congestion notifications; `None` if they are ignored.
    pub reaction: Option<Reaction>,
    /// LLDP and DCBX with the switch, which may override `pfc` and `rules`. `None` if LLDP is off.
    pub lldp: Option<LldpSettings>,
}

/// Congestion notifications that the agent acts on, and its reaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reaction {
    /// Priorities with congestion notification; each has one reaction point
    /// (`ieee8021CnRpPortPriMaxRps` is 1).
    pub priorities: PrioritySet,
    /// The variables of each reaction point.
    pub point: RpConfig,
    /// The format of congestion notification messages.
    pub format: CnmFormat,
    /// The seed of the jitter in rate recovery.
    pub seed: u64,
}

/// The LLDP settings of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LldpSettings {
    /// The host's name; at most `NAME_BYTES_MAX` bytes of it
    /// are sent.
    pub system_name: String,
    /// The name of its port to the fabric, with the same limit.
    pub port_name: String,
    /// Timers and bounds of the LLDP agent.
    pub agent: LldpConfig,
    /// End that keeps its PFC if both are willing. The switch must use the same rule.
    pub tie: TieRule,
}

/// Returns the limits of one priority group.
pub(super) fn group(config: &AgentConfig, headroom: Bytes) -> PriorityGroupLimits {
    let xon_offset = Bytes(config.share.0 / 2);
    PriorityGroupLimits {
        reserved: Bytes(0),
        share: Share::Static(config.share),
        headroom,
        xon_offset,
    }
}

/// Returns the DCB configuration of two ports with a traffic class for each priority and equal
/// shares. Every priority of the host can be paused.
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
