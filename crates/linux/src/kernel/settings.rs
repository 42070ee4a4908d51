//! Settings of a kernel data plane.

use axon_fabric::model::DataplaneKind;
use axon_wire::HopWidth;

/// Hook of the kernel at which the programs of a switch run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// tc ingress: super-packets stay whole, and the devices have egress queues.
    Tc,
    /// XDP in drivers: single frames, without queues.
    Xdp,
}

impl Hook {
    /// Returns the hook of a data plane in the kernel; `None` for any other.
    pub const fn of(dataplane: DataplaneKind) -> Option<Hook> {
        match dataplane {
            DataplaneKind::Tc => Some(Hook::Tc),
            DataplaneKind::Xdp => Some(Hook::Xdp),
            _ => None,
        }
    }
}

/// Settings for the programs of a switch. A folder holds the tables for one set of settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelSettings {
    /// Hook of the programs.
    pub hook: Hook,
    /// Hop width of the fabric.
    pub hop_width: HopWidth,
    /// Number of ports of the switch, 1 to [`HopWidth::ports_max`].
    pub ports: u16,
    /// Maximum number of routes of one port. All ports together have at most 1,048,576 routes.
    pub routes_per_port_max: usize,
    /// Longest header on a link between switches, in bytes: at most 65,535.
    pub route_bytes_max: usize,
    /// Longest frame from a host, in bytes, from its addresses to its last byte, without a tag.
    pub frame_bytes_max: usize,
    /// Limit on the frames per millisecond that one port may send to each of the node's queues for
    /// links and for hosts, after a burst of 1,024 frames, with tc. Unlimited if 0.
    pub node_frames_per_ms: u16,
}

impl KernelSettings {
    /// Returns the folder name for these settings and for the programs in `object`.
    pub(super) fn name(&self, object: &[u8]) -> String {
        let version = xxhash_rust::xxh3::xxh3_64(object);
        let KernelSettings { ports, routes_per_port_max, route_bytes_max, .. } = self;
        let (hook, bits) = (format!("{:?}", self.hook).to_lowercase(), self.hop_width.bits());
        let KernelSettings { frame_bytes_max, node_frames_per_ms, .. } = self;
        format!(
            "{hook}-hops{bits}-ports{ports}-routes{routes_per_port_max}-\
             header{route_bytes_max}-frame{frame_bytes_max}-node{node_frames_per_ms}-{version:016x}"
        )
    }
}
