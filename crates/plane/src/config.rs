//! The configuration of a plane.

use crate::probe::ProbeUnits;
use crate::qos::dcb::DcbConfig;
use alloc::boxed::Box;
use axon_wire::priority::Priority;
use axon_wire::probe::RECORDS_BYTES_MAX;
use axon_wire::{Bytes, FrameBuf, HopWidth, MacAddr};

/// A plane's size and limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaneConfig {
    /// Bits of a hop, the same in the whole fabric.
    pub hop_width: HopWidth,
    /// Whether a host that has caused a maximum frame's worth of route bytes has to
    /// pause for as long (thesis 000 §3.3.3).
    pub self_congestion_pause: bool,
    /// What happens to a packet whose output has no room for it.
    pub on_full: OnFull,
    /// Ports, 0 to `ports - 1`; at most [`HopWidth::ports_max`].
    pub ports: u16,
    /// The longest Ethernet frame taken from a host, in bytes without FCS; 1514 by default.
    pub frame_bytes_max: usize,
    /// Source address of PAUSE frames.
    pub mac: MacAddr,
    /// The longest header of a route, in bytes: at most [`FrameBuf::HEADROOM`], which is the room
    /// before every frame, and by which, and by [`RECORDS_BYTES_MAX`], links between switches take
    /// longer frames. A packet with a longer header ends at the Axon port that it comes in by
    /// ([`Drop::RouteTooLong`](axon_node::Drop)).
    pub route_bytes_max: usize,
    /// Each output port has one buffer for each ingress port, of this many bytes.
    pub queue_bytes_max: Bytes,
    /// Routes that one port's memory holds.
    pub routes_per_port_max: usize,
    /// Routes that one port's route memory holds beside them, by the index in a masqueraded MAC:
    /// 0 to 65,536.
    pub masqueraded_per_port_max: usize,
    /// Whether ARP and neighbour discovery of a host go to the control plane even if there is a
    /// route to their destination. Where both ends may have masqueraded addresses of each other,
    /// the other end could not answer (thesis 000 §4.1.1).
    pub punts_resolution: bool,
    /// What one host port may send to the control plane, and any port of link frames and of
    /// packets that could not be forwarded: each by itself.
    pub punt: PuntLimit,
    /// The packets that one Axon port may send to the control plane by their routes.
    pub addressed: PuntLimit,
    /// With [`OnFull::Nack`]: each input port keeps refused packets of so many bytes.
    pub nack_bytes_max: Bytes,
    /// With [`OnFull::CongestionMessage`]: how many messages the packets of one ingress port
    /// may cause.
    pub congestion: PuntLimit,
    /// Traffic classes, shared memory and flow control; without, one FIFO for each ingress
    /// port at each output, of [`queue_bytes_max`](PlaneConfig::queue_bytes_max).
    pub dcb: Option<Box<DcbConfig>>,
    /// With traffic classes: the priority of control messages, of frames on links between
    /// control planes, and of what the control plane sends to hosts.
    pub control_priority: Priority,
    /// Where the probe units stand; beside the plane by default.
    pub probe_units: ProbeUnits,
}

/// What happens to a packet when the buffer of its ingress at its egress is full (thesis 000
/// §3.2.1). The output port refuses it (NACK); the rest is up to the input port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OnFull {
    /// The input port drops it.
    #[default]
    Drop,
    /// The input port keeps it, and offers it again as soon as the output has room. It keeps
    /// so many bytes for all outputs together, and drops what goes beyond. Those for another
    /// output are not held up.
    Nack,
    /// The input port drops it and sends a message to the edge that the packet came from,
    /// which makes the hosts of that port pause for a maximum frame.
    CongestionMessage,
}

/// A token bucket over frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PuntLimit {
    /// Frames per second in the long run.
    pub frames_per_second: u32,
    /// Frames at once after a rest.
    pub burst: u32,
}

impl PuntLimit {
    /// For packets of control planes where so many ports of hosts may cause some, each within the
    /// default limit of a host port.
    pub const fn for_causes(host_ports: u32) -> PuntLimit {
        PuntLimit {
            frames_per_second: 20_000u32.saturating_add(host_ports.saturating_mul(1000)),
            burst: 4096u32.saturating_add(host_ports.saturating_mul(256)),
        }
    }
}

impl PlaneConfig {
    /// The most hops that a route may have.
    pub const fn hops_max(&self) -> usize {
        self.hop_width.hops_in(self.route_bytes_max)
    }

    /// The longest probe on a link between switches, records included.
    pub const fn probe_bytes_max(&self) -> usize {
        self.frame_bytes_max + FrameBuf::HEADROOM + RECORDS_BYTES_MAX
    }

    /// The largest switch that hops of this width allow, with the longest frames that a data plane
    /// of ours takes.
    pub fn largest(hop_width: HopWidth) -> PlaneConfig {
        let ports = u16::try_from(hop_width.ports_max()).unwrap_or(u16::MAX);
        let frame_bytes_max = usize::from(u16::MAX);
        let defaults = PlaneConfig::with_ports(ports, MacAddr::default());
        PlaneConfig { hop_width, frame_bytes_max, ..defaults }
    }

    /// The defaults for a switch with this many ports: 8-bit hops, 1514-byte host frames,
    /// 128 KiB per buffer, 4096 routes per port (thesis §4.5 finds that about 4000 suffice) and
    /// as many more by masqueraded addresses,
    /// 1000 punted frames a second per port after a burst of 256; of packets for the control plane
    /// 20,000, and for each port as many as its hosts may cause.
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
