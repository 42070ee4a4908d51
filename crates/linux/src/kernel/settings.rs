//! What a data plane in the kernel is made for.

use axon_wire::HopWidth;

/// Which program carries the frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plane {
    /// At tc ingress: super-packets pass whole, egress queues are those of the devices.
    Tc,
    /// In drivers: frames one by one, without queues.
    Xdp,
}

/// What the programs of a switch are made for; a folder keeps tables of one such choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelSettings {
    /// The programs.
    pub plane: Plane,
    /// Of the fabric.
    pub hop_width: HopWidth,
    /// How many ports the switch has, 1 to [`HopWidth::ports_max`].
    pub ports: u16,
    /// Routes that one port may have; all ports together have at most 1,048,576.
    pub routes_per_port_max: usize,
    /// The longest header on a link between switches, in bytes; up to 65,535.
    pub route_bytes_max: usize,
    /// The longest frame of a host, from its addresses to its last byte, without a tag.
    pub frame_bytes_max: usize,
    /// Frames that one port may send to each of the node's queues of links and hosts in a
    /// millisecond, beside 1,024 at once, on tc. Any number if 0.
    pub node_frames_per_ms: u16,
}

impl KernelSettings {
    /// Their name, as that of a folder: what is pinned there is for these settings and for these
    /// very programs, the bytes of their object.
    pub(super) fn name(&self, object: &[u8]) -> String {
        let version = xxhash_rust::xxh3::xxh3_64(object);
        let KernelSettings { ports, routes_per_port_max, route_bytes_max, .. } = self;
        let (plane, bits) = (format!("{:?}", self.plane).to_lowercase(), self.hop_width.bits());
        let KernelSettings { frame_bytes_max, node_frames_per_ms, .. } = self;
        format!(
            "{plane}-hops{bits}-ports{ports}-routes{routes_per_port_max}-\
             header{route_bytes_max}-frame{frame_bytes_max}-node{node_frames_per_ms}-{version:016x}"
        )
    }
}
