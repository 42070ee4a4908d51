//! Stateless forwarding step of a switch: one hop of a source route (paper 001 §3, thesis 000
//! §3.1).
//!
//! This one function is used for transit packets, for hosts' packets after their route has been
//! prepended, and for packets of the control plane. The kernel's fast path and the RTL are tested
//! against it with `vectors/forward.txt`.

use axon_node::PortKind;
use axon_node::{Drop, Punt};
use axon_wire::PortNo;
use axon_wire::header::{self, HeaderFields, HopWidth, PacketType};

/// Result of the forwarding step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Send the packet, header advanced, to the Axon at this port.
    Egress(PortNo),
    /// Remove the first `header_bytes` bytes and send the rest to the hosts at this port.
    Strip {
        /// The host port.
        port: PortNo,
        /// Length of the Axon header, padding included.
        header_bytes: usize,
    },
    /// Pass the packet to the control plane: [`Punt::Addressed`] or [`Punt::Error`].
    Punt(Punt),
    /// Drop the packet: [`Drop::Malformed`], [`Drop::NoSuchPort`] or [`Drop::EgressUnknown`]. Its
    /// bytes are unchanged.
    Drop(Drop),
}

/// Takes one hop of the packet in `bytes`, received on `ingress`, and rewrites its header
/// accordingly. `kind_of` returns the kind of a port, `None` where the switch has no such port; it
/// is called for the next hop only.
///
/// 1. A packet without a valid header, or whose reverse list can take no more hops, is
///    dropped.
/// 2. Without a forward hop the route was too short: the type becomes Error and the control
///    plane gets the packet. There is no free place for `ingress`, so the way back is
///    `ingress` and then the reverse list.
/// 3. If the next hop is the control plane, the hop is taken and the control plane gets
///    the packet.
/// 4. If the next hop is a port that the switch does not have, or whose peer is not
///    known, the packet is dropped.
/// 5. If it is a host port, the header is removed, unless the type is not Ethernet: then
///    the hop is taken (so the reverse list is the way back), the type becomes Error, and
///    the control plane gets the packet.
/// 6. If it is an Axon port, the hop is taken and the packet goes there, even if that is
///    its ingress.
///
/// Taking a hop removes it from the forward list and puts `ingress` in front of the reverse list.
#[inline]
pub fn forward(
    bytes: &mut [u8],
    width: HopWidth,
    ingress: PortNo,
    kind_of: impl FnOnce(PortNo) -> Option<PortKind>,
) -> Step {
    match HeaderFields::parse(bytes, width) {
        Ok(fields) => forward_parsed(bytes, width, &fields, ingress, kind_of),
        Err(_) => Step::Drop(Drop::Malformed),
    }
}

