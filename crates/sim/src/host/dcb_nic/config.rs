//! The configuration of a NIC with Data Center Bridging.

use axon_control::lldp::LldpConfig;
use axon_control::prove::headroom::{Headroom, REACTION_MAX};
use axon_plane::qcn::RpConfig;
use axon_plane::schedule::{Algorithm, ScheduleConfig};
use axon_wire::cn::CnmFormat;
use axon_wire::mac_control::{Quanta, Reserved};
use axon_wire::priority::{PRIORITIES, PrioritySet, TrafficClass};
use axon_wire::{Bytes, Rate, Span};

/// Bytes of the frame check sequence, with which [`Headroom`] counts frames.
const FCS_BYTES: u64 = 4;

/// The configuration of a host's NIC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostDcb {
    /// The rate of its port: quanta are bit times.
    pub rate: Rate,
    /// The kind of flow control, in both directions.
    pub flow_control: HostFlowControl,
    /// The time in each XOFF that it sends; it sends another after half of it.
    pub quanta: Quanta,
    /// How the reserved byte of received PFC frames is read.
    pub pfc_reserved: Reserved,
    /// The traffic class of each priority.
    pub prio_tc: [TrafficClass; PRIORITIES],
    /// How the classes share its wire.
    pub schedule: ScheduleConfig,
    /// When a slow reader has XOFF sent, for each priority with flow control.
    pub ring: RingLimits,
    /// Its reaction points; none without, and then CN-TAGs and CNMs are strange to it.
    pub cn: Option<HostCn>,
}

/// Congestion notification in a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostCn {
    /// The priorities whose flows have reaction points (CNPVs).
    pub cnpvs: PrioritySet,
    /// Those of all flows.
    pub config: RpConfig,
    /// How CNMs are read.
    pub format: CnmFormat,
    /// Of what they draw.
    pub seed: u64,
    /// How it advertises them to its switch by LLDP; without, it advertises nothing.
    pub lldp: Option<LldpConfig>,
}

/// How a link of a host is kept from losing frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostFlowControl {
    /// Not at all: it ignores PAUSE and PFC, and what finds its ring full is dropped.
    #[default]
    None,
    /// All of the link at once (IEEE 802.3 annex 31B).
    Pause,
    /// These priorities, each by itself (IEEE 802.1Q clause 36).
    Pfc(PrioritySet),
}

impl HostFlowControl {
    /// The priorities that it can pause.
    pub const fn priorities(self) -> PrioritySet {
        match self {
            HostFlowControl::None => PrioritySet::EMPTY,
            HostFlowControl::Pause => PrioritySet::ALL,
            HostFlowControl::Pfc(priorities) => priorities,
        }
    }
}

/// Bytes of received frames (without FCS) that wait for a slow reader, of one priority, or of
/// all where PAUSE pauses all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingLimits {
    /// With more than this XOFF is sent.
    pub xoff: Bytes,
    /// With this or less XON is sent.
    pub xon: Bytes,
    /// Room above `xoff` for what is in flight until the sender has paused. A frame that finds
    /// it used up is dropped.
    pub headroom: Bytes,
}

impl RingLimits {
    /// Room for `xoff` bytes, and above it for what a peer at `delay` (one way, with all that
    /// the frame passes on it) still sends after the XOFF. XON is sent when two of
    /// its frames of `frame_bytes_max` (without FCS) have been read.
    pub fn of(rate: Rate, delay: Span, frame_bytes_max: u64, xoff: Bytes) -> RingLimits {
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
            // The frame that trips it comes before all that the formula counts.
            headroom: Bytes(after.bytes().0 + frame_bytes_max),
        }
    }
}

impl HostDcb {
    /// A NIC on a wire of `rate` whose peer is `delay` away (one way, with all that a frame
    /// passes), for frames of up to `frame_bytes_max` bytes without FCS: one strict class for
    /// each priority, pauses of the longest time, 64 KiB for frames that wait to be read.
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
