//! Fast path of a frame that needs no queueing: reception, step and transmission at once.
//!
//! Most frames of a fabric that is not overloaded take it. All conditions that could delay, drop,
//! signal or copy a frame are checked first. If one applies, nothing has changed (except that the
//! route is marked as used), and the frame takes [`Plane::receive`], which has the same result for
//! frames of the fast path.

use super::lookups::Lookups;
use super::plane::Plane;
use crate::config::OnFull;
use crate::ports::HeaderKind;
use axon_node::{PortKind, RouteKey};
use axon_wire::header::{self, HeaderFields, PacketType};
use axon_wire::vlan::VlanId;
use axon_wire::{FrameBuf, PortNo};

impl<T: Lookups> Plane<T> {
    /// Forwards a valid frame received on `ingress` that may leave now; returns its egress port.
    /// `None` if nothing has changed and the frame must be [received](Plane::receive). `is_free`
    /// returns whether the wire of a port that was busy is free now.
    #[inline]
    pub fn pass(
        &mut self,
        ingress: PortNo,
        frame: &mut FrameBuf,
        is_free: impl Fn(PortNo) -> bool,
    ) -> Option<PortNo> {
        if !T::STATELESS_STEP || self.config.on_full == OnFull::CongestionMessage {
            return None;
        }
        let came_bytes = frame.length();
        let egress = match self.ports.wires().kind(ingress)? {
            PortKind::Axon => self.pass_packet(ingress, frame, is_free)?,
            PortKind::Host => self.pass_host_frame(ingress, frame, is_free)?,
            PortKind::Unknown => return None,
        };
        self.ports.passed((ingress, came_bytes), (egress, frame.length()));
        Some(egress)
    }

    /// Takes the step of an Axon packet.
    #[inline(always)]
    fn pass_packet(
        &mut self,
        ingress: PortNo,
        frame: &mut FrameBuf,
        is_free: impl Fn(PortNo) -> bool,
    ) -> Option<PortNo> {
        let width = self.config.hop_width;
        let bytes = frame.bytes();
        let header = HeaderFields::parse(bytes, width).ok()?;
        let egress = header.next_hop(bytes, width)?;
        if header.header_bytes > self.config.route_bytes_max
            || header.packet_type == PacketType::Probe
            || header.reverse_count == header::HOPS_MAX
        {
            return None;
        }
        match self.ports.wires().open(egress, is_free)? {
            PortKind::Axon => header.advance(frame.bytes_mut(), width, ingress),
            PortKind::Host if header.packet_type == PacketType::Ethernet => {
                let length = frame.length() - header.header_bytes;
                let inner = (&bytes[header.header_bytes..], length);
                if self.config.dcb.is_some() || self.fault_of(inner).is_some() {
                    return None;
                }
                frame.pop_front(header.header_bytes);
            }
            PortKind::Host | PortKind::Unknown => return None,
        }
        Some(egress)
    }

    /// Looks up a host's frame, prepends its route and takes the first step.
    #[inline(always)]
    fn pass_host_frame(
        &mut self,
        ingress: PortNo,
        frame: &mut FrameBuf,
        is_free: impl Fn(PortNo) -> bool,
    ) -> Option<PortNo> {
        let (bytes, length) = (frame.bytes(), frame.length());
        let has_vlans = self.settings.get(ingress.index()).is_some_and(|port| port.vlans.is_some());
        let key = RouteKey::of_frame(VlanId::NONE, bytes);
        if has_vlans
            || self.config.dcb.is_some()
            || self.config.self_congestion_pause
            || key.destination.is_multicast()
            || HeaderKind::of_ethernet(bytes) != HeaderKind::Ethernet
            || self.fault_of((bytes, length)).is_some()
            || self.config.punts_resolution && super::ingress::is_resolution(bytes)
        {
            return None;
        }
        let width = self.config.hop_width;
        let (route, tagged) = self.tables.lookup(ingress, key, bytes)?;
        let header = HeaderFields::parse(route, width).ok()?;
        let egress = header.next_hop(route, width)?;
        if tagged || self.ports.wires().open(egress, is_free) != Some(PortKind::Axon) {
            return None;
        }
        frame.push_front(route.len()).ok()?;
        let bytes = frame.bytes_mut();
        bytes[..route.len()].copy_from_slice(route);
        header.advance(bytes, width, ingress);
        Some(egress)
    }
}