/// Performs [`forward`] for a packet whose header, the start of `bytes`, is already parsed.
#[inline(always)]
pub(crate) fn forward_parsed(
    bytes: &mut [u8],
    width: HopWidth,
    header: &HeaderFields,
    ingress: PortNo,
    kind_of: impl FnOnce(PortNo) -> Option<PortKind>,
) -> Step {
    let Some(port) = header.next_hop(bytes, width) else {
        header::set_type(bytes, PacketType::Error);
        return Step::Punt(Punt::Error);
    };
    if header.reverse_count == header::HOPS_MAX {
        return Step::Drop(Drop::Malformed);
    }
    if port == PortNo::CONTROL {
        header.advance(bytes, width, ingress);
        return Step::Punt(Punt::Addressed);
    }
    match kind_of(port) {
        None => Step::Drop(Drop::NoSuchPort),
        Some(PortKind::Unknown) => Step::Drop(Drop::EgressUnknown),
        Some(PortKind::Axon) => {
            header.advance(bytes, width, ingress);
            Step::Egress(port)
        }
        Some(PortKind::Host) if header.packet_type == PacketType::Ethernet => {
            Step::Strip { port, header_bytes: header.header_bytes }
        }
        Some(PortKind::Host) => {
            header.advance(bytes, width, ingress);
            header::set_type(bytes, PacketType::Error);
            Step::Punt(Punt::Error)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;
    use axon_wire::Hops;

    const WIDTHS: [HopWidth; 3] = [HopWidth::Four, HopWidth::Eight, HopWidth::Sixteen];
    const INGRESS: PortNo = PortNo(5);

    fn packet(width: HopWidth, packet_type: PacketType, forward: Hops, reverse: Hops) -> Vec<u8> {
        let mut bytes = vec![0xee; 40];
        header::emit(&mut bytes, width, packet_type, &forward, &reverse).unwrap();
        bytes
    }

    /// Returns the kind of a port: 0 and 1 are Axons, 2 is a host port, 3 is unknown; no others.
    fn kind_of(port: PortNo) -> Option<PortKind> {
        let kinds = [PortKind::Axon, PortKind::Axon, PortKind::Host, PortKind::Unknown];
        kinds.get(port.index()).copied()
    }

    #[test]
    fn a_hop_to_an_axon_is_taken() {
        for width in WIDTHS {
            let mut bytes = packet(width, PacketType::Control, Hops::from([1, 9]), Hops::from([7]));
            assert_eq!(forward(&mut bytes, width, INGRESS, kind_of), Step::Egress(PortNo(1)));
            let after = packet(width, PacketType::Control, Hops::from([9]), Hops::from([5, 7]));
            assert_eq!(bytes, after);
        }
    }

    #[test]
    fn a_host_port_gets_the_frame_without_its_header() {
        for width in WIDTHS {
            let mut bytes = packet(width, PacketType::Ethernet, Hops::from([2]), Hops::from([7]));
            let header_bytes = width.header_bytes(2);
            let step = forward(&mut bytes, width, INGRESS, kind_of);
            assert_eq!(step, Step::Strip { port: PortNo(2), header_bytes });
            assert!(bytes[header_bytes..].iter().all(|&byte| byte == 0xee));
        }
    }

    #[test]
    fn what_no_host_may_see_goes_back_to_the_control_plane_with_its_way_back() {
        for width in WIDTHS {
            for packet_type in [PacketType::Control, PacketType::Probe, PacketType::Error] {
                let mut bytes = packet(width, packet_type, Hops::from([2, 1]), Hops::from([7]));
                let step = forward(&mut bytes, width, INGRESS, kind_of);
                assert_eq!(step, Step::Punt(Punt::Error));
                let after = packet(width, PacketType::Error, Hops::from([1]), Hops::from([5, 7]));
                assert_eq!(bytes, after);
            }
        }
    }

    #[test]
    fn a_route_that_ends_too_early_keeps_its_reverse_list() {
        for width in WIDTHS {
            let mut bytes = packet(width, PacketType::Ethernet, Hops::default(), Hops::from([7]));
            assert_eq!(forward(&mut bytes, width, INGRESS, kind_of), Step::Punt(Punt::Error));
            assert_eq!(bytes, packet(width, PacketType::Error, Hops::default(), Hops::from([7])));
        }
    }

    #[test]
    fn the_control_plane_is_a_hop_like_any_other() {
        for width in WIDTHS {
            let to_us = Hops::from([PortNo::CONTROL.0, 3]);
            let mut bytes = packet(width, PacketType::Control, to_us, Hops::default());
            assert_eq!(forward(&mut bytes, width, INGRESS, kind_of), Step::Punt(Punt::Addressed));
            assert_eq!(bytes, packet(width, PacketType::Control, Hops::from([3]), Hops::from([5])));
        }
    }

    #[test]
    fn a_dropped_packet_is_left_as_it_came() {
        for width in WIDTHS {
            let mut bytes = packet(width, PacketType::Ethernet, Hops::from([9]), Hops::default());
            let before = bytes.clone();
            let step = forward(&mut bytes, width, INGRESS, kind_of);
            assert_eq!(step, Step::Drop(Drop::NoSuchPort));
            assert_eq!(bytes, before);
            let mut bytes = packet(width, PacketType::Ethernet, Hops::from([3]), Hops::default());
            let before = bytes.clone();
            let step = forward(&mut bytes, width, INGRESS, kind_of);
            assert_eq!(step, Step::Drop(Drop::EgressUnknown));
            assert_eq!(bytes, before);
            let step = forward(&mut bytes[..6], width, INGRESS, |_| None);
            let expected = if width == HopWidth::Four { Drop::NoSuchPort } else { Drop::Malformed };
            assert_eq!(step, Step::Drop(expected), "one nibble hop fits six bytes");
        }
        let full: Hops = (0..header::HOPS_MAX as u16).map(|hop| PortNo(hop & 3)).collect();
        let mut bytes = vec![0; 6 + header::HOPS_MAX + 1];
        header::emit(&mut bytes, HopWidth::Eight, PacketType::Ethernet, &[PortNo(1)], &full)
            .unwrap();
        let step = forward(&mut bytes, HopWidth::Eight, INGRESS, kind_of);
        assert_eq!(step, Step::Drop(Drop::Malformed), "a full reverse list takes no more");
    }
}
