//! Configuration of a NIC with Data Center Bridging.

use axon_dcbx::lldp::LldpConfig;
use axon_plane::qcn::RpConfig;
use axon_plane::schedule::{Algorithm, ScheduleConfig};
use axon_prove::headroom::{Headroom, REACTION_MAX};
use axon_wire::cn::CnmFormat;
use axon_wire::mac_control::{Quanta, Reserved};
use axon_wire::priority::{PRIORITIES, PrioritySet, TrafficClass};
use axon_wire::{Bytes, Rate, Span};

/// Length of the frame check sequence in bytes, which [`Headroom`] includes.
const FCS_BYTES: u64 = 4;

/// Configuration of a host's NIC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostDcb {
    /// Port rate, as quanta are bit times.
    pub rate: Rate,
    /// Flow control mode, in both directions.
    pub flow_control: HostFlowControl,
    /// Pause time in each XOFF sent. The XOFF is refreshed after half of it.
    pub quanta: Quanta,
    /// Interpretation of the reserved byte of received PFC frames.
    pub pfc_reserved: Reserved,
    /// Traffic class of each priority.
    pub prio_tc: [TrafficClass; PRIORITIES],
    /// Schedule of the traffic classes.
    pub schedule: ScheduleConfig,
    /// Receive ring thresholds that trigger XOFF, for each priority with flow control.
    pub ring: RingLimits,
    /// Reaction points; `None` treats CN-TAGs and CNMs as unknown.
    pub cn: Option<HostCn>,
}

/// Congestion notification in a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostCn {
    /// Priorities whose flows have reaction points (CNPVs).
    pub cnpvs: PrioritySet,
    /// Reaction point configuration of all flows.
    pub config: RpConfig,
    /// Format of CNMs.
    pub format: CnmFormat,
    /// Seed of the reaction points' random numbers.
    pub seed: u64,
    /// LLDP advertisement to the switch; `None` disables it.
    pub lldp: Option<LldpConfig>,
}

/// Flow control mode of a host's link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostFlowControl {
    /// None: PAUSE and PFC are ignored, and frames that find the ring full are dropped.
    #[default]
    None,
    /// PAUSE of the whole link (IEEE 802.3 annex 31B).
    Pause,
    /// PFC of these priorities, each by itself (IEEE 802.1Q clause 36).
    Pfc(PrioritySet),
}

impl HostFlowControl {
    /// Returns the priorities that can be paused.
    pub(crate) const fn priorities(self) -> PrioritySet {
        match self {
            HostFlowControl::None => PrioritySet::EMPTY,
            HostFlowControl::Pause => PrioritySet::ALL,
            HostFlowControl::Pfc(priorities) => priorities,
        }
    }
}

/// Thresholds in bytes of received frames (without FCS) queued for a slow reader, per priority, or
/// in total with PAUSE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingLimits {
    /// XOFF is sent above this level.
    pub xoff: Bytes,
    /// XON is sent at or below this level.
    pub xon: Bytes,
    /// Room above `xoff` for frames in flight until the sender has paused. A frame beyond it is
    /// dropped.
    pub headroom: Bytes,
}

impl RingLimits {
    /// Returns limits with the given `xoff`, and headroom for what a peer at `delay` (one way,
    /// including all stages of the frame) still sends after the XOFF. XON is sent when two of its
    /// frames of `frame_bytes_max` (without FCS) have been read.
    pub(crate) fn of(rate: Rate, delay: Span, frame_bytes_max: u64, xoff: Bytes) -> RingLimits {
        let frame = Bytes(frame_bytes_max + FCS_BYTES);
        let after = Headroom {
            rate,
            slowest: rate,
            cable: delay,
            port_frame: frame,
            lossless_frame: frame,
            interface_bits: 0,
            reaction: REACTION_MAX,
        };
        RingLimits {
            xoff,
            xon: Bytes(xoff.0.saturating_sub(2 * frame_bytes_max)),
            // The frame that triggers XOFF precedes all that the formula counts.
            headroom: Bytes(after.bytes().0 + frame_bytes_max),
        }
    }
}

impl HostDcb {
    /// Returns a NIC on a wire of `rate` whose peer is at `delay` (one way, including all stages of
    /// a frame), for frames of up to `frame_bytes_max` bytes without FCS. It has one strict class
    /// for each priority, maximum pause times, and 64 KiB for frames to be read.
    pub fn new(
        rate: Rate,
        flow_control: HostFlowControl,
        delay: Span,
        frame_bytes_max: u64,
    ) -> HostDcb {
        HostDcb {
            rate,
            flow_control,
            quanta: Quanta::MAX,
            pfc_reserved: Reserved::default(),
            prio_tc: TrafficClass::ALL,
            schedule: ScheduleConfig::of([Algorithm::Strict; PRIORITIES]),
            ring: RingLimits::of(rate, delay, frame_bytes_max, Bytes(1 << 16)),
            cn: None,
        }
    }
}
