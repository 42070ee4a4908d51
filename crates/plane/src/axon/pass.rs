//! Fast path of a frame that needs no queueing: reception, step and transmission at once.
//!
//! Most frames of a fabric that is not overloaded take it. All conditions that could delay, drop,
//! signal or copy a frame are checked first. If one applies, nothing has changed (except that the
//! route is marked as used), and the frame takes [`Plane::receive`](super::Plane::receive), which
//! has the same result for frames of the fast path.

use super::ethernet;
use super::lookups::Lookups;
use crate::config::PlaneConfig;
use crate::ports::{HeaderKind, Wires};
use axon_node::{PortKind, RouteKey};
use axon_wire::header::{self, HeaderFields, PacketType};
use axon_wire::vlan::VlanId;
use axon_wire::{FrameBuf, PortNo};

/// Takes the step of an Axon packet; returns its egress port.
#[inline(always)]
pub(super) fn packet(
    config: &PlaneConfig,
    wires: &Wires,
    ingress: PortNo,
    frame: &mut FrameBuf,
    is_free: impl Fn(PortNo) -> bool,
) -> Option<PortNo> {
    let width = config.hop_width;
    let bytes = frame.bytes();
    let header = HeaderFields::parse(bytes, width).ok()?;
    let egress = header.next_hop(bytes, width)?;
    if header.header_bytes > config.route_bytes_max
        || header.packet_type == PacketType::Probe
        || header.reverse_count == header::HOPS_MAX
    {
        return None;
    }
    match wires.open(egress, is_free)? {
        PortKind::Axon => header.advance(frame.bytes_mut(), width, ingress),
        PortKind::Host if header.packet_type == PacketType::Ethernet => {
            let length = frame.length() - header.header_bytes;
            let inner = (&bytes[header.header_bytes..], length);
            if config.dcb.is_some() || ethernet::fault_of(inner, config.frame_bytes_max).is_some() {
                return None;
            }
            frame.pop_front(header.header_bytes);
        }
        PortKind::Host | PortKind::Unknown => return None,
    }
    Some(egress)
}

/// Looks up the frame of a host at a port without VLANs, prepends its route and takes the first
/// step; returns its egress port.
#[inline(always)]
pub(super) fn host_frame(
    config: &PlaneConfig,
    wires: &Wires,
    tables: &mut impl Lookups,
    ingress: PortNo,
    frame: &mut FrameBuf,
    is_free: impl Fn(PortNo) -> bool,
) -> Option<PortNo> {
    let (bytes, length) = (frame.bytes(), frame.length());
    let key = RouteKey::of_frame(VlanId::NONE, bytes);
    if config.dcb.is_some()
        || config.self_congestion_pause
        || key.destination.is_multicast()
        || HeaderKind::of_ethernet(bytes) != HeaderKind::Ethernet
        || ethernet::fault_of((bytes, length), config.frame_bytes_max).is_some()
        || config.punts_resolution && ethernet::is_resolution(bytes)
    {
        return None;
    }
    let width = config.hop_width;
    let (route, tagged) = tables.lookup(ingress, key, bytes)?;
    let header = HeaderFields::parse(route, width).ok()?;
    let egress = header.next_hop(route, width)?;
    if tagged || wires.open(egress, is_free) != Some(PortKind::Axon) {
        return None;
    }
    frame.push_front(route.len()).ok()?;
    let bytes = frame.bytes_mut();
    bytes[..route.len()].copy_from_slice(route);
    header.advance(bytes, width, ingress);
    Some(egress)
}
