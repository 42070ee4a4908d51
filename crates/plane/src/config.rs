//! Configuration of a plane.

use crate::probe::ProbeUnits;
use crate::qos::dcb::DcbConfig;
use alloc::boxed::Box;
use axon_wire::priority::Priority;
use axon_wire::probe::RECORDS_BYTES_MAX;
use axon_wire::{Bytes, FrameBuf, HopWidth, MacAddr};

/// Size and limits of a plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaneConfig {
    /// Bits of a hop, the same in the whole fabric.
    pub hop_width: HopWidth,
    /// True if hosts that have caused a maximum frame's worth of route bytes are paused for as long
    /// (thesis 000 §3.3.3).
    pub self_congestion_pause: bool,
    /// Handling of a packet whose output has no room for it.
    pub on_full: OnFull,
    /// Number of ports, numbered 0 to `ports - 1`; at most [`HopWidth::ports_max`].
    pub ports: u16,
    /// The longest Ethernet frame accepted from a host, in bytes without FCS; 1514 by default.
    pub frame_bytes_max: usize,
    /// Source address of PAUSE frames.
    pub mac: MacAddr,
    /// The longest header of a route, in bytes: at most [`FrameBuf::HEADROOM`], the room before
    /// every frame. Links between switches accept frames longer by this and by
    /// [`RECORDS_BYTES_MAX`]. A packet with a longer header is dropped at its Axon ingress port
    /// ([`Drop::RouteTooLong`](axon_node::Drop)).
    pub route_bytes_max: usize,
    /// Buffer size in bytes; each output port has one buffer for each ingress port.
    pub queue_bytes_max: Bytes,
    /// Routes per port.
    pub routes_per_port_max: usize,
    /// Additional routes per port in the route memory, by the index in a masqueraded MAC: 0 to
    /// 65,536.
    pub masqueraded_per_port_max: usize,
    /// True if ARP and neighbour discovery of a host go to the control plane even if there is a
    /// route to their destination. Where both ends may have masqueraded addresses of each other,
    /// the other end could not answer (thesis 000 §4.1.1).
    pub punts_resolution: bool,
    /// Rate limit of misses of one host port to the control plane, and of link frames and of
    /// packets that could not be forwarded from any port: each by itself.
    pub punt: PuntLimit,
    /// Rate limit of the packets of one Axon port that are addressed to the control plane.
    pub addressed: PuntLimit,
    /// With [`OnFull::Nack`]: bytes of refused packets that each input port may keep.
    pub nack_bytes_max: Bytes,
    /// With [`OnFull::CongestionMessage`]: rate limit of messages caused by one ingress port.
    pub congestion: PuntLimit,
    /// Traffic classes, shared memory and flow control. Without them each output has one FIFO for
    /// each ingress port, of [`queue_bytes_max`](PlaneConfig::queue_bytes_max).
    pub dcb: Option<Box<DcbConfig>>,
    /// With traffic classes: the priority of control messages, of link frames between control
    /// planes, and of frames of the control plane to hosts.
    pub control_priority: Priority,
    /// Position of the probe units; beside the plane by default.
    pub probe_units: ProbeUnits,
}

/// Handling of a packet when the buffer of its ingress at its egress is full (thesis 000 §3.2.1).
/// The output port refuses it (NACK); the input port does the rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OnFull {
    /// The input port drops the packet.
    #[default]
    Drop,
    /// The input port keeps the packet, and offers it again as soon as the output has room. It
    /// keeps at most [`nack_bytes_max`](PlaneConfig::nack_bytes_max) for all outputs together, and
    /// drops packets beyond. Packets for other outputs are not delayed.
    Nack,
    /// The input port drops the packet and sends a message to the edge that it came from, which
    /// pauses the hosts of that port for the time of a maximum frame.
    CongestionMessage,
}

/// Token bucket over frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PuntLimit {
    /// Long-run rate, in frames per second.
    pub frames_per_second: u32,
    /// Burst size, in frames.
    pub burst: u32,
}

impl PuntLimit {
    /// Returns the limit for control plane packets that this many host ports may cause, each within
    /// the default limit of a host port.
    pub const fn for_causes(host_ports: u32) -> PuntLimit {
        PuntLimit {
            frames_per_second: 20_000u32.saturating_add(host_ports.saturating_mul(1000)),
            burst: 4096u32.saturating_add(host_ports.saturating_mul(256)),
        }
    }
}

impl PlaneConfig {
    /// Returns the maximum number of hops of a route.
    pub const fn hops_max(&self) -> usize {
        self.hop_width.hops_in(self.route_bytes_max)
    }

    /// Returns the length of the longest probe on a link between switches, records included.
    pub const fn probe_bytes_max(&self) -> usize {
        self.frame_bytes_max + FrameBuf::HEADROOM + RECORDS_BYTES_MAX
    }

    /// Returns the configuration of the largest switch for this hop width, with the longest frames
    /// that an Axon data plane accepts.
    pub fn largest(hop_width: HopWidth) -> PlaneConfig {
        let ports = u16::try_from(hop_width.ports_max()).unwrap_or(u16::MAX);
        let frame_bytes_max = usize::from(u16::MAX);
        let defaults = PlaneConfig::with_ports(ports, MacAddr::default());
        PlaneConfig { hop_width, frame_bytes_max, ..defaults }
    }

    /// Returns the defaults for a switch with this many ports: 8-bit hops, 1514-byte host frames,
    /// 128 KiB per buffer, 4096 routes per port (thesis §4.5 finds that about 4000 suffice) and as
    /// many by masqueraded addresses, 1000 punted frames per second and port with a burst of 256;
    /// for packets addressed to the control plane 20,000 per second plus as many as the hosts of
    /// all ports may cause.
    pub fn with_ports(ports: u16, mac: MacAddr) -> PlaneConfig {
        PlaneConfig {
            hop_width: HopWidth::Eight,
            ports,
            mac,
            frame_bytes_max: 1514,
            route_bytes_max: FrameBuf::HEADROOM,
            queue_bytes_max: Bytes(128 * 1024),
            routes_per_port_max: 4096,
            masqueraded_per_port_max: 4096,
            punts_resolution: false,
            punt: PuntLimit { frames_per_second: 1000, burst: 256 },
            addressed: PuntLimit::for_causes(u32::from(ports)),
            self_congestion_pause: false,
            on_full: OnFull::Drop,
            nack_bytes_max: Bytes(128 * 1024),
            congestion: PuntLimit { frames_per_second: 1000, burst: 8 },
            dcb: None,
            control_priority: Priority::ZERO,
            probe_units: ProbeUnits::default(),
        }
    }
}
